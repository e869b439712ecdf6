"""Partition tuples of files, rebuilt from their stats, as v2 and v3 manifests hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    StringType,
    UnknownType,
)

from icetree.codec.avro import pieces
from icetree.codec.avro.pieces import Piece
from icetree.codec.avro.types import decimal_width
from icetree.codec.cuts import cut, masked
from icetree.codec.single_value_bytes import decimal_bytes, encode_bounds
from icetree.errors import CorruptTable
from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.partition_stats import told
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import bounds_type, has_nans


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a manifest list says of one partition field of a manifest."""

    contains_null: bool
    contains_nan: bool | None = None
    lower: bytes | None = None
    upper: bytes | None = None


def tuple_type(expression: Expression, shape: Shape) -> IcebergType:
    """Return the type of a partition field; text where no value of it is known."""
    type = shape.types.get(_field(expression))
    if type is None or isinstance(type, UnknownType) or not _has_values(type):
        return StringType()
    return type


def _field(expression: Expression) -> int:
    return expression.source_ids[0] if expression.transform == "void" else expression.stats_field


def _has_values(type: IcebergType) -> bool:
    found = bounds_type(type)
    return found is not None and not pa.types.is_struct(found)


def tuple_values(entries: Entries, expression: Expression, shape: Shape) -> pa.Array:
    """Return the values of a partition field, null and NaN among them.

    A file whose stats do not tell is a `CorruptTable` that names it.
    """
    type = tuple_type(expression, shape)
    bounds = bounds_type(type)
    field = expression.stats_field
    if expression.transform == "void" or shape.bounds_type(field) != bounds:
        return pa.nulls(entries.num_rows, bounds)

    def stat(name: str, as_type: pa.DataType) -> pa.Array:
        column = stats.column(field, name)
        if column not in entries.schema.names:
            return pa.nulls(entries.num_rows, as_type)
        return one_chunk(entries[column]).cast(as_type)

    lower, upper = stat("lower", bounds), stat("upper", bounds)
    counts = [stat(name, pa.int64()) for name in ("values", "nulls", "nans")]
    is_told, is_nan = told(lower, upper, *counts)
    if is_told.true_count < len(is_told):
        bad = entries["location"][pc.index(is_told, False).as_py()].as_py()
        rule = f"its stats do not tell its partition: {expression.name} must have equal bounds, or be all null"
        raise CorruptTable(bad, rule)
    if not has_nans(type):
        return lower
    return pc.if_else(is_nan, pa.scalar(np.nan, bounds), lower)


def tuple_piece(values: pa.Array, type: IcebergType) -> Piece:
    """Return the values of a partition field as Avro has them."""
    if isinstance(type, DecimalType):
        width = decimal_width(type.precision)
        rows = np.ascontiguousarray(decimal_bytes(values)[:, 16 - width :])
        piece = masked(cut(rows.reshape(-1), width), values)
    elif pa.types.is_boolean(values.type):
        piece = pieces.booleans(values)
    elif pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        piece = pieces.texts(values)
    elif pa.types.is_floating(values.type) or pa.types.is_fixed_size_binary(values.type):
        piece = pieces.fixed(values)
    else:
        whole = pa.int32() if values.type.bit_width == 32 else pa.int64()
        piece = pieces.numbers(values.cast(whole))
    return pieces.optional(piece)


def summary(values: pa.Array, type: IcebergType) -> Summary:
    """Return what a manifest list says of the values of a partition field."""
    is_nan = pc.fill_null(pc.is_nan(values), False) if has_nans(type) else None
    plain = values if is_nan is None else values.filter(pc.invert(is_nan))
    found = Summary(
        contains_null=bool(values.null_count),
        # Said of every type: to Spark's metadata tables it is no question.
        contains_nan=is_nan is not None and bool(is_nan.true_count),
    )
    if plain.null_count == len(plain):
        return found
    least, most = _ends(plain, type)
    return Summary(
        contains_null=found.contains_null,
        contains_nan=found.contains_nan,
        lower=least,
        upper=most,
    )


def _ends(values: pa.Array, type: IcebergType) -> tuple[bytes, bytes]:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    ends = pc.min_max(values)
    pair = pa.array([ends["min"], ends["max"]], values.type)
    if has_nans(type):
        # Arrow takes both zeros for one; of the two, -0.0 comes first.
        zeros = pa.array([-0.0, 0.0], values.type)
        pair = pc.if_else(pc.equal(pair, zeros), zeros, pair)
    lower, upper = encode_bounds(pair.cast(bounds_type(type)), type).to_pylist()
    return lower, upper
