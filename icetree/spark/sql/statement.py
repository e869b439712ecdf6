"""SQL on the lake: one statement, to whoever can carry it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame

from icetree.errors import InvalidInput, Unsupported
from icetree.filters.filter import Filter
from icetree.spark.functions.calls import with_functions
from icetree.spark.names import quoted
from icetree.spark.sql import caching
from icetree.spark.sql.call.call import run_call
from icetree.spark.sql.ddl import run_ddl
from icetree.spark.sql.dml import run_dml
from icetree.spark.sql.elsewhere import refuse_others
from icetree.spark.sql.extensions import run_extension
from icetree.spark.sql.identifiers import identified
from icetree.spark.sql.names import find_lasting, find_table, naming_others
from icetree.spark.sql.select import bound_to, select, told_alone, unpruned
from icetree.spark.sql.show import run_show
from icetree.spark.sql.views import lasting_statements
from icetree.spark.sql.views.show import run_show_view
from icetree.spark.sql.views.temporary import find_view
from icetree.spark.sql.views.temporary_statements import run_view
from icetree.spark.tokens import Cursor
from icetree.spark.trees import carry_out, described, is_query, kind, parse, seq, substituted
from icetree.surroundings import random_bits
from icetree.table.commit.counts import RowCounts
from icetree.table.point import Point

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


#: How a statement names a table that it is about.
_NAMES: Final = frozenset({"UnresolvedTable", "UnresolvedTableOrView"})
#: Statements that tell of a view what Spark knows of it.
_TELLING: Final = frozenset({"DescribeRelation", "DescribeColumn", "ShowColumns"})
#: Those that tell of a query.
_TELLING_OF_QUERIES: Final = frozenset({"DescribeQueryCommand", "ExplainCommand"})


def run_sql(lake: SparkLake, text: str) -> DataFrame:
    """Carry out a statement and return what it finds.

    Of one that changes rows it is how many, of any other that changes something it is nothing.

    Tables of the lake can stand beside Spark's own views in it, and each is read at one version.
    What is not about the lake goes to Spark as it is.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"{text!r} is no statement: give SQL as text")
    with naming_others(lake):
        return _run(lake, text)


def _run(lake: SparkLake, text: str) -> DataFrame:
    text = substituted(lake.spark, text.strip().rstrip(";").rstrip())
    text = identified(lake.spark, text)
    refuse_others(lake, text)
    said = text
    text = with_functions(text, lake.spark)
    moment = lake.moment()
    if run_extension(moment, text):
        return _nothing(lake)
    plan = parse(lake.spark, text)
    if kind(plan) == "Call":
        told = run_call(lake, plan)
        return _by_spark(lake, plan, text) if told is None else told
    if is_query(lake.spark, plan):
        return select(lake.moment(reads_cache=True), text, plan=plan)
    done = carry_out(lasting_statements.STATEMENTS, moment, plan, said)
    done = done or run_ddl(moment, plan, text)
    if done or carry_out(caching.STATEMENTS, lake, plan, text):
        return _nothing(lake)
    changed = run_dml(moment, plan, text)
    if changed is not None:
        return _counts(lake, changed)
    shown = run_show(moment, plan)
    if shown is None:
        shown = run_show_view(moment, plan)
    return _by_spark(lake, plan, text) if shown is None else shown


def read_view(
    lake: SparkLake,
    name: str,
    where: Filter | Column | None,
    *,
    columns: Iterable[str] | None,
    at: Point | None,
) -> DataFrame:
    """Return the rows of a view of the lake; there are none of another time."""
    if at is not None or not isinstance(where, str | Column | None):
        raise InvalidInput(f"{name} is a view: it has no at=, and where= is text or a Column")
    rows = run_sql(lake, f"SELECT * FROM {'.'.join(map(quoted, name.split('.')))}")
    rows = rows if where is None else rows.where(where)
    return rows if columns is None else rows.select(*columns)


def _nothing(lake: SparkLake) -> DataFrame:
    # Rows that come from Python go through its workers, even where there are none.
    return lake.spark.range(0).select().limit(0)


def _counts(lake: SparkLake, rows: RowCounts) -> DataFrame:
    """Return numbers of rows as others have them on Spark; a null is not known without a look."""
    numbers = {
        "num_affected_rows": rows.affected,
        "num_updated_rows": rows.updated,
        "num_deleted_rows": rows.deleted,
        "num_inserted_rows": rows.inserted,
    }
    told = (
        f"CAST({'NULL' if number is None else number} AS BIGINT) AS {name}"
        for name, number in numbers.items()
    )
    return lake.spark.sql(f"SELECT {', '.join(told)}")


def _by_spark(lake: SparkLake, plan: Any, text: str) -> DataFrame:
    """Let Spark carry out a statement, on the tables of the lake that it reads."""
    what = kind(plan)
    for child in seq(plan.children()):
        parts = seq(child.multipartIdentifier()) if kind(child) in _NAMES else []
        if parts and find_view(lake, parts) is not None:
            if what in _TELLING:
                caching.refresh_view(lake, parts)
        elif parts and (of := _of_the_lake(lake, parts)) is not None:
            words = " ".join(text.split()[:2]).upper()
            raise Unsupported(f"{words}: not for {'.'.join(parts)}, a {of} of the lake")
    if run_view(lake.moment(), plan, text):
        return _nothing(lake)
    moment = lake.moment(reads_cache=what in _TELLING_OF_QUERIES)
    if what == "DescribeQueryCommand":
        return unpruned(moment, text, bound_to(moment, text, described(plan)))
    if what == "ExplainCommand":
        inner = described(plan)
        bound = bound_to(moment, text, inner)
        query = _explained(text) if is_query(lake.spark, inner) else None
        if query is not None and (found := told_alone(moment, query)) is not None:
            return _explain(lake, text[: text.rindex(query)], found)
        return unpruned(moment, text, bound, query=query)
    return unpruned(moment, text, bound_to(moment, text, plan))


def _explain(lake: SparkLake, words: str, rows: DataFrame) -> DataFrame:
    """Return the plan of rows as the words of a statement ask for it."""
    view = f"__icetree_{random_bits(128):032x}"
    rows.createOrReplaceTempView(view)
    try:
        return lake.spark.sql(f"{words} SELECT * FROM {view}")
    finally:
        lake.spark.catalog.dropTempView(view)


def _of_the_lake(lake: SparkLake, parts: Sequence[str]) -> str | None:
    """Return what the lake has by a name, in words."""
    if find_table(lake, parts) is not None:
        return "table"
    return None if find_lasting(lake, parts) is None else "view"


def _explained(text: str) -> str:
    cursor = Cursor(text)
    cursor.expect("EXPLAIN")
    for word in ("EXTENDED", "CODEGEN", "COST", "FORMATTED"):
        cursor.accept(word)
    return cursor.rest()
