"""Queries: the tables of the lake that a query names become temporary views, for its sake.

First the views are empty, and Spark plans the query: the conditions that it pushes down to each
tell which files the real views can leave out. Then the query runs on those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.names import quoted
from icetree.spark.pushdown.plan import Pruned, marker, nothing, optimized, pruned_by
from icetree.spark.read.metadata_tables import metadata_table
from icetree.spark.read.scan import dataframe
from icetree.spark.sql.clock import steady
from icetree.spark.sql.names import TableRef, find_table
from icetree.spark.sql.plan import Named, Span, named_tables, parse
from icetree.spark.sql.tokens import Edit, edited, shortenings, tokens
from icetree.spark.types import spark_schema, spark_type
from icetree.table.arrow_schema import METADATA_COLUMNS
from icetree.table.scan import Scan

if TYPE_CHECKING:
    from icetree.spark.lake import Lake

_PREFIX: Final = "__icetree_"
#: Words without which no condition reaches a table.
_CONDITIONS: Final = frozenset({"WHERE", "ON", "HAVING", "JOIN", "USING", "QUALIFY", "FILTER"})
#: Functions of the time, which goes on between one planning and the next.
_CLOCK: Final = re.compile(
    r"\b(now|current_\w+|curdate|localtimestamp|unix_timestamp|getdate|sysdate)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A table that a query names, and the view that stands for it."""

    named: Named
    ref: TableRef
    view: str
    #: Metadata columns, which `*` leaves out.
    hidden: tuple[str, ...]
    #: What to read; none for a metadata table.
    scan: Callable[[BooleanExpression], Scan] | None


def select(lake: Lake, text: str, *, plan: Any = None) -> DataFrame:
    """Return what a query finds."""
    plan = parse(lake.spark, text) if plan is None else plan
    bound = bind(lake, text, plan)
    if not bound:
        with plainly():
            return lake.spark.sql(text)
    rewritten = rewrite(text, bound)
    filters = _filters(lake, text, rewritten, bound)
    with _views(lake, bound, filters), plainly(_called(bound)):
        return lake.spark.sql(rewritten)


def unpruned(
    lake: Lake, text: str, bound: Sequence[Bound], *, query: str | None = None
) -> DataFrame:
    """Run a statement that is no query on the tables it reads; `query` is what it reads by."""
    filters: dict[str, BooleanExpression] = {}
    if query is not None:
        inner = bind(lake, query, parse(lake.spark, query))
        found = _filters(lake, query, rewrite(query, inner), inner)
        # The same tables in the same order, under the names of other views.
        filters = {mine.view: found[its.view] for mine, its in zip(bound, inner, strict=True)}
    with _views(lake, bound, filters), plainly(_called(bound) if bound else None):
        return lake.spark.sql(rewrite(text, bound))


@contextmanager
def with_tables(lake: Lake, expression: str) -> Iterator[str]:
    """Give an expression in which views stand for the tables that its subqueries read."""
    before = "SELECT 1 WHERE "
    text = before + expression
    bound = bind(lake, text, parse(lake.spark, text))
    with _views(lake, bound, {}):
        yield rewrite(text, bound)[len(before) :]


def _called(bound: Iterable[Bound]) -> dict[str, str]:
    return {each.view: ".".join(each.named.parts) for each in bound}


def bind(lake: Lake, text: str, plan: Any) -> list[Bound]:
    """Return the tables of the lake that a query names."""
    found = []
    catalog = lake.spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
    extra = _metadata_columns(text)
    for named in named_tables(plan, text):
        if len(named.parts) == 1 and catalog.getTempView(named.parts[0]).isDefined():
            continue
        ref = find_table(lake, named.parts)
        if ref is not None:
            made = None if ref.metadata else _scan(lake, ref, named, extra)
            scan, hidden = (None, ()) if made is None else made
            view = _PREFIX + uuid4().hex
            found.append(Bound(named=named, ref=ref, view=view, hidden=hidden, scan=scan))
    return found


def rewrite(text: str, bound: Sequence[Bound]) -> str:
    """Return the text of a query with views in place of tables."""
    edits: list[Edit] = []
    spans = [each.named.span for each in bound]
    for each in bound:
        span, alias_at = each.named.span, each.named.alias_at
        edits.append((span.start, span.stop, each.view))
        if alias_at is not None and not _is_table_statement(text, span.start):
            edits.append((alias_at, alias_at, f" AS {quoted(each.named.parts[-1])}"))
            # A view has no namespace.
            names = (each.named.parts, each.ref.name.split("."))
            edits += [cut for cut in shortenings(text, names) if not within(cut, spans)]
        if each.hidden and each.named.star is not None:
            edits.append((each.named.star, each.named.star, f" EXCEPT ({', '.join(each.hidden)})"))
    return edited(text, edits)


def _is_table_statement(text: str, at: int) -> bool:
    """Tell whether this is `TABLE db.t`, which takes no alias."""
    before = tokens(text[:at])
    return bool(before) and before[-1].says("TABLE")


