"""Statistics of partitions as rows: what files come to, laid out as the specification says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StructType

from icetree.rows.schema import arrow_schema, plain
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.metadata_columns import partition_type
from icetree.spec.schema.shape import Shape
from icetree.table.inspect.files import partition_facts

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
#: What adds up, file by file.
SUMS: Final = tuple(name for _, name, _, always in _FIELDS if always and name != "spec_id")


def committed_at(table: Table) -> pa.Table:
    """Return when the snapshots were that the table knows of."""
    return table.inspect.snapshots().select(["snapshot_id", "committed_at"])


def partition_rows(files: Entries, shape: Shape, committed: pa.Table) -> pa.Table:
    """Return a row for each partition that has some of the files, less what all rows tell."""
    facts = partition_facts(files, shape, committed)
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
        "total_record_count": pa.nulls(facts.num_rows, pa.int64()),
        "last_updated_at": facts["last_updated_at"]
        .cast(pa.timestamp("ms", "UTC"))
        .cast(pa.int64()),
        "last_updated_snapshot_id": facts["last_updated_snapshot_id"],
        "dv_count": facts["dv_count"],
    }
    schema = schema_of(shape)
    partition = _partition(facts["partition"], schema.field("partition").type)
    columns = [made[name].cast(schema.field(name).type) for _, name, _, _ in _FIELDS]
    return pa.table([partition, *columns], schema=schema)


def settled(rows: pa.Table) -> pa.Table:
    """Return the rows of all partitions in order, with how many of their own are left."""
    at = rows.schema.get_field_index("total_record_count")
    rows = rows.set_column(at, rows.schema.field(at), _total(rows))
    keys: dict[str, Any] = {}
    for number, each in enumerate(rows["partition"].combine_chunks().flatten()):
        # What is null comes first, whatever Arrow would do with it.
        keys |= {f"{number} is there": each.is_valid(), f"{number}": plain(each)}
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return rows.take(order)


def _total(rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Return the rows that are left; unknown where rows would have to be read to tell."""
    unsure = pc.add(rows["position_delete_file_count"], rows["equality_delete_file_count"])
    if pc.any(pc.greater(unsure, 0)).as_py():
        return pa.nulls(rows.num_rows, pa.int64())
    return pc.subtract(rows["data_record_count"], rows["position_delete_record_count"])


def schema_of(shape: Shape) -> pa.Schema:
    """Return the schema of the file: its partition has fields by partition field id, in order."""
    fields = []
    for each in partition_type(shape).fields:
        id = shape.expressions[each.field_id].partition_field_id or each.field_id
        fields.append(NestedField(id, each.name, each.field_type, required=False))
    partition = StructType(*sorted(fields, key=lambda each: each.field_id))
    rest = (NestedField(id, name, type, required=always) for id, name, type, always in _FIELDS)
    return arrow_schema(Schema(NestedField(1, "partition", partition, required=True), *rest))


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
