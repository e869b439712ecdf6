"""Verbs on named files: add, remove, update by writing anew, compact; and several in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from campaigns.simulate.intent import Commit, commit_on
from campaigns.simulate.model import Part, Row, State, Where, place_of, projected
from campaigns.simulate.verbs.tables import (
    ROWS,
    K,
    N,
    a_branch,
    an_isolation,
    arrow,
    moved,
    some_rows,
)
from icetree.rows.write.write import write_files
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.commit.commit import Committed
    from icetree.table.table import Table


def append_files(turn: Turn) -> None:
    """Add files that were written before, named in full or not."""
    table = turn.table(ROWS)
    branch, rows = a_branch(turn, table), some_rows(turn, table.schema)
    in_full = turn.chance.random() < 0.3

    def do() -> Committed:
        with table.transaction(branch=branch) as tx:
            written = _write(table, arrow(table.schema, rows))
            tx.adopt(written)
            if in_full:
                names = [f"{table.location}/{name}" for name in written["location"].to_pylist()]
                at = written.schema.get_field_index("location")
                written = written.set_column(at, "location", [names])
            tx.append_files(written)
            return tx.commit()

    part = Part(intent=Intent.APPEND, added=rows)
    turn.commit(
        commit_on(table, f"append files of {len(rows)} rows", branch=branch, parts=(part,)), do
    )


def delete_files(turn: Turn) -> None:
    """Remove some files."""
    table = turn.table(ROWS)
    branch, isolation = a_branch(turn, table), an_isolation(turn)
    names = some_files(turn, turn.state(table, branch))
    if not names:
        return
    part = Part(intent=Intent.DELETE_FILES, removed=names)
    turn.commit(
        commit_on(
            table, f"delete {len(names)} files", branch=branch, isolation=isolation, parts=(part,)
        ),
        lambda: table.delete_files(sorted(names), branch=branch, isolation=isolation),
    )


def update(turn: Turn) -> None:
    """Write files anew with some of their rows changed: copy on write."""
    table = turn.table(ROWS)
    branch, isolation = a_branch(turn, table), an_isolation(turn)
    state = turn.state(table, branch)
    names = some_files(turn, state)
    if not names or N not in {field.field_id for field in table.schema.fields}:
        return
    where = _covering(turn, state, names)
    rows = tuple(
        _changed(row, turn) if turn.chance.random() < 0.5 else row
        for row in _seen(table, state, names)
    )

    def do() -> Committed:
        with table.transaction(branch=branch, isolation=isolation) as tx:
            written = tx.adopt(_write(table, moved(table.schema, rows), keep_lineage=True))
            tx.overwrite_files(sorted(names), written, where=where.text if where else None)
            return tx.commit()

    part = Part(intent=Intent.OVERWRITE_FILES, where=where, carried=rows, removed=names)
    commit = commit_on(
        table,
        f"update rows of {len(names)} files{f' where {where.text!r}' if where else ''}",
        branch=branch,
        isolation=isolation,
        parts=(part,),
        relies_on=frozenset({"current_schema_id"} if where else ()),
    )
    turn.commit(commit, do)


def _changed(row: Row, turn: Turn) -> Row:
    return replace(row, values={**row.values, N: turn.chance.randrange(1000)}, updated=-1)


def _covering(turn: Turn, state: State, names: frozenset[str]) -> Where | None:
    """Return a filter that every row of the files matches, if such a one is easily told."""
    keys = {row.values.get(K) for name in names for row in state.files[name].rows}
    if None in keys or turn.chance.random() < 0.3:
        return None
    least = min(key for key in keys if key is not None)
    return Where(text=f"k >= {least}", field_id=K, kind=">=", literals=(least,))


def rewrite(turn: Turn) -> None:
    """Compact some files: the same rows in new files."""
    table = turn.table(ROWS)
    branch = a_branch(turn, table)
    turn.commit(*compaction(turn, table, branch))


def compaction(turn: Turn, table: Table, branch: str) -> tuple[Commit, Callable[[], Committed]]:
    """Return the commit that compacts some files, and what carries it out."""
    state = turn.state(table, branch)
    names = some_files(turn, state)
    rows = _seen(table, state, names)

    def do() -> Committed:
        with table.transaction(branch=branch) as tx:
            written = tx.adopt(_write(table, moved(table.schema, rows), keep_lineage=True))
            tx.rewrite(sorted(names), written)
            return tx.commit()

    spec = table.metadata.default_spec_id
    into = {row.row_id: place_of(row.values, table.metadata, spec) for row in rows}
    part = Part(intent=Intent.REWRITE, carried=rows, removed=names, spec=spec, into=into)
    return commit_on(table, f"compact {len(names)} files", branch=branch, parts=(part,)), do


def replace_some(turn: Turn) -> None:
    """Remove files and append rows, in one commit of two operations."""
    table = turn.table(ROWS)
    branch, isolation = a_branch(turn, table), an_isolation(turn)
    names = some_files(turn, turn.state(table, branch))
    rows = some_rows(turn, table.schema)

    def do() -> Committed:
        with table.transaction(branch=branch, isolation=isolation) as tx:
            if names:
                tx.delete_files(sorted(names))
            tx.append(arrow(table.schema, rows))
            return tx.commit()

    removing = (Part(intent=Intent.DELETE_FILES, removed=names),) if names else ()
    turn.commit(
        commit_on(
            table,
            f"delete {len(names)} files and append {len(rows)} rows",
            branch=branch,
            isolation=isolation,
            parts=(*removing, Part(intent=Intent.APPEND, added=rows)),
        ),
        do,
    )


def some_files(turn: Turn, state: State) -> frozenset[str]:
    """Return the names of a few data files."""
    names = sorted(state.files)
    return frozenset(turn.chance.sample(names, min(len(names), turn.chance.choice((1, 1, 2, 3)))))


def _seen(table: Table, state: State, names: frozenset[str]) -> tuple[Row, ...]:
    """Return the live rows of files as the handle's schema shows them."""
    ids = [field.field_id for field in table.schema.fields]
    return tuple(
        replace(row, values=dict(zip(ids, projected(row.values, table.schema), strict=True)))
        for name in sorted(names)
        for _, row in state.live_in(name)
    )


def _write(table: Table, data: pa.Table, *, keep_lineage: bool = False) -> pa.Table:
    return write_files(
        data,
        metadata=table.metadata,
        store=table.files.store,
        keep_lineage=keep_lineage,
    )


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "append files": (append_files, 4),
    "delete files": (delete_files, 6),
    "update": (update, 6),
    "rewrite": (rewrite, 6),
    "replace some": (replace_some, 5),
}
