"""Verbs that bring rows in and take them out, whole files at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.intent import commit_on
from campaigns.simulate.model import Part, State, Where, place_of
from campaigns.simulate.verbs.tables import (
    ROWS,
    a_branch,
    an_isolation,
    arrow,
    some_filter,
    some_rows,
)
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb


def append(turn: Turn) -> None:
    """Append rows."""
    table = turn.table(ROWS)
    branch, rows = a_branch(turn, table), some_rows(turn, table.schema)
    part = Part(intent=Intent.APPEND, added=rows)
    turn.commit(
        commit_on(table, f"append {len(rows)} rows", branch=branch, parts=(part,)),
        lambda: table.append(arrow(table.schema, rows), branch=branch),
    )


def append_once(turn: Turn) -> None:
    """Append rows under a key, again until it is known whether it was done."""
    table = turn.table(ROWS)
    key = f"key {turn.step.number // turn.chance.choice((1, 5))}"
    branch, rows = a_branch(turn, table), some_rows(turn, table.schema)
    for _ in range(3):
        part = Part(intent=Intent.APPEND, added=rows)
        commit = commit_on(
            table, f"append {len(rows)} rows as {key!r}", branch=branch, parts=(part,), key=key
        )
        if turn.commit(
            commit, lambda: table.append(arrow(table.schema, rows), branch=branch, key=key)
        ):
            return
        if branch not in table.refresh().refs and branch != "main":
            return


def overwrite(turn: Turn) -> None:
    """Replace the rows that match a filter."""
    table = turn.table(ROWS)
    branch, isolation, where = a_branch(turn, table), an_isolation(turn), some_filter(turn)
    state = turn.state(table, branch)
    rows = some_rows(turn, table.schema, where)
    removed, vectors = _going(state, where)
    intent = Intent.ROW_DELTA if _in_part(state, where) else Intent.OVERWRITE_BY_FILTER
    part = Part(intent=intent, where=where, added=rows, removed=removed, vectors=vectors)
    commit = commit_on(
        table,
        f"overwrite '{where.text}' by {len(rows)} rows",
        branch=branch,
        isolation=isolation,
        parts=(part,),
        relies_on=frozenset({"current_schema_id"}),
        # Bounds do not tell that both values of `in` are all there are between them.
        may_refuse=where.kind == "in",
    )
    turn.commit(
        commit,
        lambda: table.overwrite(
            where.text, arrow(table.schema, rows), branch=branch, isolation=isolation
        ),
    )


def delete(turn: Turn) -> None:
    """Delete the rows that match a filter, and files that hold nothing else."""
    table = turn.table(ROWS)
    branch, isolation, where = a_branch(turn, table), an_isolation(turn), some_filter(turn)
    state = turn.state(table, branch)
    removed, vectors = _going(state, where)
    intent = Intent.ROW_DELTA if _in_part(state, where) else Intent.DELETE_BY_FILTER
    part = Part(intent=intent, where=where, removed=removed, vectors=vectors)
    commit = commit_on(
        table,
        f"delete '{where.text}'",
        branch=branch,
        isolation=isolation,
        parts=(part,),
        relies_on=frozenset({"current_schema_id"}),
    )
    turn.commit(commit, lambda: table.delete(where.text, branch=branch, isolation=isolation))


def _going(state: State, where: Where) -> tuple[frozenset[str], dict[str, frozenset[int]]]:
    """Return the files that go as a whole, and the rows that are marked in others."""
    whole = {file.name for file in state.files.values() if where.must_match(file)}
    marked: dict[str, set[int]] = {}
    for file, position, row in state.live():
        if file.name not in whole and where.matches(row.values):
            marked.setdefault(file.name, set()).add(position)
    for name, positions in marked.items():
        if len(positions) + len(state.gone.get(name, ())) >= len(state.files[name].rows):
            whole.add(name)
    vectors = {name: frozenset(rows) for name, rows in marked.items() if name not in whole}
    return frozenset(whole), vectors


def _in_part(state: State, where: Where) -> bool:
    files = state.files.values()
    return any(where.may_match(file) and not where.must_match(file) for file in files)


def replace_partitions(turn: Turn) -> None:
    """Replace every partition that new rows are in."""
    table = turn.table(ROWS)
    branch, isolation = a_branch(turn, table), an_isolation(turn)
    state, rows = turn.state(table, branch), some_rows(turn, table.schema)
    metadata = table.metadata
    places = frozenset(place_of(row, metadata, metadata.default_spec_id) for row in rows)
    whole = any(not values for _, values in places)
    removed = frozenset(name for name, file in state.files.items() if whole or file.place in places)
    part = Part(intent=Intent.REPLACE_PARTITIONS, added=rows, removed=removed, places=places)
    turn.commit(
        commit_on(
            table,
            f"replace {len(places)} partitions by {len(rows)} rows",
            branch=branch,
            isolation=isolation,
            parts=(part,),
        ),
        lambda: table.replace_partitions(
            arrow(table.schema, rows), branch=branch, isolation=isolation
        ),
    )


def truncate(turn: Turn) -> None:
    """Remove everything."""
    table = turn.table(ROWS)
    branch, isolation = a_branch(turn, table), an_isolation(turn)
    state = turn.state(table, branch)
    part = Part(
        intent=Intent.DELETE_BY_FILTER, removed=frozenset(state.files), lifted=state.equality
    )
    turn.commit(
        commit_on(
            table,
            "truncate",
            branch=branch,
            isolation=isolation,
            parts=(part,),
            relies_on=frozenset({"current_schema_id"}),
        ),
        lambda: table.truncate(branch=branch, isolation=isolation),
    )


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "append": (append, 12),
    "append once": (append_once, 4),
    "overwrite": (overwrite, 6),
    "delete": (delete, 6),
    "replace partitions": (replace_partitions, 6),
    "truncate": (truncate, 1),
}
