"""Exporting a snapshot: its tree as a manifest list with Avro manifests, data files shared.

Files are written first, the manifest list last: one that is there is whole. Names follow from what
is exported, so whoever exports the same again finds it, and two who do so at once do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from msgspec.structs import replace as changed

from icetree.codec import metadata as metadata_codec
from icetree.codec.avro.avro import open_avro
from icetree.codec.encryption.stream import seal
from icetree.codec.legacy.encode_list import Listed, encode_manifest_list
from icetree.codec.legacy.encode_manifest import Layout
from icetree.errors import AlreadyExists, CorruptTable, IcetreeError, Unsupported
from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Entries
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import data_key_bytes, is_encrypted
from icetree.spec.metadata.layout import PartitionField
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Page, Snapshot
from icetree.spec.schema.shape import Shape
from icetree.spec.short import short
from icetree.table.export.known import (
    Known,
    Present,
    heads_of,
    known_in,
    known_of,
    known_to_relatives,
)
from icetree.table.export.places import (
    apart,
    export_folder,
    export_of,
    list_shown,
    manifest_list_at,
    metadata_at,
)
from icetree.table.export.shown import guarded, partition_specs, shown
from icetree.table.export.stand_ins import StandIns
from icetree.table.export.twins import Tree
from icetree.table.state import State
from icetree.tree.leaf import NewFile
from icetree.tree.recount import with_counts
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
    look: bool = False,
) -> Exported:
    """Write a snapshot, and the table's metadata, as an older version has them.

    With the `pages` of its history every snapshot of the table is written, and shown. Without,
    snapshots other than this one are shown where their exports would lie, whether they are there or
    not. `Unsupported` says what that version cannot say. What lists of exports name is taken for
    there, unless told to `look`: then whatever is missing, or broken, is made anew.
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
    present = Present.seen(files, absolute(folder, metadata.location)) if look else None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What the export of a snapshot came to."""

    #: Absolute.
    manifest_list: str | None = None
    #: As stored.
    written: tuple[str, ...] = ()
    reused: int = 0
    #: The manifests; none where the list was there already, and was not looked into.
    listed: tuple[Listed, ...] = ()
    #: What opens the manifest list of an encrypted table.
    key: bytes | None = field(default=None, repr=False)


def told_of(
    document: TableMetadata, snapshot: Snapshot, made: Made, files: TableFiles
) -> TableMetadata:
    """Return metadata that shows a snapshot's export where it is, with the key of its list.

    Those of an encrypted table have keys, and so names, of their own each time.
    """
    if made.key is None:
        return document
    document, key_id = files.ring.lock(document, made.key)
    return changed(
        document,
        snapshots=tuple(
            changed(each, manifest_list=made.manifest_list, key_id=key_id)
            if each.snapshot_id == snapshot.snapshot_id
            else each
            for each in document.snapshots
        ),
    )


def export_snapshot(
    metadata: TableMetadata,
    files: TableFiles,
    snapshot: Snapshot,
    format_version: int,
    *,
    known: Known | None = None,
    there: Collection[str] = frozenset(),
    look: bool = True,
    keep: bool = True,
    present: Present | None = None,
) -> Made:
    """Make sure that a snapshot's export is there, but for the metadata that shows it.

    Manifests that are there are those `known`, or looked for: in exports that are `there` for sure, before
    others. Unless told to `look` whether it is there as a whole, it is made. Its root is kept, for who
    reads it next, if so told. A list is believed, but for what is not `present` where that is known.
    """
    at = list_shown(snapshot, metadata.location, format_version)
    if at == snapshot.manifest_list:
        return Made(manifest_list=absolute(at, metadata.location))
    folder = export_folder(metadata.location, format_version)
    key_bytes = data_key_bytes(metadata.properties)
    at = at if key_bytes is None else apart(at)
    absolute_at = absolute(at, metadata.location)
    if look and key_bytes is None and files.store.exists(absolute_at):
        if present is None or _is_whole(absolute_at, files, present):
            return Made(manifest_list=absolute_at)
        # A list that is there is of what is there.
        files.store.delete([absolute_at])
    stand_ins = StandIns(files=files, table_location=metadata.location)
    without_dvs = stand_ins.told if format_version < 3 else None
    tree = _tree(metadata, files, snapshot, format_version, folder, without_dvs, keep=keep)
    listed: list[Listed] = []
    written: list[str] = []
    if key_bytes is not None:
        known = {}
    elif known is None:
        known = known_to_relatives(metadata, files, snapshot, folder, there)
    if present is not None:
        known = {part: some for part, some in known.items() if not present.missing(some)}
    for made in tree.manifests(known):
        listed.append(
            made.listed if made.file is None else _stored(made.listed, made.file, files, present)
        )
        written += [] if made.file is None else [made.file.location]
    if present is not None:
        present.add(listed)
    told = _header(snapshot, format_version)
    content = encode_manifest_list(listed, told, format_version=format_version)
    content, key = seal(content, key_bytes)
    with suppress(AlreadyExists):
        files.store.write_new(absolute_at, content)
    return Made(
        manifest_list=absolute_at,
        written=(*stand_ins.written, *written, at),
        reused=len(listed) - len(written),
        listed=tuple(listed),
        key=key,
    )


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


def _is_whole(at: str, files: TableFiles, present: Present) -> bool:
    """Tell whether a list can be read, and all that it names is there."""
    found = known_in(at, files, present.place)
    return found is not None and not any(map(present.missing, found.values()))


def _stored(listed: Listed, file: NewFile, files: TableFiles, present: Present | None) -> Listed:
    """Store a manifest, and return how it is listed; it may be there, packed by another machine.

    Where it is looked at what is present, one that cannot be read gives way.
    """
    at = listed.location
    try:
        files.store.write_new(at, file.content)
    except AlreadyExists:
        size_bytes = files.store.size(at)
        if present is None or size_bytes == listed.size_bytes or _is_sound(at, files):
            return replace(listed, size_bytes=size_bytes)
        files.store.delete([at])
        files.store.write_new(at, file.content)
    return listed


def _is_sound(at: str, files: TableFiles) -> bool:
    """Tell whether a manifest can be read to its end."""
    try:
        return all(row is not None for row in open_avro(files.store.read(at), file=at).rows())
    except CorruptTable:
        return False


def _tree(
    metadata: TableMetadata,
    files: TableFiles,
    snapshot: Snapshot,
    version: int,
    folder: str,
    without_dvs: Callable[[Entries], Entries] | None = None,
    *,
    keep: bool = True,
) -> Tree:
    schema_ids = {each["schema-id"] for each in metadata.schemas}
    schema_id = snapshot.schema_id if snapshot.schema_id in schema_ids else None
    shape = metadata.shape(schema_id)
    reader = files.reader(shape)
    root = files.root(snapshot, shape, keep=keep)
    if snapshot.root_manifest is None:
        root = with_counts(root, reader)
    return Tree(
        snapshot=snapshot,
        root=root,
        reader=reader,
        shape=shape,
        layouts=_layouts(metadata, shape, schema_id, version),
        folder=folder,
        table_location=metadata.location,
        format_version=version,
        key_bytes=data_key_bytes(metadata.properties),
        without_dvs=without_dvs,
    )


def _layouts(
    metadata: TableMetadata, shape: Shape, schema_id: int | None, version: int
) -> dict[int, Layout]:
    return {
        spec.spec_id: Layout(
            format_version=version,
            spec_id=spec.spec_id,
            fields=tuple(each for each in spec.fields if isinstance(each, PartitionField)),
            schema=metadata.schema_json(schema_id),
            shape=shape,
            table_location=metadata.location,
        )
        for spec in partition_specs(metadata)
    }


def _header(snapshot: Snapshot, version: int) -> dict[str, str]:
    parent = snapshot.parent_snapshot_id
    told = {
        "snapshot-id": str(snapshot.snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(snapshot.sequence_number),
    }
    if version >= 3 and snapshot.first_row_id is not None:
        told["first-row-id"] = str(snapshot.first_row_id)
    return told
