"""One snapshot as an older version has it: its manifest list, and what manifests it lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec.structs import replace as changed

from icetree.codec.avro.avro import open_avro
from icetree.codec.encryption.stream import seal
from icetree.codec.legacy.encode_list import Listed, encode_manifest_list
from icetree.codec.legacy.encode_manifest import Layout
from icetree.errors import AlreadyExists, CorruptTable, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Entries
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import data_key_bytes
from icetree.spec.metadata.layout import PartitionField
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.table.export.known import (
    Known,
    Present,
    known_in,
    known_to_relatives,
)
from icetree.table.export.places import (
    apart,
    export_folder,
    list_shown,
)
from icetree.table.export.shown import partition_specs
from icetree.table.export.stand_ins import StandIns
from icetree.table.export.twins import Tree
from icetree.tree.leaf import NewFile
from icetree.tree.recount import with_counts

#: How often a manifest is put right that another puts right, too.
_TRIES: Final = 5


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


def _is_whole(at: str, files: TableFiles, present: Present) -> bool:
    """Tell whether a list can be read, and all that it names is there."""
    found = known_in(at, files, present.place)
    return found is not None and not any(map(present.missing, found.values()))


def _stored(listed: Listed, file: NewFile, files: TableFiles, present: Present | None) -> Listed:
    """Store a manifest, and return how it is listed; it may be there, packed by another machine.

    Where it is looked at what is present, one that cannot be read gives way.
    """
    at = listed.location
    for _ in range(_TRIES - 1):
        with suppress(AlreadyExists):
            files.store.write_new(at, file.content)
            return listed
        # Another that puts it right, too, may have taken it away just now.
        with suppress(NotFound):
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
