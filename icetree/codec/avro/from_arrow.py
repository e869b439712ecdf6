"""Arrow columns as Avro records, a column at a time: no row ever exists as a Python object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

from icetree.codec.avro import pieces
from icetree.codec.avro.pieces import Piece
from icetree.codec.avro.types import Types, decimal_width, record
from icetree.codec.avro.write import AvroBlocks
from icetree.codec.cuts import cut, masked
from icetree.codec.single_value_bytes import decimal_bytes
from icetree.spec.arrays import one_chunk

#: Readers take blocks side by side, so many small ones are read faster than few large ones.
_BLOCK_ROWS: Final = 1000
#: Bytes of rows in a block, about: pieces of more than 2 GB cannot be.
_BLOCK_BYTES: Final = 4 * 1024 * 1024
_DECIMAL_BYTES: Final = 16


class AvroRows:
    """A file of rows that is being made."""

    def __init__(
        self, sink: pa.NativeFile, fields: Sequence[NestedField], *, codec: str, level: int | None
    ) -> None:
        schema = record("table", Types().fields(fields))
        self._fields = fields
        self._blocks = AvroBlocks(sink.write, schema, {}, codec=codec, level=level)

    def write(self, rows: pa.Table) -> None:
        """Add rows, whose columns are the fields in order."""
        a_row = max(1, rows.nbytes // max(1, rows.num_rows))
        size = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // a_row))
        for start in range(0, rows.num_rows, size):
            part = rows.slice(start, size)
            found = [_field(one_chunk(c), f) for c, f in zip(part, self._fields, strict=True)]
            self._blocks.add(pieces.joined(found, part.num_rows), part.num_rows)


def _field(values: pa.Array, field: NestedField) -> Piece:
    piece = _piece(values, field.field_type)
    return piece if field.required else pieces.optional(piece)


def _piece(values: pa.Array, type: IcebergType) -> Piece:
    """Return values as the bytes they have in their records; null stays null."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    match type:
        case StructType():
            inner = [
                _field(pc.struct_field(values, [at]), each) for at, each in enumerate(type.fields)
            ]
            return masked(pieces.joined(inner, len(values)), values)
        case ListType():
            return pieces.repeated(
                _field(_inside(values), type.element_field), pc.list_value_length(values)
            )
        case MapType():
            return _map(values, type)
        case DecimalType(precision=precision):
            width = decimal_width(precision)
            kept = decimal_bytes(values)[:, _DECIMAL_BYTES - width :]
            return masked(cut(np.ascontiguousarray(kept).reshape(-1), width), values)
        case BooleanType():
            return pieces.booleans(values)
        case FloatType() | DoubleType() | FixedType() | UUIDType():
            return pieces.fixed(values)
    if isinstance(type, StringType) or _is_bytes(values.type):
        return pieces.texts(values)
    return pieces.numbers(values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64()))


def _inside(lists: pa.ListArray) -> pa.Array:
    """Return what is in lists, one after the other.

    Where all are null Arrow makes an empty array, and makes none of a struct with UUIDs.
    """
    return lists.values.slice(0, 0) if lists.null_count == len(lists) else lists.flatten()


def _is_bytes(type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type) or pa.types.is_string(type))


def _map(values: pa.MapArray, type: MapType) -> Piece:
    ends: list[Any] = [values.type.key_field, values.type.item_field]
    entries = pa.StructArray.from_arrays([values.keys, values.items], fields=ends)
    lists = pa.Array.from_buffers(
        pa.list_(entries.type),
        len(values),
        values.buffers()[:2],
        values.null_count,
        values.offset,
        children=[entries],
    )
    pairs = _inside(lists)
    key = _piece(pairs.field(0), type.key_type)
    value = _field(pairs.field(1), type.value_field)
    return pieces.repeated(pieces.joined([key, value], len(pairs)), pc.list_value_length(lists))
