"""Copies that share data files: whatever is done to one, the table it was made of keeps its files.

The judge looks at what is deleted; of what is committed to a copy it knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.laws import require_rows
from campaigns.simulate.line import LineCatalog, LineStore
from campaigns.simulate.verbs.tables import ROWS, arrow, some_filter, some_rows
from icetree.errors import CommitExhausted, CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.table.lake import Lake

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.table import Table

_LATER: Final = "2100-01-01T00:00:00Z"


def share(turn: Turn) -> None:
    """Copy a table's metadata alone, change the copy, clear up after it, and drop it at times."""
    world, line = turn.world, turn.writer.line
    lake = Lake(
        catalog=LineCatalog(world.catalog, line, lambda: lambda *_: None),
        store=LineStore(world.store, line),
        warehouse="memory://lake",
    )
    name, history = f"db.copy{turn.step.number}", world.history(ROWS)
    turn.told(f"share files with {name}")
    gone = len(history.expired)
    try:
        copied = lake.copy_table(ROWS, name, metadata_only=True)
    except (InvalidInput, Unsupported, CommitExhausted) as error:
        turn.told(f"    refused: {error}")
        return
    try:
        require_rows(copied, history.states[copied.metadata.current_snapshot_id])
        for what, do in _changes(turn, lake):
            turn.told(f"    {what}")
            do(copied)
    except (NotFound, CorruptTable):
        # The table's own maintenance takes away what its copies may still need.
        if len(history.expired) == gone:
            raise
    except InvalidInput as error:
        # Nor is anything deleted beside a copy that has lost what it needs.
        if not history.expired or "and cannot be read" not in str(error):
            raise
        turn.told(f"    refused: {error}")


def _changes(turn: Turn, lake: Lake) -> list[tuple[str, Callable[[Table], object]]]:
    """Return things to do to a copy, in an order of their own."""
    where = some_filter(turn).text

    def append(copied: Table) -> None:
        copied.append(arrow(copied.schema, some_rows(turn, copied.schema)))

    changes: list[tuple[str, Callable[[Table], object]]] = [
        ("append", append),
        (f"delete {where!r}", lambda copied: copied.delete(where)),
        (
            "compact all",
            lambda copied: copied.maintenance.rewrite_data_files(options={"rewrite-all": True}),
        ),
    ]
    clearing: list[tuple[str, Callable[[Table], object]]] = [
        (
            "expire all",
            lambda copied: copied.maintenance.expire_snapshots(older_than=_LATER, retain_last=1),
        ),
        (
            "remove orphans",
            lambda copied: copied.maintenance.remove_orphan_files(older_than=_LATER, force=True),
        ),
    ]
    drawn = turn.chance.sample(changes, 2) + turn.chance.sample(clearing, 2)
    if turn.chance.random() < 0.5:
        drawn.append(("drop it", lambda copied: lake.drop_table(str(copied.name), purge=True)))
    return drawn


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {"share": (share, 1)}
