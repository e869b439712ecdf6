"""What columns of a statement's own table go by in its clauses: `db.t.a` is `t.a`, or `a`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icetree.spark.sql.bind import within
from icetree.spark.tokens import edited, queries, shortenings
from icetree.spark.trees import Span, named_tables, parse
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def unqualified(
    path: Sequence[str], parts: Sequence[str], alias: str | None, table: Table
) -> Sequence[str]:
    """Return a column's path without the table's name or alias before it."""
    own = {field.name.lower() for field in table.schema.fields}
    for before in ([alias] if alias else [parts[-1]], [*parts]):
        if len(path) > len(before) and [p.lower() for p in path[: len(before)]] == [
            b.lower() for b in before
        ]:
            rest = path[len(before) :]
            if path[0].lower() not in own or rest[0].lower() in own:
                return rest
    return path


def shortened(
    lake: SparkLake, text: str, parts: Sequence[str], alias: str | None, full: str
) -> str:
    """Return an expression in which `db.t.a` is `t.a`, as the rows at hand are called."""
    cuts = set() if alias is not None else shortenings(text, (parts, full.split(".")))
    tables = _tables_in(lake, text) if cuts else []
    return edited(text, (cut for cut in cuts if not within(cut, tables)))


def _tables_in(lake: SparkLake, text: str) -> list[Span]:
    """Return where subqueries of an expression name their tables."""
    if not has_subquery(text):
        return []
    before = "SELECT 1 WHERE "
    named = named_tables(parse(lake.spark, before + text), before + text)
    skipped = len(before)
    return [Span(start=n.span.start - skipped, stop=n.span.stop - skipped) for n in named]


def has_subquery(text: str) -> bool:
    """Tell whether a query stands within an expression."""
    return next(queries(text), None) is not None