def within(edit: Edit, spans: Iterable[Span]) -> bool:
    """Tell whether an edit would change what stands for a table."""
    return any(span.start <= edit[0] < span.stop for span in spans)


# --- what to read ------------------------------------------------------------------------------


def _metadata_columns(text: str) -> tuple[str, ...]:
    """Return the metadata columns that a query names; others would only be in the way of `*`."""
    names = {token.name.lower() for token in tokens(text) if token.kind in ("word", "quoted")}
    return tuple(name for name in METADATA_COLUMNS if name in names)


def _scan(
    lake: Lake, ref: TableRef, named: Named, extra: tuple[str, ...]
) -> tuple[Callable[[BooleanExpression], Scan], tuple[str, ...]]:
    table = lake.handle(ref.name)
    at = _version(lake, ref, named)
    whole = table.scan(**at)
    own = [field.name for field in whole.schema.fields if _is_known(field)]
    hidden = tuple(name for name in extra if name not in own)
    columns = [*own, *hidden]
    # A column that Spark has no type for is not there, but the others are.
    simple = not hidden and len(own) == len(whole.schema.fields)

    def scan(where: BooleanExpression) -> Scan:
        return table.scan(where, columns=None if simple else columns, **at)

    return scan, hidden


def _is_known(field: NestedField) -> bool:
    try:
        spark_type(field.field_type)
    except Unsupported:
        return False
    return True


def _version(lake: Lake, ref: TableRef, named: Named) -> dict[str, Any]:
    asked = named.version if named.version is not None else named.timestamp
    if asked is not None and ref.ref is not None:
        raise InvalidInput(f"{'.'.join(named.parts)} names a version already: leave out AS OF")
    if named.version is not None:
        word = named.version
        return {"snapshot_id": int(word)} if word.isdigit() else {"ref": word}
    if named.timestamp is not None:
        return {"as_of_ms": _moment(lake, named.timestamp)}
    return {} if ref.ref is None else {"ref": ref.ref}


def _moment(lake: Lake, text: str) -> int:
    with plainly():
        [[found]] = lake.spark.sql(f"SELECT unix_millis(try_cast(({text}) AS TIMESTAMP))").collect()
    if found is None:
        raise InvalidInput(f"TIMESTAMP AS OF {text}: that is no time")
    return int(found)


# --- which files -------------------------------------------------------------------------------


def _filters(
    lake: Lake, text: str, rewritten: str, bound: Sequence[Bound]
) -> dict[str, BooleanExpression]:
    """Return, for each view, a filter that keeps every row the query can use."""
    everything: dict[str, BooleanExpression] = {each.view: AlwaysTrue() for each in bound}
    words = {token.text.upper() for token in tokens(text) if token.kind == "word"}
    if not words & _CONDITIONS:
        return everything
    found = _pushed_down(lake, rewritten, bound)
    if _CLOCK.search(text):
        # What the time of day decides may be decided otherwise by the time the query runs.
        later = _pushed_down(lake, rewritten, bound)
        found = {view: steady(each, later[view]) for view, each in found.items()}
    return everything | found


def _pushed_down(
    lake: Lake, rewritten: str, bound: Sequence[Bound]
) -> dict[str, BooleanExpression]:
    markers: dict[str, Pruned] = {}
    views: list[str] = []
    try:
        for each in bound:
            if each.scan is None:
                empty = _metadata_frame(lake, each)
            else:
                scan = each.scan(AlwaysTrue())
                empty = nothing(lake.spark, spark_schema(scan.columns.fields))
                markers[marker(optimized(empty))] = Pruned(view=each.view, schema=scan.schema)
            empty.createOrReplaceTempView(each.view)
            views.append(each.view)
        with plainly(_called(bound)):
            plan = optimized(lake.spark.sql(rewritten))
    finally:
        for view in views:
            lake.spark.catalog.dropTempView(view)
    return pruned_by(plan, markers)


# --- views -------------------------------------------------------------------------------------


@contextmanager
def _views(
    lake: Lake, bound: Sequence[Bound], filters: dict[str, BooleanExpression]
) -> Iterator[None]:
    """Make the views, and drop them again: a DataFrame that was made of one keeps its plan."""
    made: list[str] = []
    try:
        for each in bound:
            frame = _frame(lake, each, filters.get(each.view, AlwaysTrue()))
            frame.createOrReplaceTempView(each.view)
            made.append(each.view)
        yield
    finally:
        for view in made:
            lake.spark.catalog.dropTempView(view)


def _frame(lake: Lake, bound: Bound, where: BooleanExpression) -> DataFrame:
    if bound.scan is None:
        return _metadata_frame(lake, bound)
    scan = bound.scan(where)
    found = scan.plan()
    # Spark checks rows itself: files are all that is to be left out here.
    return dataframe(lake.spark, scan, plan=found.unfiltered())


def _metadata_frame(lake: Lake, bound: Bound) -> DataFrame:
    ref = bound.ref
    assert ref.metadata is not None
    return metadata_table(lake, ref.name, ref.metadata, **_version(lake, ref, bound.named))
