"""Verbs that read: rows of any snapshot, filtered or not, and changes between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.laws import require_changes, require_rows
from campaigns.simulate.verbs.tables import ROWS, some_filter

if TYPE_CHECKING:
    from campaigns.simulate.model import State
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.table import Table


def scan(turn: Turn) -> None:
    """Read a snapshot, with a filter or without."""
    table = turn.table(ROWS)
    known = [state for state in turn.world.history(ROWS).states.values() if _seen(state, table)]
    where = some_filter(turn) if turn.chance.random() < 0.6 else None
    state = turn.chance.choice(known) if known and turn.chance.random() < 0.5 else turn.state(table)
    turn.told(f"scan #{state.sequence}{f' where {where.text!r}' if where else ''}")
    require_rows(table, state, where)


def changes(turn: Turn) -> None:
    """Read the changes from one snapshot to another."""
    table = turn.table(ROWS)
    history = turn.world.history(ROWS)
    lineage = list(history.ancestors(turn.state(table).id))[::-1]
    if not lineage:
        return
    first = turn.chance.randrange(-1, len(lineage))
    last = min(len(lineage) - 1, first + turn.chance.randrange(1, 5))
    since = history.states[None] if first < 0 else lineage[first]
    turn.told(f"read changes after #{since.sequence} up to #{lineage[last].sequence}")
    require_changes(table, since, lineage[last], net=turn.chance.random() < 0.5)


def _seen(state: State, table: Table) -> bool:
    return state.id is not None and state.sequence <= table.metadata.last_sequence_number


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {"scan": (scan, 8), "changes": (changes, 4)}
