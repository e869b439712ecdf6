"""What is known of row groups without reading them: bounds, and columns that never change."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec.manifest.stored import Opened
from icetree.codec.manifest.types import is_of_variant, promote
from icetree.codec.parquet.parquet import require_chunks

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
    bounds_at = {
        name: (where.numbers.start, side, where.type)
        for name, where in manifest.columns.items()
        if not pa.types.is_nested(where.type)
        and not is_of_variant(name, manifest.shape)
        and (side := _SIDES.get(name.partition(":")[2])) is not None
    }
    found: dict[str, pa.Array] = {"record_count": pa.array(manifest.group_rows, pa.int64())}
    for name, (column, side, type) in bounds_at.items():
        type = type.storage_type if isinstance(type, pa.BaseExtensionType) else type
        # As the number it is stored as: Python has no dates after 9999 and no nanoseconds.
        value = f"{side}_raw" if pa.types.is_temporal(type) else side
        bounds = [_extreme(known, value) for known in _statistics(manifest, column)]
        if any(bound is not None for bound in bounds):
            found[name] = promote(pa.array(bounds, type), name, manifest.shape, manifest.file)
    return pa.table(found)


def same_throughout(manifest: Opened) -> dict[str, pa.Scalar]:
    """Return the value of each column that has the same one in all entries, as far as known."""
    numbers: dict[str, int] = {
        name: manifest.columns[name].numbers.start
        for name in OFTEN_SAME
        if name in manifest.columns
    }
    found: dict[str, pa.Scalar] = {}
    for name, number in numbers.items():
        known = _statistics(manifest, number)
        values = {_extreme(each, side) for each in known for side in _SIDES.values()}
        if len(values) == 1 and None not in values:
            found[name] = pa.scalar(values.pop(), manifest.columns[name].type)
    return found


def _statistics(manifest: Opened, column: int) -> list[pq.Statistics | None]:
    """Return what each row group says of a column, None where it says nothing of use."""
    looked = manifest.row_groups or ()
    require_chunks(manifest.parquet, range(len(looked)), [column])
    return [
        manifest.parquet.metadata.row_group(at).column(column).statistics
        if group.chunks[column].has_sound_stats
        else None
        for at, group in enumerate(looked)
    ]


def _extreme(known: pq.Statistics | None, value: str) -> object:
    if known is None or not known.has_min_max or known.null_count != 0:
        return None
    found: object = getattr(known, value)
    return found
