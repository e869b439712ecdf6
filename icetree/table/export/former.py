"""Exports of former snapshots, which no branch or tag points to: who reads history looks for them.

Each is a list and a small manifest or two of its own: twins are those of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from icetree.errors import CorruptTable, NotFound, Unsupported
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.export.export import Series
from icetree.table.export.known import heads_of
from icetree.table.export.places import export_folder, export_of, is_list, list_shown
from icetree.table.export.snapshot import Made
from icetree.visible import log_of

log = log_of(__name__)

#: So many of the newest snapshots that are shown have exports, beside those of branches and tags.
MOST: Final = 100
#: Of so many heads the lists are looked into.
_HEADS: Final = 8


def former_of(
    metadata: TableMetadata, shown: Iterable[Snapshot], format_version: int
) -> list[Snapshot]:
    """Return the former snapshots that are to have exports, of all that are shown, newest first.

    Those of before an upgrade have manifest lists of their own, if the version can read them.
    """
    heads = {each.snapshot_id for each in heads_of(metadata)}
    newest = sorted(shown, key=lambda each: (each.sequence_number, each.timestamp_ms))[-MOST:]
    return [
        each
        for each in reversed(newest)
        if each.snapshot_id not in heads
        and list_shown(each, metadata.location, format_version) != each.manifest_list
    ]


def exports_in(metadata: TableMetadata, files: TableFiles, format_version: int) -> set[str]:
    """Return what tells the exports that are there, with one look at their folder."""
    place = absolute(export_folder(metadata.location, format_version), metadata.location)
    names = (each.location.removeprefix(place) for each in files.store.list(place))
    return {each.removeprefix("snap-").removesuffix(".avro") for each in names if is_list(each)}


@dataclass(slots=True, kw_only=True)
class Former:
    """Exports former snapshots of a table that others change meanwhile, one at each step.

    Of a snapshot that expires while it is exported nothing stays that is its own.
    """

    format_version: int
    #: The table as it is when that is asked; NotFound where its name is nobody's, or another's.
    newest: Callable[[], TableMetadata]
    #: The table's files; and the same for work that may have to end.
    files: TableFiles
    ending: TableFiles
    #: Where the metadata is that the work began with.
    metadata_location: str
    _now: TableMetadata | None = None
    _series: Series | None = None
    #: What was found with one look at all.
    _seen: set[str] | None = None

    def look(self) -> set[str]:
        """Return what tells the exports that are there."""
        self._seen = exports_in(self._newest(), self.ending, self.format_version)
        return self._seen

    def export(self, snapshot: Snapshot, near: Collection[Snapshot]) -> None:
        """Export a snapshot, if the table still has it, and an older version can say it.

        `near` are some of which exports are there. What is raised ends the whole work.
        """
        metadata = self._newest()
        if not self._has(metadata, snapshot):
            return
        if self._series is None:
            self._series = Series(format_version=self.format_version)
            self._series.learn(metadata, self.ending, [*heads_of(metadata)[:_HEADS], *near])
        try:
            made = self._series.export(metadata, self.ending, snapshot, look=self._seen is None)
        except (Unsupported, CorruptTable, NotFound) as error:
            log.info(
                "snapshot %d of %s is not exported as v%d: %s",
                snapshot.snapshot_id,
                metadata.location,
                self.format_version,
                error,
            )
            return
        self._settle(snapshot, made)

    def _settle(self, snapshot: Snapshot, made: Made) -> None:
        """Look whether the snapshot is still there: who expired it may have tidied up before."""
        self._now = None
        if not made.written:
            return
        try:
            metadata = self._newest()
        except NotFound:
            if self.files.store.exists(self.metadata_location):
                # It has another name, or is nobody's, with all its files.
                raise
            self._delete(made.written)
            raise
        if not self._has(metadata, snapshot):
            # Twins may be others' too: they are of their leaf, and go with it.
            self._delete(each for each in made.written if f"/snap-{export_of(snapshot)}" in each)

    def _delete(self, stored: Iterable[str]) -> None:
        self.files.store.delete([absolute(each, self.files.location) for each in stored])

    def _newest(self) -> TableMetadata:
        if self._now is None:
            self._now = self.newest()
            if self._now.location != self.files.location:
                raise NotFound(f"{self.files.location}: the table is elsewhere now")
        return self._now

    def _has(self, metadata: TableMetadata, snapshot: Snapshot) -> bool:
        return any(
            export_of(each) == export_of(snapshot)
            for each in history(metadata, self.files.page)
            if each.snapshot_id == snapshot.snapshot_id
        )
