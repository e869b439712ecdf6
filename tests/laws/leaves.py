"""Leaves to be encoded: long ones, and the shapes that they have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType

from icetree.codec.inherit import Inherited
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.spec.entry.entry import (
    Entries,
    Entry,
    to_table,
)
from icetree.spec.schema.shape import Shape
from tests.laws.kinds import GEO_KINDS, KINDS

ALL = KINDS | GEO_KINDS
FIELD_OF = {name: id for id, name in enumerate(ALL, start=1)}
EVERY_TYPE = Shape(
    schema=Schema(*(NestedField(FIELD_OF[name], name, kind.type) for name, kind in ALL.items()))
)
LEAF = Inherited(snapshot_id=7, sequence_number=8, first_row_id=1000)


def long_leaf(groups: int, shape: Shape) -> Entries:
    """Return a leaf of that many row groups, the last one short; ids ascend, some rows DELETED."""
    size = (groups - 1) * LEAF_ROW_GROUP + 100
    ordinals = np.arange(size)
    one = to_table([Entry(location="x", file_size_in_bytes=1)], shape)
    rows = one.take(pa.array(np.zeros(size, dtype=np.int64)))
    columns = {
        "location": pa.array(ordinals).cast(pa.string()),
        "record_count": pa.array(ordinals % 5),
        "status": pa.array(np.where(ordinals % 7 == 3, 2, 1), pa.int32()),
        "sequence_number": pa.array(np.where(ordinals % 7 == 3, 2, 0), mask=ordinals % 7 != 3),
        "file_sequence_number": pa.array(np.where(ordinals % 7 == 3, 2, 0), mask=ordinals % 7 != 3),
        "first_row_id": pa.array(ordinals + 5_000_000, mask=ordinals % 11 != 0),
    }
    for name, column in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, column)
    bounds = {"1:lower": pa.array(ordinals), "1:upper": pa.array(ordinals + 1)}
    for name, column in bounds.items():
        rows = rows.append_column(name, column)
    return rows


ONE_LONG = Shape(schema=Schema(NestedField(1, "id", LongType())))


def two_of_a_name() -> Shape:
    """Return a shape where dropped columns share full names with a new and with a nested one."""
    nested = StructType(NestedField(5, "b", LongType()))
    return Shape(
        schema=Schema(NestedField(4, "a", nested), NestedField(6, "c", StringType())),
        former={
            1: NestedField(1, "c", LongType()),
            2: NestedField(2, "a.b", LongType()),
            3: NestedField(3, "a.b", StringType()),
        },
    )
