"""MERGE INTO: its clauses, handed to the lake's own merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.sql.assign import Assignments, assignment
from icetree.spark.sql.columns import own_path
from icetree.spark.sql.names import TableRef
from icetree.spark.sql.select import select
from icetree.spark.tokens import Cursor, edited, shortenings, tokens
from icetree.spark.trees import kind, seq
from icetree.spec.texts import did_you_mean
from icetree.table.commit.commit import Committed
from icetree.table.rows.clauses import Clauses
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def merge(
    lake: SparkLake, into: TableRef, parts: Sequence[str], alias: str | None, plan: Any, text: str
) -> Committed:
    """Carry out a MERGE INTO."""
    cursor = Cursor(text)
    before = cursor.until("MERGE")
    cursor.expect("MERGE")
    if cursor.accept("WITH", "SCHEMA", "EVOLUTION"):
        raise Unsupported("MERGE WITH SCHEMA EVOLUTION: add the columns with ALTER TABLE first")
    cursor.until("USING")
    cursor.expect("USING")
    source = cursor.until("ON")
    cursor.expect("ON")
    rows = select(lake, f"{before} SELECT * FROM {source}")
    names = _Names(
        table=lake.table(into.name),
        target=alias or parts[-1],
        source=_alias(plan.sourceTable()),
        longer=[list(parts), into.name.split(".")] if alias is None else [],
        source_parts=_parts(plan.sourceTable()),
    )
    clauses = lake.merge(
        into.name,
        rows,
        names.expression(cursor.until("WHEN")),
        target_alias=names.target,
        source_alias=names.source,
        **into.how,
    )
    while cursor.accept("WHEN"):
        _clause(clauses, cursor, names)
    cursor.end()
    return clauses.run()


def _alias(source: Any) -> str:
    while kind(source) in ("UnresolvedSubqueryColumnAliases", "Sample"):
        source = source.child()
    if kind(source) == "SubqueryAlias":
        name: str = source.identifier().name()
        return name
    parts = _parts(source)
    return parts[-1] if parts else "__icetree_source"


def _parts(source: Any) -> list[str]:
    if kind(source) == "RelationTimeTravel":
        source = source.relation()
    return seq(source.multipartIdentifier()) if kind(source) == "UnresolvedRelation" else []


class _Names:
    """What a statement calls its two tables."""

    def __init__(
        self,
        *,
        table: Table,
        target: str,
        source: str,
        longer: list[list[str]],
        source_parts: list[str],
    ) -> None:
        self.table, self.target, self.source = table, target, source
        self._longer = [each for each in (*longer, source_parts) if len(each) > 1]

    def expression(self, text: str) -> str:
        """Return an expression in which each table has its alias alone: `db.t.a` is `t.a`."""
        if any(token.says("SELECT") for token in tokens(text)):
            raise Unsupported("MERGE with a subquery in a clause: join it to the source instead")
        return edited(text, shortenings(text, self._longer))

    def path(self, name: Sequence[str]) -> tuple[str, ...]:
        """Return the path of the target's column that a clause names."""
        own = {field.name.lower() for field in self.table.schema.fields}
        for parts in ([self.target], *self._longer):
            head = [part.lower() for part in name[: len(parts)]]
            if len(name) > len(parts) and head == [part.lower() for part in parts]:
                rest = name[len(parts) :]
                if rest[0].lower() in own:
                    return own_path(self.table.schema, rest)
        found = own_path(self.table.schema, name)
        if found[0].lower() not in own:
            known = [field.name for field in self.table.schema.fields]
            raise InvalidInput(
                f"table {self.table.name} has no column {'.'.join(name)!r}; there are: "
                f"{', '.join(known)}{did_you_mean(found[0], known)}"
            )
        return found

    def assigned(self, pairs: Iterable[tuple[Sequence[str], str]]) -> dict[str, str | Column]:
        """Return what columns of the target are set to."""
        made = Assignments(self.table.schema, of=self.target)
        for path, value in pairs:
            made.add(path, self.expression(value))
        return made.values


def _clause(clauses: Clauses[Any, Any], cursor: Cursor, names: _Names) -> None:
    matched = not cursor.accept("NOT")
    cursor.expect("MATCHED")
    by_source = not matched and cursor.accept("BY", "SOURCE")
    if not matched:
        cursor.accept("BY", "TARGET")
    condition = names.expression(cursor.until("THEN")) if cursor.accept("AND") else None
    cursor.expect("THEN")
    if cursor.accept("DELETE"):
        if by_source:
            clauses.when_not_matched_by_source_delete(condition)
        else:
            clauses.when_matched_delete(condition)
    elif cursor.accept("UPDATE"):
        _updates(clauses, cursor, names, condition, by_source=by_source)
    else:
        cursor.expect("INSERT")
        _inserts(clauses, cursor, names, condition)


def _updates(
    clauses: Clauses[Any, Any],
    cursor: Cursor,
    names: _Names,
    condition: str | None,
    *,
    by_source: bool,
) -> None:
    cursor.expect("SET")
    if cursor.accept("*"):
        clauses.when_matched_update_all(condition)
        return
    pairs = [assignment(text) for text in cursor.listed("WHEN", ";")]
    values = names.assigned((names.path(path), value) for path, value in pairs)
    if by_source:
        clauses.when_not_matched_by_source_update(values, condition)
    else:
        clauses.when_matched_update(values, condition)


def _inserts(
    clauses: Clauses[Any, Any], cursor: Cursor, names: _Names, condition: str | None
) -> None:
    if cursor.accept("*"):
        clauses.when_not_matched_insert_all(condition)
        return
    columns = [field.name for field in names.table.schema.fields]
    if not cursor.accept("VALUES"):
        columns = [names.path(Cursor(each).name())[0] for each in cursor.bracket()]
        cursor.expect("VALUES")
    given = cursor.bracket()
    if len(given) != len(columns):
        raise InvalidInput(f"INSERT names {len(columns)} columns, but has {len(given)} values")
    values = names.assigned(zip([(name,) for name in columns], given, strict=True))
    clauses.when_not_matched_insert(values, condition)
