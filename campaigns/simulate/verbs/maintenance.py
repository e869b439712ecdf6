"""Maintenance: repairs now; expiring snapshots, removing orphans and the like belong here.

A verb of maintenance changes no row: its commit has no part that adds or removes any. One that
takes snapshots or files away tells the judge which, and these are not looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.judge import Finding
from campaigns.simulate.verbs.tables import ROWS

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb


def repair(turn: Turn) -> None:
    """Repair a table that has nothing wrong with it."""
    table = turn.table(ROWS)
    turn.told("repair")
    found = table.repair(dry_run=False)
    if found.actions or found.left:
        raise Finding("verify is clean", found.text())


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {"repair": (repair, 1)}
