"""Verbs that read: rows of any snapshot, filtered or not, and changes between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.finding import Finding
from campaigns.simulate.laws import require_changes, require_rows
from campaigns.simulate.verbs.tables import ROWS, some_filter, time_of
from icetree.errors import NotFound

if TYPE_CHECKING:
    from campaigns.simulate.model import State
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.table import Table


def scan(turn: Turn) -> None:
    """Read a snapshot, with a filter or without."""
    table = turn.table(ROWS)
    known = [
        state for state in turn.world.history(ROWS).states.values() if _seen(turn, state, table)
    ]
    where = some_filter(turn) if turn.chance.random() < 0.6 else None
    state = turn.chance.choice(known) if known and turn.chance.random() < 0.5 else turn.state(table)
    turn.told(f"scan #{state.sequence}{f' where {where.text!r}' if where else ''}")
    require_rows(table, state, where)


def scan_ref(turn: Turn) -> None:
    """Read a branch or a tag, with a filter or without."""
    table = turn.table(ROWS)
    if not table.refs:
        return
    ref = turn.chance.choice(sorted(table.refs))
    where = some_filter(turn) if turn.chance.random() < 0.6 else None
    turn.told(f"scan {ref!r}{f' where {where.text!r}' if where else ''}")
    state = turn.world.history(ROWS).states[table.refs[ref].snapshot_id]
    require_rows(table, state, where, at=ref)


def scan_time(turn: Turn) -> None:
    """Read the table as it was at a time."""
    table = turn.table(ROWS)
    history = turn.world.history(ROWS)
    past = history.versions[: history.number_of(table.state.metadata_location) + 1]
    heads = [(each.metadata.last_updated_ms, each.metadata.current_snapshot_id) for each in past]
    at_ms = turn.chance.choice(heads)[0] + turn.chance.choice((-1, 0, 0, 1))
    id = next((id for then_ms, id in reversed(heads) if then_ms <= at_ms), None)
    state = history.states[id]
    turn.told(f"scan #{state.sequence}, by a time")
    try:
        require_rows(table, state, at=time_of(at_ms))
    except NotFound as error:
        # With a snapshot that expires, the log loses all up to its last mention.
        if id is not None and not history.expired:
            raise Finding("rows", f"#{state.sequence} was there, but {error}") from None


def changes(turn: Turn) -> None:
    """Read the changes from one snapshot to another."""
    table = turn.table(ROWS)
    history = turn.world.history(ROWS)
    lineage = history.told(turn.state(table).id)[::-1]
    if len(lineage) < 2:
        return
    first = turn.chance.randrange(len(lineage) - 1)
    last = min(len(lineage) - 1, first + turn.chance.randrange(1, 5))
    since = lineage[first]
    turn.told(f"read changes after #{since.sequence} up to #{lineage[last].sequence}")
    require_changes(table, since, lineage[last], net=turn.chance.random() < 0.5)


def _seen(turn: Turn, state: State, table: Table) -> bool:
    is_older = state.id is not None and state.sequence <= table.metadata.last_sequence_number
    return is_older and turn.world.history(ROWS).knows(table.state.metadata_location, state.id)


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "scan": (scan, 6),
    "scan ref": (scan_ref, 2),
    "scan time": (scan_time, 3),
    "changes": (changes, 4),
}
