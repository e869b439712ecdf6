"""Verbs that change what a table is: its columns, partitions, order and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from campaigns.simulate.intent import commit_on
from campaigns.simulate.model import Part
from campaigns.simulate.script import tiny
from campaigns.simulate.verbs.tables import ROWS, K, U, arrow, some_rows
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.spec.edit.schema import SchemaEdit
    from icetree.spec.metadata.metadata import TableMetadata
    from icetree.table.commit.commit import Committed
    from icetree.table.table import Table

_SCHEMA_FACTS: Final = frozenset({"current_schema_id", "last_column_id", "default_spec_id"})
_SPEC_FACTS: Final = frozenset({"last_column_id", "default_spec_id", "current_schema_id"})
_SPECS: Final = ("k", "truncate(2, k)", "bucket(2, k)", "bucket(3, u)")


def edit_schema(turn: Turn) -> None:
    """Add, drop, rename, widen or move a column; let it be null, or not."""
    table = turn.table(ROWS)
    text, edit, law = _an_edit(turn, table)

    def do() -> None:
        with table.edit_schema() as schema:
            edit(schema)

    commit = commit_on(
        table,
        text,
        evolves=True,
        metadata_law=law,
        relies_on=_SCHEMA_FACTS,
        may_be_idle=text.startswith("move"),
    )
    turn.commit(commit, do)


#: Name, type and whether it is required, by id.
Columns = dict[int, tuple[str, str, bool]]


def _columns(metadata: TableMetadata) -> Columns:
    return {
        each.field_id: (each.name, str(each.field_type), each.required)
        for each in metadata.schema().fields
    }


def _an_edit(
    turn: Turn, table: Table
) -> tuple[str, Callable[[SchemaEdit], Any], Callable[..., str | None]]:
    """Return an edit of the schema in words, what makes it, and what it must leave."""
    fields = [each for each in table.schema.fields if each.field_id not in (U, K)]
    always = ("add", "add", "null")
    kind = turn.chance.choice((*always, "drop", "rename", "widen", "move") if fields else always)
    name = f"c{turn.step.number}"
    if kind == "null":
        # No row lacks it, so that it may become required again.
        is_required = _columns(table.metadata)[U][2]
        return (
            f"let u be null: {is_required}",
            lambda schema: (
                schema.make_optional("u")
                if is_required
                else schema.make_required("u", allow_incompatible=True)
            ),
            _leaves(lambda columns: {**columns, U: ("u", "long", not is_required)}),
        )
    if kind == "add":
        type = turn.chance.choice(("int", "string"))
        default = turn.chance.choice((None, 7 if type == "int" else "seven"))
        new = table.metadata.last_column_id + 1
        return (
            f"add column {name} {type} default {default!r}",
            lambda schema: schema.add(name, type, default=default),
            _leaves(lambda columns: {**columns, new: (name, type, False)}),
        )
    field = turn.chance.choice(fields)
    id, old = field.field_id, (field.name, str(field.field_type))
    if kind == "move":
        return (
            f"move column {field.name} to the front",
            lambda schema: schema.move_first(field.name),
            _leaves(lambda columns: columns),
        )
    if kind == "drop":
        return (
            f"drop column {field.name}",
            lambda schema: schema.drop(field.name),
            _leaves(lambda columns: {each: told for each, told in columns.items() if each != id}),
        )
    if kind == "widen" and old[1] == "int":
        return (
            f"widen column {field.name}",
            lambda schema: schema.widen(field.name, "long"),
            _leaves(lambda columns: {**columns, id: (old[0], "long", False)}),
        )
    return (
        f"rename column {field.name} to {name}",
        lambda schema: schema.rename(field.name, name),
        _leaves(lambda columns: {**columns, id: (name, old[1], False)}),
    )


def _leaves(change: Callable[[Columns], Columns]) -> Callable[..., str | None]:
    def law(before: TableMetadata, after: TableMetadata) -> str | None:
        found, meant = _columns(after), change(_columns(before))
        return None if found == meant else f"columns are {found}, not {meant}"

    return law


def edit_spec(turn: Turn) -> None:
    """Partition by something else."""
    table = turn.table(ROWS)
    have = [each.name for each in table.metadata.shape().spec(table.metadata.default_spec_id)]
    term = turn.chance.choice((*_SPECS, None))

    def do() -> None:
        with table.edit_spec() as spec:
            for name in have:
                spec.remove(name)
            if term is not None:
                spec.add(term)

    commit = commit_on(
        table,
        f"partition by {term or 'nothing'}",
        evolves=True,
        relies_on=_SPEC_FACTS,
        may_be_idle=True,
    )
    turn.commit(commit, do)


def edit_sort(turn: Turn) -> None:
    """Sort by something else."""
    table = turn.table(ROWS)
    key = turn.chance.choice(("u desc", "k asc nulls last", "k desc"))

    def do() -> None:
        with table.edit_sort() as sort:
            sort.by(key)

    commit = commit_on(
        table,
        f"sort by {key}",
        evolves=True,
        relies_on=frozenset({"default_sort_order_id", "current_schema_id"}),
        may_be_idle=True,
    )
    turn.commit(commit, do)


def set_properties(turn: Turn) -> None:
    """Set other thresholds."""
    table = turn.table(ROWS)
    new = tiny(turn.chance)

    def law(before: TableMetadata, after: TableMetadata) -> str | None:
        meant = {**before.properties, **new}
        return None if after.properties == meant else f"{after.properties}, not {meant}"

    turn.commit(
        commit_on(table, "set properties", evolves=True, metadata_law=law, sets=new),
        lambda: table.set_properties(new),
    )


def upgrade(turn: Turn) -> None:
    """Raise the format version, of a table that has the newest as a rule."""
    table = turn.table(ROWS)

    def law(_: TableMetadata, after: TableMetadata) -> str | None:
        return None if after.format_version == 4 else f"it has version {after.format_version}"

    commit = commit_on(
        table,
        "upgrade",
        evolves=True,
        metadata_law=law,
        relies_on=frozenset({"format_version"}),
        may_be_idle=table.metadata.format_version == 4,
    )
    turn.commit(commit, table.upgrade)


def add_and_fill(turn: Turn) -> None:
    """Add a column and rows that have it, in one commit."""
    table = turn.table(ROWS)
    name, new = f"f{turn.step.number}", table.metadata.last_column_id + 1
    rows = tuple({**values, new: turn.step.number} for values in some_rows(turn, table.schema))

    def do() -> Committed:
        with table.transaction() as tx:
            with tx.edit_schema() as schema:
                schema.add(name, "long")
            tx.append(arrow(tx.metadata.schema(), rows))
            return tx.commit()

    turn.commit(
        commit_on(
            table,
            f"add column {name} and {len(rows)} rows",
            evolves=True,
            parts=(Part(intent=Intent.APPEND, added=rows),),
            relies_on=_SCHEMA_FACTS,
            metadata_law=_leaves(lambda columns: {**columns, new: (name, "long", False)}),
        ),
        do,
    )


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "edit schema": (edit_schema, 3),
    "edit spec": (edit_spec, 2),
    "edit sort": (edit_sort, 1),
    "set properties": (set_properties, 2),
    "add and fill": (add_and_fill, 2),
    "upgrade": (upgrade, 2),
}
