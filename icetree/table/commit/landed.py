"""What follows once a commit has landed: former metadata goes, an export is made.

Nothing here can fail the commit, or undo it. It is not for commits that are made aside: they have not
landed yet.
"""

from __future__ import annotations

from collections.abc import Callable

from icetree.files.table_files import TableFiles
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.properties.names import EXPORT_ON_COMMIT
from icetree.spec.properties.values import flag
from icetree.table.commit.forget import forgotten
from icetree.table.export.export import export
from icetree.table.state import State
from icetree.visible import log_of

log = log_of(__name__)


def after_landing(
    before: State | None, after: State, snapshot: Snapshot | None, files: TableFiles
) -> None:
    """Do what a table's properties ask for, between the head that was there and the one that is."""

    def forget() -> None:
        if before is not None and (past := forgotten(before, after, files)):
            files.delete(past)

    def tell() -> None:
        if flag(after.metadata.properties, EXPORT_ON_COMMIT, default=False):
            export(after, files, snapshot or after.metadata.current_snapshot())

    _whatever_happens(forget, f"{after.name}: former metadata stays")
    _whatever_happens(tell, f"{after.name} is not exported")


def _whatever_happens(do: Callable[[], None], otherwise: str) -> None:
    try:
        do()
    except Exception as error:
        log.warning("%s, though a commit has landed: %s", otherwise, error)
