"""Entries made up for benchmarks, as columns: unique names, stats of mixed types, random bounds.

Every file covers its own slot of the first column (`id`), so that a range of `id` matches a
known number of files; the other columns have random bounds.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression, parser
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from icetree.spec.entry.entry import Content, Entries, Status, complete, with_columns
from icetree.spec.entry.stats import column
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import bounds_type, has_nans, is_variable_length

Numbers: TypeAlias = npt.NDArray[np.int64]
Random: TypeAlias = np.random.Generator

#: The field that filters are on, and the width of each file's slot of it.
ID_FIELD = 1
SLOT = 1000

#: Types of the columns after `id`, again and again.
_TYPES: tuple[IcebergType, ...] = (
    TimestamptzType(),
    StringType(),
    DoubleType(),
    IntegerType(),
    DateType(),
    DecimalType(12, 2),
    StringType(),
    BooleanType(),
    LongType(),
)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def shape_of(columns: int) -> Shape:
    """Return the shape of a table with this many columns, `id` first."""
    types = (LongType(), *(_TYPES[at % len(_TYPES)] for at in range(columns - 1)))
    names = ("id", *(f"column_{at}" for at in range(2, columns + 1)))
    return Shape(
        schema=Schema(
            *(
                NestedField(at, name, type, required=False)
                for at, (name, type) in enumerate(zip(names, types, strict=True), 1)
            )
        )
    )


def slots(first: int, last: int) -> BooleanExpression:
    """Return the filter that matches the files of these slots, the last one not included."""
    return parser.parse(f"id >= {first * SLOT} and id < {last * SLOT}")


def new_files(at: Numbers, shape: Shape, *, seed: int = 0) -> Entries:
    """Return data files to be added, one for each slot, in the order given."""
    random = np.random.default_rng(seed)
    count = len(at)
    rows = random.integers(10_000, 1_000_000, count)
    sizes = rows * random.integers(20, 60, count)
    columns: dict[str, pa.Array] = {
        "content_type": _same(int(Content.DATA), count, pa.int32()),
        "location": _locations(at, random),
        "file_format": _same("parquet", count, pa.string()),
        "status": _same(int(Status.ADDED), count, pa.int32()),
        "partition_spec_id": _same(0, count, pa.int32()),
        "sort_order_id": _same(0, count, pa.int32()),
        "record_count": pa.array(rows),
        "file_size_in_bytes": pa.array(sizes),
        "split_offsets": _split_offsets(sizes),
    }
    for field in shape.schema.fields:
        columns |= _stats(field, at, rows, random)
    return complete(pa.table(columns))


def existing(files: Entries, *, seed: int = 0) -> Entries:
    """Return the files as a root has them after one small commit each."""
    count = files.num_rows
    ages = pa.array(np.arange(1, count + 1))
    rows = files["record_count"]
    ids = np.random.default_rng(seed).integers(1, 1 << 62, count)
    return with_columns(
        files,
        status=int(Status.EXISTING),
        snapshot_id=pa.array(ids),
        sequence_number=ages,
        file_sequence_number=ages,
        first_row_id=pc.subtract(pc.cumulative_sum(rows), rows),
    )


def _same(value: object, count: int, type: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, type), count)


def _locations(at: Numbers, random: Random) -> pa.Array:
    numbers = pc.utf8_lpad(pa.array(at).cast(pa.string()), width=8, padding="0")
    names = _hex(len(at), 32, random)
    return pc.binary_join_element_wise("data/", numbers, "-", names, ".parquet", "")


def _hex(count: int, length: int, random: Random) -> pa.StringArray:
    digits = _HEX[random.integers(0, 16, (count, length), dtype=np.uint8)]
    ends = np.arange(count + 1, dtype=np.int32) * length
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(digits))


def _split_offsets(sizes: Numbers) -> pa.ListArray:
    offsets = np.stack([np.full(len(sizes), 4, np.int64), sizes // 2], axis=1)
    ends = np.arange(len(sizes) + 1, dtype=np.int32) * 2
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(offsets.ravel()))


def _stats(field: NestedField, at: Numbers, rows: Numbers, random: Random) -> dict[str, pa.Array]:
    count, type = len(at), field.field_type
    if field.field_id == ID_FIELD:
        lower, upper = pa.array(at * SLOT), pa.array(at * SLOT + SLOT - 1)
    else:
        lower, upper = _bounds(type, count, random)
    whole = not is_variable_length(type)
    found: dict[str, pa.Array] = {
        "lower": lower,
        "upper": upper,
        "tight": _same(whole, count, pa.bool_()),
        "values": pa.array(rows),
        "nulls": pa.array(rows // random.integers(50, 1000, count) * random.integers(0, 2, count)),
    }
    if has_nans(type):
        found["nans"] = _same(0, count, pa.int64())
    if not whole:
        found["avg_size"] = pa.array(random.integers(16, 60, count, dtype=np.int32))
        found["max_size"] = pa.array(random.integers(60, 255, count, dtype=np.int32))
    return {column(field.field_id, stat): values for stat, values in found.items()}


def _bounds(type: IcebergType, count: int, random: Random) -> tuple[pa.Array, pa.Array]:
    match type:
        case StringType():
            one, other = _hex(count, 16, random), _hex(count, 16, random)
            return pc.min_element_wise(one, other), pc.max_element_wise(one, other)
        case BooleanType():
            return _same(False, count, pa.bool_()), _same(True, count, pa.bool_())
    start, width = _RANGES[type.__class__]
    lower = random.integers(start, start + width, count)
    upper = lower + random.integers(1, width // 100, count)
    return _as(type, lower), _as(type, upper)


#: From where, and how widely, lower bounds are spread.
_RANGES: dict[type[IcebergType], tuple[int, int]] = {
    TimestamptzType: (1_700_000_000_000_000, 100_000_000_000_000),
    DoubleType: (0, 1_000_000_000),
    IntegerType: (0, 1_000_000),
    DateType: (18_000, 2_000),
    DecimalType: (0, 100_000_000),
    LongType: (0, 1 << 60),
}


def _as(type: IcebergType, numbers: Numbers) -> pa.Array:
    arrow = bounds_type(type)
    match type:
        case DoubleType():
            return pa.array(numbers / 997)
        case DecimalType():
            wide = np.stack([numbers, np.zeros_like(numbers)], axis=1)
            return pa.Array.from_buffers(arrow, len(numbers), [None, pa.py_buffer(wide)])
        case IntegerType() | DateType():
            return pa.array(numbers.astype(np.int32)).cast(arrow)
    return pa.array(numbers).cast(arrow)
