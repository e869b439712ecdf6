"""Computing statistics of a snapshot: how many distinct values its columns have, by theta sketches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.codec import puffin, theta
from icetree.codec.encryption.stream import seal
from icetree.errors import CommitUnknown, IcetreeError, InvalidInput
from icetree.rows.schema import arrow_type
from icetree.rows.serialized import can_be_serialized, distinct, serialized
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import data_key_bytes
from icetree.spec.metadata.metadata import StatisticsFile
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.metadata.update import AddEncryptionKey, SetPartitionStatistics, SetStatistics
from icetree.spec.short import short
from icetree.spec.texts import did_you_mean
from icetree.surroundings import new_uuid
from icetree.table.arguments import texts
from icetree.table.maintain.newest import on_newest
from icetree.table.point import Point
from icetree.table.progress import Progress
from icetree.tree.leaf import NewFile
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatistics:
    """What was computed, or with `dry_run` would be kept."""

    #: None of a table without rows ever, and of a dry run.
    statistics_file: str | None
    #: By column, how many distinct values it has, nearly.
    ndv: dict[str, int] = field(default_factory=dict)
    dry_run: bool = False

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        told = ", ".join(f"{name} {count:,}" for name, count in self.ndv.items())
        return visible(f"distinct values: {told or 'none, for the table is empty'}")


def compute_table_stats(
    table: Table,
    *,
    columns: Iterable[str] | None = None,
    at: Point | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> TableStatistics:
    """Read the columns of a snapshot, and keep how many distinct values they have."""
    tell = progress or (lambda *_: None)
    found = on_newest(table, lambda: _read(table, at, columns, tell))
    if found is None:
        return TableStatistics(statistics_file=None, dry_run=dry_run)
    snapshot, wanted, sketches = found
    ndv = {each.name: int(sketches[each.name].estimate) for each in wanted}
    if dry_run:
        return TableStatistics(statistics_file=None, ndv=ndv, dry_run=True)
    written = puffin.write([_blob(each, sketches[each.name], snapshot) for each in wanted])
    name = f"metadata/{snapshot.snapshot_id}-{new_uuid()}.stats"
    footer = max((each.offset + each.length for each in written.blobs), default=len(puffin.MAGIC))
    content, key = seal(written.data, data_key_bytes(table.properties))
    key_id, keys = (None, []) if key is None else _locked(table, key)
    made = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=stored_name(table, name),
        file_size_in_bytes=len(content),
        file_footer_size_in_bytes=len(written.data) - footer,
        # The id of a key, as snapshots have one: metadata is plain, and holds no key as it is.
        key_metadata=key_id,
        blob_metadata=tuple(_told(each) for each in written.blobs),
    )
    keep(
        table,
        snapshot,
        NewFile(location=name, content=content),
        *keys,
        SetStatistics(statistics=made),
    )
    return TableStatistics(statistics_file=absolute(name, table.location), ndv=ndv)


def _locked(table: Table, key: bytes) -> tuple[str, list[AddEncryptionKey]]:
    """Return the id of a file's key metadata in the table's, and what puts it there."""
    before = table.metadata.encryption_keys
    after, key_id = table.files.ring.lock(table.metadata, key)
    new = after.encryption_keys[len(before) :]
    return key_id, [AddEncryptionKey(encryption_key=each) for each in new]


def stored_name(table: Table, name: str) -> str:
    """Return a file's name as the table's metadata has it: before v4, in full."""
    return name if table.metadata.format_version >= 4 else absolute(name, table.location)


def keep(
    table: Table,
    snapshot: Snapshot,
    file: NewFile,
    *updates: AddEncryptionKey | SetStatistics | SetPartitionStatistics,
) -> None:
    """Write a file of statistics and have the table name it, while it has the snapshot."""
    table.files.write([file])
    transaction = table.transaction()
    transaction.update_metadata(*updates)
    transaction.pick(snapshot.snapshot_id)
    try:
        transaction.commit()
    except CommitUnknown:
        raise
    except IcetreeError:
        table.files.delete([file.location])
        raise


def _wanted(schema: Schema, columns: Iterable[str] | None) -> list[NestedField]:
    if columns is None:
        return [each for each in schema.fields if can_be_serialized(arrow_type(each.field_type))]
    known = {each.name: each for each in schema.fields}
    found = []
    for name in dict.fromkeys(texts(columns, what="columns")):
        if name not in known:
            hint = did_you_mean(name, known)
            raise InvalidInput(f"columns has {name!r}: the table has {', '.join(known)}{hint}")
        if not can_be_serialized(arrow_type(known[name].field_type)):
            raise InvalidInput(
                f"columns has {name!r}, which is {known[name].field_type}: give columns of single "
                "values"
            )
        found.append(known[name])
    return found


def _read(
    table: Table, at: Point | None, columns: Iterable[str] | None, tell: Progress
) -> tuple[Snapshot, list[NestedField], dict[str, theta.Sketch]] | None:
    """Return a snapshot, columns and what they hold; None of a table without rows ever."""
    snapshot = table.snapshot(at)
    if snapshot is None:
        return None
    wanted = _wanted(table.scan(at=at).schema, columns)
    return snapshot, wanted, _sketches(table, at, wanted, tell)


def _sketches(
    table: Table, at: Point | None, wanted: list[NestedField], tell: Progress
) -> dict[str, theta.Sketch]:
    found = {each.name: theta.Sketch() for each in wanted}
    if not found:
        return found
    done = 0
    for batch in table.scan(columns=[*found], at=at).to_batches():
        for name, sketch in found.items():
            values = serialized(distinct(batch.column(name)))
            sketch.add(values.content, values.starts, values.lengths)
        done += batch.num_rows
        tell("rows", done, done)
    return found


def _blob(column: NestedField, sketch: theta.Sketch, snapshot: Snapshot) -> puffin.NewBlob:
    return puffin.NewBlob(
        type=theta.BLOB,
        payload=sketch.encode(),
        fields=(column.field_id,),
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        properties={theta.NDV: str(int(sketch.estimate))},
    )


def _told(blob: puffin.Blob) -> dict[str, Any]:
    """Return what table metadata repeats of a blob."""
    return {
        "type": blob.type,
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "fields": [*blob.fields],
        "properties": dict(blob.properties),
    }
