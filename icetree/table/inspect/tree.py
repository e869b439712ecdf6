"""Inspection of a tree's nodes: its manifests, and how full they are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Entries,
    Status,
    is_content,
    is_data_file,
    is_live,
)
from icetree.spec.location import absolute
from icetree.spec.locations import absolute_array
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape
from icetree.table.inspect.files import readable_metrics
from icetree.table.told import hidden_keys

SUMMARY: Final = pa.struct(
    [
        pa.field("contains_null", pa.bool_()),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
TREE: Final = pa.schema(
    [
        pa.field("level", pa.int8(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("status", pa.string()),
        pa.field("entries", pa.int64()),
        pa.field("live_entries", pa.int64()),
        pa.field("record_count", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("manifest_dv_cardinality", pa.int64()),
        pa.field("affiliated_with", pa.string()),
    ]
)
_COUNTS: Final = ("added", "existing", "deleted")


def manifests_table(root: Entries, shape: Shape, table_location: str) -> pa.Table:
    """Return the live leaf manifests of a root, with what the root knows of each."""
    leaves = _leaves(root)
    is_data = pc.equal(leaves["content_type"], pa.scalar(Content.DATA_MANIFEST, pa.int32()))
    made: dict[str, Any] = {
        "content": pc.if_else(is_data, 0, 1).cast(pa.int8()),
        "path": absolute_array(leaves["location"], table_location),
        "length": leaves["file_size_in_bytes"],
        "partition_spec_id": leaves["partition_spec_id"],
        "added_snapshot_id": leaves["snapshot_id"],
    }
    zero = pa.scalar(0, pa.int32())
    for kind, owns in (("data", is_data), ("delete", pc.invert(is_data))):
        for status in _COUNTS:
            count = leaves[f"{status}_files_count"]
            made[f"{status}_{kind}_files_count"] = pc.if_else(owns, count, zero)
    made["partition_summaries"] = _summaries(leaves, shape)
    made |= {
        "file_format": pc.utf8_upper(leaves["file_format"]),
        "status": leaves["status"].cast(pa.int8()),
        "sequence_number": leaves["sequence_number"],
        "min_sequence_number": leaves["min_sequence_number"],
        "first_row_id": leaves["first_row_id"],
        "entries": leaves["record_count"],
        "manifest_dv_cardinality": _removed(root, leaves),
        "affiliated_with": absolute_array(leaves["referenced_file"], table_location),
        "added_rows_count": leaves["added_rows_count"],
        "existing_rows_count": leaves["existing_rows_count"],
        "deleted_rows_count": leaves["deleted_rows_count"],
        "key_metadata": hidden_keys(leaves["key_metadata"]),
        "readable_metrics": readable_metrics(leaves, shape),
    }
    return pa.table(made)


def tree_table(
    root: Entries, snapshot: Snapshot, *, table_location: str, size_bytes: int
) -> pa.Table:
    """Return one row a node, the root first: how many entries it has, how many of them live.

    Of a manifest `rows` counts rows of its data files, or rows that its deletes name, as it was
    written; `live_entries` leaves out what its manifest DV removes.
    """
    leaves = _leaves(root)
    here = root.filter(is_live(root))
    own = here.filter(is_data_file(here))
    top = {
        "level": 0,
        "content": "root",
        "path": absolute(snapshot.root_file, table_location),
        "status": None,
        "entries": root.num_rows,
        "live_entries": here.num_rows,
        "record_count": pc.sum(own["record_count"]).as_py() or 0,
        "length": size_bytes,
        "manifest_dv_cardinality": None,
        "affiliated_with": None,
    }
    removed = _removed(root, leaves)
    written = pc.add(leaves["added_files_count"], leaves["existing_files_count"]).cast(pa.int64())
    is_data = pc.equal(leaves["content_type"], pa.scalar(Content.DATA_MANIFEST, pa.int32()))
    names = pa.array([each.name for each in Status])
    below = pa.table(
        [
            pa.repeat(pa.scalar(1, pa.int8()), leaves.num_rows),
            pc.if_else(is_data, "data", "delete"),
            absolute_array(leaves["location"], table_location),
            names.take(leaves["status"].combine_chunks()),
            leaves["record_count"],
            pc.subtract(written, removed),
            pc.add(leaves["added_rows_count"], leaves["existing_rows_count"]),
            leaves["file_size_in_bytes"],
            removed,
            absolute_array(leaves["referenced_file"], table_location),
        ],
        schema=TREE,
    )
    return pa.concat_tables([pa.Table.from_pylist([top], TREE), below])


def _leaves(root: Entries) -> Entries:
    return root.filter(pc.and_(is_content(root, *MANIFESTS), is_live(root)))


def _removed(root: Entries, leaves: Entries) -> pa.Array:
    """Return how many entries the manifest DV of each leaf removes."""
    vectors = root.filter(pc.and_(is_content(root, Content.MANIFEST_DV), is_live(root)))
    at = pc.index_in(leaves["location"], value_set=vectors["referenced_file"].combine_chunks())
    return pc.fill_null(vectors["record_count"].take(at), 0).combine_chunks()


def _summaries(leaves: Entries, shape: Shape) -> pa.Array:
    """Return a list for each leaf: what it holds of each partition field of its spec."""
    specs = leaves["partition_spec_id"].to_numpy()
    parts, rows = [], []
    for spec_id in np.unique(specs).tolist():
        at = np.flatnonzero(specs == spec_id)
        here = leaves.take(pa.array(at))
        columns = [_summary(here, each, shape) for each in shape.spec(spec_id)]
        size, width = len(at), len(columns)
        flat = pa.concat_arrays([pa.array([], SUMMARY), *columns])
        by_leaf = np.arange(size * width).reshape(width, size).T.reshape(-1)
        offsets = pa.array(np.arange(size + 1) * width, pa.int32())
        parts.append(pa.ListArray.from_arrays(offsets, flat.take(pa.array(by_leaf, pa.int64()))))
        rows.append(at)
    if not parts:
        return pa.array([], pa.list_(SUMMARY))
    order = np.argsort(np.concatenate(rows))
    return pa.concat_arrays(parts).take(pa.array(order))


def _summary(leaves: Entries, expression: Expression, shape: Shape) -> pa.StructArray:
    def known(stat: str) -> pa.Array:
        name = stats.column(expression.stats_field, stat)
        if name not in leaves.column_names:
            return pa.nulls(leaves.num_rows)
        return leaves[name].combine_chunks()

    counts = [known(stat).cast(pa.int64()) for stat in ("nulls", "nans")]
    members = [pc.greater(count, 0) for count in counts]
    members += [_words(known(stat), expression, shape) for stat in ("lower", "upper")]
    return pa.StructArray.from_arrays(members, fields=list(SUMMARY))


def _words(values: pa.Array, expression: Expression, shape: Shape) -> pa.Array:
    """Return partition values as people read them: each distinct one is put in words once."""
    if pa.types.is_null(values.type) or pa.types.is_struct(values.type):
        return pa.nulls(len(values), pa.string())
    found = values.dictionary_encode()
    transform, source = transform_of(expression), shape.types.get(expression.source_ids[0])
    texts = []
    for value in found.dictionary.to_pylist():
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and source is not None:
            texts.append(transform.to_human_string(source, value))
        else:
            texts.append(value.isoformat() if hasattr(value, "isoformat") else str(value))
    return pa.array(texts, pa.string()).take(found.indices)
