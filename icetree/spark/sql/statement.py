"""SQL on the lake: one statement, to whoever can carry it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.moment import Moment
from icetree.spark.names import quoted
from icetree.spark.sql.ddl import run_ddl
from icetree.spark.sql.dml import run_dml
from icetree.spark.sql.extensions import run_extension
from icetree.spark.sql.names import find_table
from icetree.spark.sql.plan import is_query, kind, parse, seq, substituted
from icetree.spark.sql.select import bind, select, unpruned
from icetree.spark.sql.show import run_show
from icetree.spark.sql.tokens import Cursor, query_of

if TYPE_CHECKING:
    from icetree.spark.lake import Lake


#: How a statement names a table that it is about.
_TABLES: Final = frozenset({"UnresolvedTable", "UnresolvedTableOrView"})


def run_sql(lake: Lake, text: str) -> DataFrame:
    """Carry out a statement and return what it finds; nothing, for one that changes something.

    Tables of the lake can stand beside Spark's own views in it, and each is read at one version.
    What is not about the lake goes to Spark as it is.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"{text!r} is no statement: give SQL as text")
    lake = Moment(lake)
    text = substituted(lake.spark, text.strip().rstrip(";").rstrip())
    if run_extension(lake, text):
        return _nothing(lake)
    plan = parse(lake.spark, text)
    if kind(plan) == "Call":
        raise Unsupported("CALL: there are no procedures; the lake's own methods do that work")
    if is_query(lake.spark, plan):
        return select(lake, text, plan=plan)
    if run_ddl(lake, plan, text) or run_dml(lake, plan, text):
        return _nothing(lake)
    shown = run_show(lake, plan)
    return _by_spark(lake, plan, text) if shown is None else shown


def _nothing(lake: Lake) -> DataFrame:
    return lake.spark.createDataFrame([], StructType([]))


def _by_spark(lake: Lake, plan: Any, text: str) -> DataFrame:
    """Let Spark carry out a statement, on the tables of the lake that it reads."""
    what = kind(plan)
    for child in seq(plan.children()):
        parts = seq(child.multipartIdentifier()) if kind(child) in _TABLES else []
        if parts and find_table(lake, parts) is not None:
            words = " ".join(text.split()[:2]).upper()
            raise Unsupported(f"{words}: not for {'.'.join(parts)}, a table of the lake")
    if what == "CreateViewCommand" and _create_view(lake, plan, text):
        return _nothing(lake)
    if what == "CacheTableAsSelect":
        select(lake, query_of(text)).createOrReplaceTempView(plan.tempViewName())
        with plainly():
            return lake.spark.sql(f"CACHE TABLE {quoted(plan.tempViewName())}")
    if what == "ExplainCommand":
        inner = plan.logicalPlan()
        bound = bind(lake, text, inner)
        query = _explained(text) if is_query(lake.spark, inner) else None
        return unpruned(lake, text, bound, query=query)
    return unpruned(lake, text, bind(lake, text, plan))


def _create_view(lake: Lake, plan: Any, text: str) -> bool:
    """Make a temporary view: of the plan, since the tables are known for one statement only."""
    if kind(plan.viewType()) == "PersistedView":
        return False
    if not bind(lake, text, plan):
        return False
    rows = select(lake, query_of(text))
    names = [each._1() for each in seq(plan.userSpecifiedColumns())]  # noqa: SLF001  # Scala's
    if names:
        rows = rows.toDF(*names)
    view = plan.name().table()
    is_global = kind(plan.viewType()) == "GlobalTempView"
    with plainly():
        if plan.replace():
            (rows.createOrReplaceGlobalTempView if is_global else rows.createOrReplaceTempView)(
                view
            )
        else:
            (rows.createGlobalTempView if is_global else rows.createTempView)(view)
    return True


def _explained(text: str) -> str:
    cursor = Cursor(text)
    cursor.expect("EXPLAIN")
    for word in ("EXTENDED", "CODEGEN", "COST", "FORMATTED"):
        cursor.accept(word)
    return cursor.rest()
