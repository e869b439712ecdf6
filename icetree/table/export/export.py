"""Exporting a snapshot: its tree as a manifest list with Avro manifests, data files shared.

Files are written first, the manifest list last: one that is there is whole. Names follow from what
is exported, so whoever exports the same again finds it, and two who do so at once do no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from icetree.codec import metadata as metadata_codec
from icetree.codec.legacy.encode_list import Listed
from icetree.errors import AlreadyExists, IcetreeError, Unsupported
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Page, Snapshot
from icetree.spec.short import short
from icetree.table.export.known import (
    Present,
    heads_of,
    known_in,
    known_of,
)
from icetree.table.export.places import (
    apart,
    export_folder,
    export_of,
    manifest_list_at,
    metadata_at,
)
from icetree.table.export.shown import guarded, shown
from icetree.table.export.snapshot import Made, export_snapshot, told_of
from icetree.table.state import State
from icetree.visible import log_of, visible

log = log_of(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Where an export lies, and what was written for it."""

    format_version: int
    snapshot_id: int | None
    #: Absolute, and so are all that follow.
    metadata_location: str
    manifest_list: str | None
    written: tuple[str, ...]
    #: Manifests that were there already.
    reused_manifests_count: int
    #: How many snapshots are exported, of those that the metadata shows.
    snapshot_count: int

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        what = "an empty table" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        what = f"{self.snapshot_count:,} snapshots" if self.snapshot_count > 1 else what
        return visible(
            f"exported {what} as v{self.format_version}: {self.metadata_location}; "
            f"{len(self.written):,} files written, {self.reused_manifests_count:,} manifests reused"
        )


def export(
    state: State,
    files: TableFiles,
    snapshot: Snapshot | None,
    *,
    format_version: int = 3,
    pages: Sequence[Page] | None = None,
    mends: bool = False,
) -> Exported:
    """Write a snapshot, and the table's metadata, as an older version has them.

    With the `pages` of its history every snapshot of the table is written, and shown. Without,
    snapshots other than this one are shown where their exports would lie, whether they are there or
    not. `Unsupported` says what that version cannot say. What lists of exports name is taken for
    there, unless it `mends`: then whatever of it is missing, or broken, is made anew.
    """
    metadata = state.metadata
    is_past = snapshot is not None and snapshot.snapshot_id not in metadata.by_id
    more = [each for page in pages or () for each in page.snapshots]
    if pages is None and snapshot is not None and is_past:
        more.append(snapshot)
    more_log = [each for page in pages or () for each in page.snapshot_log]
    document = shown(metadata, format_version=format_version, more=more, more_log=more_log)
    if document is metadata:
        return _as_it_is(state, snapshot)
    wanted = [] if snapshot is None else [snapshot]
    if pages is not None:
        others = {each.snapshot_id: each for each in (*more, *metadata.snapshots)}
        by_age = sorted(others.values(), key=lambda each: each.sequence_number, reverse=True)
        wanted += [each for each in by_age if each != snapshot]
    folder = export_folder(metadata.location, format_version)
    present = Present.seen(files, absolute(folder, metadata.location)) if mends else None
    series, every = Series(format_version=format_version, present=present), list[Made]()
    for each in wanted:
        made = series.export(metadata, files, each, keep=each is snapshot)
        document = told_of(document, each, made, files)
        every.append(made)
    past = "history" if pages else str(snapshot.snapshot_id) if snapshot and is_past else None
    location = metadata_at(folder, state.metadata_location, past)
    location = location if all(each.key is None for each in every) else apart(location)
    content = metadata_codec.encode(guarded(document), compress=False)
    written = [name for each in every for name in each.written]
    with suppress(AlreadyExists):
        files.store.write_new(absolute(location, metadata.location), content)
        written.append(location)
    return Exported(
        format_version=format_version,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        metadata_location=absolute(location, metadata.location),
        manifest_list=every[0].manifest_list if every else None,
        written=tuple(absolute(each, metadata.location) for each in written),
        reused_manifests_count=sum(each.reused for each in every),
        snapshot_count=len(every),
    )


def _as_it_is(state: State, snapshot: Snapshot | None) -> Exported:
    return Exported(
        format_version=state.metadata.format_version,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        metadata_location=state.metadata_location,
        manifest_list=None if snapshot is None else snapshot.manifest_list,
        written=(),
        reused_manifests_count=0,
        snapshot_count=0 if snapshot is None else 1,
    )


def export_heads(
    metadata: TableMetadata,
    files: TableFiles,
    *,
    format_version: int = 3,
    there: Collection[str] = frozenset(),
) -> set[str]:
    """Make sure that what branches and tags point to is exported; return what tells those that are.

    Of what is `there` nothing is asked. `Unsupported` where that version cannot say it all. A store
    that cannot be written to is no reason not to show a table: who plans at the server needs no export.
    Nor is one made of an encrypted table: only who wrote it would know its keys.
    """
    done: set[str] = set()
    if metadata.format_version <= format_version or is_encrypted(metadata):
        return done
    for each in heads_of(metadata):
        if export_of(each) in there:
            continue
        try:
            export_snapshot(metadata, files, each, format_version, there=there)
            done.add(export_of(each))
        except Unsupported:
            raise
        except (IcetreeError, OSError) as error:
            log.warning(
                "snapshot %d of %s is not exported: %s", each.snapshot_id, metadata.location, error
            )
    return done


@dataclass(slots=True, kw_only=True)
class Series:
    """Exports snapshots of a table one after the other: each uses what those before it have."""

    format_version: int
    #: What is there, where that was looked at.
    present: Present | None = None
    _known: dict[str, list[Listed]] = field(default_factory=dict)

    def learn(
        self, metadata: TableMetadata, files: TableFiles, snapshots: Iterable[Snapshot]
    ) -> None:
        """Look into exports that are there, for what others may use."""
        folder = export_folder(metadata.location, self.format_version)
        for each in snapshots:
            at = absolute(manifest_list_at(folder, each), metadata.location)
            self._known |= known_in(at, files, absolute(folder, metadata.location)) or {}

    def export(
        self,
        metadata: TableMetadata,
        files: TableFiles,
        snapshot: Snapshot,
        *,
        look: bool = True,
        keep: bool = False,
    ) -> Made:
        """Do `export_snapshot`."""
        known, version = self._known or None, self.format_version
        made = export_snapshot(
            metadata,
            files,
            snapshot,
            version,
            known=known,
            look=look,
            keep=keep,
            present=self.present,
        )
        place = absolute(export_folder(metadata.location, version), metadata.location)
        self._known |= known_of(made.listed, place)
        return made
