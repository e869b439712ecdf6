"""Rows that went and came: the same row unchanged, or one row updated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    VariantType,
)

from icetree.spark.in_python import in_python
from icetree.spark.read.listing import POSITION
from icetree.table.changes.rows import CHANGE_ORDINAL, UPDATE_AFTER, UPDATE_BEFORE
from icetree.tree.plan.row_changes import CHANGE_TYPE, DELETE, INSERT

#: Which task of the change plan a row came from; with `POSITION`, the order of rows in a commit.
TASK_NUMBER: Final = "__icetree_task"

_PAIRED: Final = "__icetree_paired"
_ORDER: Final = (CHANGE_ORDINAL, TASK_NUMBER, POSITION)


def unchanged_dropped(
    rows: DataFrame, values: Sequence[Column], *, scope: Sequence[Column]
) -> DataFrame:
    """Drop rows that went and came with the same values in a scope, one for one, oldest first."""
    paired = _is_paired([*scope, *values])
    return rows.withColumn(_PAIRED, paired).where(~f.col(_PAIRED)).drop(_PAIRED)


def updates_told(
    rows: DataFrame, *, row_id: Column | None, keys: Sequence[Column], scope: Sequence[Column]
) -> DataFrame:
    """Return the rows in which one that went and one that came are told to be one row updated.

    They are the same by row id or, where that pairs nothing, by the keys.
    """
    if row_id is None:
        rows = rows.withColumn(_PAIRED, f.lit(False))
    else:
        # A row without an id is like no other.
        alone = f.when(row_id.isNull(), f.struct(TASK_NUMBER, POSITION))
        rows = rows.withColumn(_PAIRED, row_id.isNotNull() & _is_paired([*scope, row_id, alone]))
    if keys:
        by_key = _is_paired([*scope, f.col(_PAIRED), *keys])
        rows = rows.withColumn(_PAIRED, f.col(_PAIRED) | by_key)
    updated = f.when(f.col(CHANGE_TYPE) == DELETE, UPDATE_BEFORE).otherwise(UPDATE_AFTER)
    kind = f.when(f.col(_PAIRED), updated).otherwise(f.col(CHANGE_TYPE))
    return rows.withColumn(CHANGE_TYPE, kind).drop(_PAIRED)


def _is_paired(by: Sequence[Column]) -> Column:
    """Tell rows of which as many are on the other side: the nth that went is the nth that came."""
    alike = Window.partitionBy(*by)
    is_new = f.col(CHANGE_TYPE) == INSERT
    gone, new = (f.count(f.when(kind, True)).over(alike) for kind in (~is_new, is_new))
    # Those that went come first, so that one sort numbers both kinds.
    number = f.row_number().over(alike.orderBy(is_new, *_ORDER))
    return f.when(is_new, number <= gone * 2).otherwise(number <= new)


def comparable(column: Column, type: DataType) -> Column:
    """Return the column in a form that rows can be grouped by: maps as lists of their entries.

    Variants are what their bytes are: two that say the same in other bytes are not the same.
    """
    if _has(type, VariantType):
        return in_python(_as_bytes, BinaryType(), column)
    if not _has(type, MapType):
        return column
    match type:
        case MapType():
            pair: Any = StructType().add("key", type.keyType).add("value", type.valueType)
            return f.transform(f.map_entries(column), lambda each: comparable(each, pair))
        case ArrayType():
            return f.transform(column, lambda each: comparable(each, type.elementType))
        case StructType():
            members = [
                comparable(column.getField(each.name), each.dataType).alias(f"m{number}")
                for number, each in enumerate(type.fields)
            ]
            return f.when(column.isNotNull(), f.struct(*members))
    return column


def _as_bytes(values: pa.Array) -> pa.Array:
    texts = [None if each is None else repr(each).encode() for each in values.to_pylist()]
    return pa.array(texts, pa.binary())


def _has(type: DataType, kind: type[DataType]) -> bool:
    """Tell whether there is a type of a kind in another, however deep."""
    match type:
        case MapType():
            inner = [type.keyType, type.valueType]
        case ArrayType():
            inner = [type.elementType]
        case StructType():
            inner = [each.dataType for each in type.fields]
        case _:
            inner = []
    return isinstance(type, kind) or any(_has(each, kind) for each in inner)
