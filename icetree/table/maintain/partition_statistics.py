"""Computing statistics of a snapshot's partitions: a row each, from metadata alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StructType

from icetree.errors import InvalidInput, Unsupported
from icetree.rows.schema import arrow_schema, plain
from icetree.spec.encryption import is_encrypted
from icetree.spec.entry import Content, Entries, is_content, is_data_dv
from icetree.spec.location import absolute
from icetree.spec.metadata import PartitionStatisticsFile
from icetree.spec.metadata_columns import partition_type
from icetree.spec.shape import Shape
from icetree.spec.snapshot import Snapshot
from icetree.spec.update import SetPartitionStatistics
from icetree.surroundings import new_uuid
from icetree.table.inspect.files import partition_facts
from icetree.table.maintain.statistics import keep, stored_name
from icetree.table.point import Point
from icetree.table.progress import Progress
from icetree.tree.leaf import NewFile
from icetree.tree.live import live_files

if TYPE_CHECKING:
    from icetree.table.table import Table

_LONG, _INT = LongType(), IntegerType()
#: The specification's fields after the partition: id, name, type, whether each row has it.
_FIELDS: Final = (
    (2, "spec_id", _INT, True),
    (3, "data_record_count", _LONG, True),
    (4, "data_file_count", _INT, True),
    (5, "total_data_file_size_in_bytes", _LONG, True),
    (6, "position_delete_record_count", _LONG, True),
    (7, "position_delete_file_count", _INT, True),
    (8, "equality_delete_record_count", _LONG, True),
    (9, "equality_delete_file_count", _INT, True),
    (10, "total_record_count", _LONG, False),
    (11, "last_updated_at", _LONG, False),
    (12, "last_updated_snapshot_id", _LONG, False),
    (13, "dv_count", _INT, True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """What was computed, or with `dry_run` would be kept."""

    #: None of a table without rows ever, and of a dry run.
    partition_statistics_file: str | None
    partition_count: int = 0
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "would tell" if self.dry_run else "told"
        return f"{verb} of {self.partition_count:,} partitions"


def compute_partition_stats(
    table: Table,
    *,
    at: Point | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> PartitionStatistics:
    """Keep what each partition of a snapshot holds."""
    tell = progress or (lambda *_: None)
    if is_encrypted(table.metadata):
        raise Unsupported(
            f"table {table.name} is encrypted, and the specification has no place for the key of a "
            "file with partition statistics, which would tell values"
        )
    snapshot = table.refresh().snapshot(at)
    shape = table.metadata.shape()
    if not partition_type(shape).fields:
        raise InvalidInput(f"table {table.name} has no partitions that statistics could be of")
    if snapshot is None:
        return PartitionStatistics(partition_statistics_file=None, dry_run=dry_run)
    found = partition_statistics(table, snapshot, shape)
    tell("partitions", found.num_rows, found.num_rows)
    if dry_run:
        return PartitionStatistics(
            partition_statistics_file=None, partition_count=found.num_rows, dry_run=True
        )
    out = pa.BufferOutputStream()
    pq.write_table(found, out, compression="zstd")
    content = out.getvalue().to_pybytes()
    name = f"metadata/partition-stats-{snapshot.snapshot_id}-{new_uuid()}.parquet"
    made = PartitionStatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=stored_name(table, name),
        file_size_in_bytes=len(content),
    )
    update = SetPartitionStatistics(partition_statistics=made)
    keep(table, snapshot, NewFile(location=name, content=content), update)
    return PartitionStatistics(
        partition_statistics_file=absolute(name, table.location), partition_count=found.num_rows
    )


def partition_statistics(table: Table, snapshot: Snapshot, shape: Shape) -> pa.Table:
    """Return a row for each partition with live files, as the specification lays them out."""
    files = table.files
    live = live_files(
        files.counted_root(snapshot, shape), files.reader(shape), root_file=snapshot.root_file
    )
    committed = table.inspect.snapshots().select(["snapshot_id", "committed_at"])
    facts = partition_facts(live, shape, committed)
    made = {
        "spec_id": facts["spec_id"],
        "data_record_count": facts["record_count"],
        "data_file_count": facts["file_count"],
        "total_data_file_size_in_bytes": facts["total_data_file_size_in_bytes"],
        "position_delete_record_count": facts["position_delete_record_count"],
        "position_delete_file_count": pc.subtract(
            facts["position_delete_file_count"], facts["dv_count"]
        ),
        "equality_delete_record_count": facts["equality_delete_record_count"],
        "equality_delete_file_count": facts["equality_delete_file_count"],
        "total_record_count": _total(live, facts),
        "last_updated_at": facts["last_updated_at"]
        .cast(pa.timestamp("ms", "UTC"))
        .cast(pa.int64()),
        "last_updated_snapshot_id": facts["last_updated_snapshot_id"],
        "dv_count": facts["dv_count"],
    }
    schema = arrow_schema(_schema(shape))
    partition = _partition(facts["partition"], schema.field("partition").type)
    columns = [made[name].cast(schema.field(name).type) for _, name, _, _ in _FIELDS]
    found = pa.table([partition, *columns], schema=schema)
    keys: dict[str, Any] = {}
    for at, each in enumerate(partition.flatten()):
        # What is null comes first, whatever Arrow would do with it.
        keys |= {f"{at} is there": each.is_valid(), f"{at}": plain(each)}
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return found.take(order)


def _total(live: Entries, facts: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Return the rows that are left; unknown where rows would have to be read to tell."""
    data_dvs = is_data_dv(live)
    files = pc.and_not(is_content(live, Content.POSITION_DELETES), data_dvs)
    unsure = pc.or_(files, is_content(live, Content.EQUALITY_DELETES))
    if pc.any(unsure).as_py():
        return pa.nulls(facts.num_rows, pa.int64())
    return pc.subtract(facts["record_count"], facts["position_delete_record_count"])


def _schema(shape: Shape) -> Schema:
    """Return the schema of the file: its partition has fields by partition field id, in order."""
    fields = []
    for each in partition_type(shape).fields:
        id = shape.expressions[each.field_id].partition_field_id or each.field_id
        fields.append(NestedField(id, each.name, each.field_type, required=False))
    partition = StructType(*sorted(fields, key=lambda each: each.field_id))
    rest = (NestedField(id, name, type, required=always) for id, name, type, always in _FIELDS)
    return Schema(NestedField(1, "partition", partition, required=True), *rest)


def _partition(partition: pa.ChunkedArray, type: pa.StructType) -> pa.StructArray:
    """Return the partitions with their fields in order and of the types of the file."""
    values = partition.combine_chunks()
    arrays = []
    for each in type:
        found = values.field(each.name)
        arrays.append(found if found.type == each.type else _as(found, each.type))
    return pa.StructArray.from_arrays(arrays, fields=[*type])


def _as(values: pa.Array, type: pa.DataType) -> pa.Array:
    if isinstance(type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type, values.cast(type.storage_type))
    return values.cast(type)
