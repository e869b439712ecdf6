"""Inspection of files: entries of a tree in the columns of Iceberg's metadata tables."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import index_by_id

from icetree.rows.matching.same import row_codes
from icetree.rows.read.partition_values import (
    partition_column,
    partition_values,
    stat_values,
    struct_of,
)
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, is_data_dv, is_data_file
from icetree.spec.locations import absolute_array
from icetree.spec.schema.shape import Shape
from icetree.table.told import hidden_keys
from icetree.tree.live import LEAF

#: A stat -> its name in `readable_metrics`.
_METRICS: Final = {
    "values": "value_count",
    "nulls": "null_value_count",
    "nans": "nan_value_count",
    "lower": "lower_bound",
    "upper": "upper_bound",
}
_COUNT_MAP: Final = pa.map_(pa.int32(), pa.int64())

#: An entry's column -> its name as Iceberg has it, after the partition.
_AFTER: Final = {
    "record_count": "record_count",
    "file_size_in_bytes": "file_size_in_bytes",
}
_LAST: Final = {
    "split_offsets": "split_offsets",
    "equality_ids": "equality_ids",
    "sort_order_id": "sort_order_id",
    "first_row_id": "first_row_id",
}


def files_table(entries: Entries, shape: Shape, table_location: str) -> pa.Table:
    """Return file entries as rows of the `files` table: locations absolute, stats readable.

    Iceberg's `column_sizes` is all null, since v4 does not keep it; its `lower_bounds` and
    `upper_bounds` as bytes are left out: the typed ones are in `readable_metrics`.
    """
    made: dict[str, pa.Array | pa.ChunkedArray] = {
        "content": entries["content_type"].cast(pa.int8()),
        "file_path": absolute_array(entries["location"], table_location),
        "file_format": pc.utf8_upper(entries["file_format"]),
        "spec_id": entries["partition_spec_id"],
        "partition": partition_column(entries, shape),
    }
    made |= {name: entries[own] for own, name in _AFTER.items()}
    made["column_sizes"] = pa.nulls(entries.num_rows, _COUNT_MAP)
    for stat, name in (
        ("values", "value_counts"),
        ("nulls", "null_value_counts"),
        ("nans", "nan_value_counts"),
    ):
        made[name] = _counts(entries, stat)
    made["key_metadata"] = hidden_keys(entries["key_metadata"])
    made |= {name: entries[own] for own, name in _LAST.items()}
    is_delete = pc.invert(is_data_file(entries))
    refers = absolute_array(entries["referenced_file"], table_location)
    made["referenced_data_file"] = pc.if_else(is_delete, refers, pa.scalar(None, pa.string()))
    made["content_offset"] = entries["dv_offset"]
    made["content_size_in_bytes"] = entries["dv_size_in_bytes"]
    made["readable_metrics"] = readable_metrics(entries, shape)
    return pa.table(made)


def entries_table(entries: Entries, shape: Shape, table_location: str) -> pa.Table:
    """Return entries of any status as rows of the `entries` table.

    `leaf` and `position` say where each is tracked, `is_removed` whether a manifest DV there
    has removed it.
    """
    files = files_table(entries, shape, table_location)
    metrics = files["readable_metrics"]
    inner = files.drop_columns(["readable_metrics"])
    return pa.table(
        {
            "status": entries["status"].cast(pa.int8()),
            "snapshot_id": entries["snapshot_id"],
            "sequence_number": entries["sequence_number"],
            "file_sequence_number": entries["file_sequence_number"],
            "data_file": inner.to_struct_array(),
            "readable_metrics": metrics,
            "leaf": absolute_array(entries[LEAF], table_location),
            "position": entries["position"],
            "is_removed": entries["is_removed"],
        }
    )


def readable_metrics(entries: Entries, shape: Shape) -> pa.StructArray:
    """Return the stats of each column of the current schema, by its full name."""
    size = entries.num_rows
    arrays, fields = [], []
    for field_id, field in index_by_id(shape.schema).items():
        bounds = shape.bounds_type(field_id)
        if not field.field_type.is_primitive or bounds is None:
            continue
        members = [pa.nulls(size, pa.int64())]
        names = ["column_size"]
        for stat, name in _METRICS.items():
            members.append(stat_values(entries, field_id, stat, stats.stat_type(stat, bounds)))
            names.append(name)
        arrays.append(pa.StructArray.from_arrays(members, names))
        fields.append(pa.field(shape.names[field_id], arrays[-1].type))
    return struct_of(arrays, fields, size)


def partitions_table(entries: Entries, shape: Shape, committed: pa.Table) -> pa.Table:
    """Return `partition_facts` in the columns of the `partitions` table."""
    return partition_facts(entries, shape, committed).drop_columns(["dv_count"])


def partition_facts(entries: Entries, shape: Shape, committed: pa.Table) -> pa.Table:
    """Return one row a partition that has live files; `committed` says when snapshots were.

    `committed` has `snapshot_id` and `committed_at`. Files that no spec partitions are one row. Of
    what deletes positions, `dv_count` are data DVs.
    """
    values = [array for _, array in partition_values(entries, shape)]
    codes = row_codes([entries["partition_spec_id"], *values], entries.num_rows)
    at = pc.index_in(entries["snapshot_id"], value_set=committed["snapshot_id"].combine_chunks())
    when = committed["committed_at"].take(at)
    content = entries["content_type"]
    facts = {"code": pa.array(codes)}
    for name, kind in (
        ("data", Content.DATA),
        ("position", Content.POSITION_DELETES),
        ("equality", Content.EQUALITY_DELETES),
    ):
        is_kind = pc.equal(content, pa.scalar(kind, pa.int32()))
        for what, column in (("rows", "record_count"), ("bytes", "file_size_in_bytes")):
            number = pc.fill_null(entries[column], 0)
            facts[f"{name}_{what}"] = pc.if_else(is_kind, number, pa.scalar(0, pa.int64()))
        facts[f"{name}_files"] = is_kind.cast(pa.int64())
    facts["dvs"] = is_data_dv(entries).cast(pa.int64())
    sums = [name for name in facts if name != "code"]
    found = pa.table(facts).group_by("code").aggregate([(name, "sum") for name in sums])
    found = found.sort_by("code")
    # The row of each partition that was committed last.
    order = np.lexsort((pc.fill_null(when.cast(pa.int64()), -1).to_numpy(), codes))
    last = order[np.r_[codes[order][1:] != codes[order][:-1], True]] if len(order) else order
    rows = pa.array(last, pa.int64())
    return pa.table(
        {
            "partition": partition_column(entries, shape).take(rows),
            "spec_id": entries["partition_spec_id"].take(rows),
            "record_count": found["data_rows_sum"],
            "file_count": found["data_files_sum"].cast(pa.int32()),
            "total_data_file_size_in_bytes": found["data_bytes_sum"],
            "position_delete_record_count": found["position_rows_sum"],
            "position_delete_file_count": found["position_files_sum"].cast(pa.int32()),
            "equality_delete_record_count": found["equality_rows_sum"],
            "equality_delete_file_count": found["equality_files_sum"].cast(pa.int32()),
            "last_updated_at": when.take(rows),
            "last_updated_snapshot_id": pc.if_else(
                pc.is_valid(when.take(rows)),
                entries["snapshot_id"].take(rows),
                pa.scalar(None, pa.int64()),
            ),
            "dv_count": found["dvs_sum"].cast(pa.int32()),
        }
    )


def _counts(entries: Entries, stat: str) -> pa.MapArray:
    """Return a map of field id to count for each file, of the fields whose count is known."""
    size = entries.num_rows
    ids = [id for id in stats.fields_in(entries) if stats.column(id, stat) in entries.column_names]
    if not ids or not size:
        return pa.nulls(size, _COUNT_MAP)
    arrays = [stat_values(entries, id, stat, pa.int64()) for id in ids]
    known = np.stack([each.is_valid().to_numpy(zero_copy_only=False) for each in arrays], axis=1)
    values = np.stack([pc.fill_null(each, 0).to_numpy() for each in arrays], axis=1)
    keys = np.broadcast_to(np.array(ids, np.int32), known.shape)
    offsets = np.r_[0, np.cumsum(known.sum(axis=1))].astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets), pa.array(keys[known]), pa.array(values[known])
    )
