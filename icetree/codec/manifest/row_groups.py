"""What is known of row groups without reading them: bounds, and columns that never change."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec.manifest.stored import Opened
from icetree.codec.manifest.types import promote
from icetree.errors import CorruptTable

#: Columns that are often the same in all entries: their statistics then spare the reading.
OFTEN_SAME: Final = (
    "content_type",
    "file_format",
    "partition_spec_id",
    "sort_order_id",
    "status",
)
_SIDES: Final = {"lower": "min", "upper": "max"}


def row_group_stats(manifest: Opened) -> pa.Table:
    """Return one row per row group, in the shape of entries: least lower, greatest upper bound.

    A row group with an unknown bound in it has an unknown bound.
    """
    metadata = manifest.parquet.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    bounds_at = {
        name: (where.numbers.start, side, where.type)
        for name, where in manifest.columns.items()
        if not pa.types.is_nested(where.type)
        and (side := _SIDES.get(name.partition(":")[2])) is not None
    }
    _require_chunks(manifest, [column for column, _, _ in bounds_at.values()])
    found: dict[str, pa.Array] = {
        "record_count": pa.array([group.num_rows for group in groups], pa.int64())
    }
    for name, (column, side, type) in bounds_at.items():
        type = type.storage_type if isinstance(type, pa.BaseExtensionType) else type
        # As the number it is stored as: Python has no dates after 9999 and no nanoseconds.
        value = f"{side}_raw" if pa.types.is_temporal(type) else side
        bounds = [_extreme(group.column(column).statistics, value) for group in groups]
        if any(bound is not None for bound in bounds):
            found[name] = promote(pa.array(bounds, type), name, manifest.shape, manifest.file)
    return pa.table(found)


def same_throughout(manifest: Opened) -> dict[str, pa.Scalar]:
    """Return the value of each column that has the same one in all entries, as far as known."""
    metadata = manifest.parquet.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    numbers: dict[str, int] = {
        name: manifest.columns[name].numbers.start
        for name in OFTEN_SAME
        if name in manifest.columns
    }
    _require_chunks(manifest, list(numbers.values()))
    found: dict[str, pa.Scalar] = {}
    for name, number in numbers.items():
        known = [group.column(number).statistics for group in groups]
        values = {_extreme(each, side) for each in known for side in _SIDES.values()}
        if len(values) == 1 and None not in values:
            found[name] = pa.scalar(values.pop(), manifest.columns[name].type)
    return found


def _require_chunks(manifest: Opened, columns: list[int]) -> None:
    """Make Arrow look at the metadata of each chunk of the columns, without reading any.

    What is wrong there is an error here, but would end the process if Python asked for it first:
    pyarrow lets no exception out of the metadata's properties.
    """
    if not columns:
        return
    parquet = manifest.parquet
    for at in range(parquet.num_row_groups):
        none = parquet.reader.iter_batches(
            0, row_groups=[at], column_indices=columns, use_threads=False
        )
        next(none, None)
        group = parquet.metadata.row_group(at)
        for i in columns:
            if group.column(i).physical_type != parquet.schema.column(i).physical_type:
                raise CorruptTable(manifest.file, f"row group {at} has another type in column {i}")


def _extreme(known: pq.Statistics | None, value: str) -> object:
    if known is None or not known.has_min_max or known.null_count != 0:
        return None
    found: object = getattr(known, value)
    return found
