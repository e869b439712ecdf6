"""Exports: a snapshot as older versions have it, there as long as the snapshot is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.laws import require_rows
from campaigns.simulate.verbs.tables import ROWS
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import NotFound, Unsupported
from icetree.table.lake import Lake

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb


def export(turn: Turn) -> None:
    """Export what a handle has seen; whoever reads the export sees the snapshot's rows."""
    table = turn.table(ROWS)
    state = turn.state(table)
    turn.told(f"export #{state.sequence}")
    if state.id is None:
        return
    try:
        exported = table.export(at=state.id)
    except Unsupported as error:
        turn.told(f"    refused: {error}")
        return
    history = turn.world.history(ROWS)
    if state.id in history.expired or not exported.written:
        return
    turn.world.judge.exported(table.name, state.id, exported.written)
    catalog = MemoryCatalog("exported")
    catalog.create_namespace(table.name.namespace, {})
    catalog.create(table.name, exported.metadata_location)
    readers = Lake(catalog=catalog, store=turn.world.store, warehouse="memory://lake")
    try:
        require_rows(readers.table(ROWS), state)
    except NotFound:
        if state.id not in history.expired:
            raise


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {"export": (export, 2)}
