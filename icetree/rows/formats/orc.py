"""ORC files of rows, a stripe at a time.

Types that ORC lacks are told by attributes, which Iceberg names: a time is a long, a UUID or a
fixed-length value is binary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc
from pyiceberg.types import (
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from icetree.codec import limits
from icetree.codec.orc import times
from icetree.codec.orc.footer import read_stripes
from icetree.errors import InvalidInput, Unsupported
from icetree.rows.formats.format import Format
from icetree.rows.formats.orc_apart import Broken, OrcApart
from icetree.rows.schema import arrow_type
from icetree.spec.arrays import with_values
from icetree.spec.properties.values import choice, whole_number
from icetree.spec.schema.types import VariantType

CODEC: Final = "write.orc.compression-codec"
CODECS: Final = ("zlib", "zstd", "snappy", "lz4", "none")
STRATEGY: Final = "write.orc.compression-strategy"
STRATEGIES: Final = ("speed", "compression")
STRIPE_SIZE: Final = "write.orc.stripe-size-bytes"
DEFAULT_STRIPE_SIZE: Final = 64 * 1024 * 1024
#: Of blocks of HDFS, to Iceberg: what is compressed at once is something else, so nothing follows from it.
BLOCK_SIZE: Final = "write.orc.block-size-bytes"

_ID: Final = "iceberg.id"
_REQUIRED: Final = "iceberg.required"
_BINARY: Final = b"iceberg.binary-type"
_LENGTH: Final = b"iceberg.length"
_LONG: Final = b"iceberg.long-type"
_UNIT: Final = b"iceberg.timestamp-unit"
_UUID_BYTES: Final = 16
#: What a value takes in memory at the least.
_BYTES_A_VALUE: Final = 8
_NANOS_A_MICRO: Final = 1000
#: What Arrow says of a time that its nanoseconds cannot count.
_TOO_FAR: Final = "out of range for nanosecond"
_NANOS: Final = (TimestampNanoType, TimestamptzNanoType)
_MOMENTS: Final = (TimestampType, TimestamptzType, *_NANOS)


class OrcReader:
    """An ORC file, whose columns come out in the types that its attributes tell."""

    def __init__(self, source: pa.NativeFile, location: str, checksums: bool = True) -> None:  # noqa: ARG002
        self._location = location
        self._stripes = read_stripes(source, file=location)
        self._file = OrcApart(source, location)
        stored = self._file.schema()
        self.schema = pa.schema([_meant(field) for field in stored])
        self._is_dotted = any("." in name or "`" in name for name in _names(stored))

    @property
    def group_rows(self) -> Sequence[int]:
        return [stripe.rows for stripe in self._stripes]

    @property
    def split_offsets(self) -> list[int]:
        return [stripe.offset for stripe in self._stripes]

    def read(self, group: int, leaves: Sequence[int], names: Sequence[str]) -> pa.Table:
        claimed = _BYTES_A_VALUE * self._stripes[group].rows * len(leaves)
        limits.ROW_GROUP.require(claimed, file=self._location, what=f"stripe {group}")
        # Names are paths to ORC, which finds another column where one has a dot in its name.
        chosen = None if self._is_dotted else list(dict.fromkeys(names))
        try:
            found = self._file.stripe(group, chosen)
        except Broken as error:
            if _TOO_FAR not in str(error):
                raise
            raise Unsupported(
                f"{self._location} has a time that no count of nanoseconds reaches, which ORC is "
                "read in here: read it with an engine, or rewrite it as Parquet"
            ) from None
        names = found.schema.names
        types = [self.schema.field(name).type for name in names]
        return pa.table([_as_meant(*each) for each in zip(found, types, strict=True)], names=names)


def _as_meant(array: pa.Array, want: pa.DataType) -> pa.Array:
    """Return values in the type that they are meant in.

    Writers may have more digits of a time than the table has: readers floor, as Iceberg Java does.
    """
    have = array.type
    if have == want:
        return array
    if pa.types.is_timestamp(want):
        return _floored(array.view(pa.int64())).view(want)
    if pa.types.is_struct(want):
        members = [_as_meant(array.field(at), each.type) for at, each in enumerate(want)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=[*want], mask=mask)
    if pa.types.is_list(want):
        return with_values(array, want, _as_meant(array.values, want.value_type))
    if pa.types.is_map(want):
        pair = [_as_meant(array.keys, want.key_type), _as_meant(array.items, want.item_type)]
        fields = [want.key_field, want.item_field]
        return with_values(array, want, pa.StructArray.from_arrays(pair, fields=fields))
    return array.cast(want, safe=False)


def _floored(nanos: pa.Int64Array) -> pa.Int64Array:
    """Return the microseconds that nanoseconds fall in; Arrow alone cuts towards 1970."""
    cut = pc.divide(nanos, _NANOS_A_MICRO)
    over = pc.greater(pc.multiply(cut, _NANOS_A_MICRO), nanos)
    return pc.subtract(cut, over.cast(pa.int64()))


def _names(schema: pa.Schema) -> list[str]:
    found, waiting = [], list(schema)
    while waiting:
        field = waiting.pop()
        found.append(field.name)
        waiting += [field.type.field(at) for at in range(field.type.num_fields)]
    return found


def _meant(field: pa.Field) -> pa.Field:
    """Return a column in the type that its attributes tell."""
    type, told = field.type, field.metadata or {}
    if pa.types.is_struct(type):
        return field.with_type(pa.struct([_meant(each) for each in type]))
    if pa.types.is_map(type):
        return field.with_type(pa.map_(_meant(type.key_field), _meant(type.item_field)))
    if pa.types.is_list(type):
        return field.with_type(pa.list_(_meant(type.value_field)))
    if pa.types.is_binary(type):
        width = _width(told)
        return field if width is None else field.with_type(pa.binary(width))
    if pa.types.is_int64(type) and told.get(_LONG) == b"TIME":
        return field.with_type(pa.time64("us"))
    if pa.types.is_timestamp(type) and told.get(_UNIT) != b"NANOS":
        return field.with_type(pa.timestamp("us", type.tz))
    return field


def _width(told: Mapping[bytes, bytes]) -> int | None:
    kind = told.get(_BINARY)
    if kind == b"UUID":
        return _UUID_BYTES
    if kind != b"FIXED" or _LENGTH not in told:
        return None
    width = int(told[_LENGTH])
    if not 0 < width < 2**31:
        raise ValueError(f"a value of {width} bytes")
    return width


class OrcWriter:
    """An ORC file that is being made."""

    def __init__(
        self, sink: pa.NativeFile, fields: Sequence[NestedField], properties: Mapping[str, str]
    ) -> None:
        self._schema = pa.schema([_stored(field) for field in fields])
        codec = choice(properties, CODEC, CODECS, default="zlib")
        self._file = orc.ORCWriter(
            sink,
            compression="uncompressed" if codec == "none" else codec,
            compression_strategy=choice(properties, STRATEGY, STRATEGIES, default="speed"),
            stripe_size=_stripe_bytes(properties),
        )

    def write(self, rows: pa.Table, group: int | None = None) -> None:  # noqa: ARG002
        # Of a part of a struct column Arrow's ORC writer takes the first rows, not these.
        rows = rows.take(pa.array(np.arange(rows.num_rows)))
        arrays = [
            _null_throughout(_storable(column, field.type))
            for column, field in zip(rows, self._schema, strict=True)
        ]
        self._file.write(pa.table(arrays, schema=self._schema))

    def close(self) -> None:
        self._file.close()


def _storable(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(type)
    except pa.ArrowInvalid as error:
        raise InvalidInput(
            f"a time is further from 1970 than ORC files are read here, which count nanoseconds: "
            f"write Parquet instead ({error})"
        ) from None


def _null_throughout(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which nothing below a null struct is a value.

    Arrow's ORC writer takes what stands there for values of the rows that follow, where the struct is
    within another.
    """
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([_nulls_down(each) for each in column.chunks], column.type)


def _nulls_down(array: pa.Array) -> pa.Array:
    type = array.type
    if pa.types.is_struct(type):
        members = [_nulls_down(each) for each in array.flatten()]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=[*type], mask=mask)
    if pa.types.is_map(type):
        pair = [_nulls_down(array.keys), _nulls_down(array.items)]
        fields = [type.key_field, type.item_field]
        return with_values(array, type, pa.StructArray.from_arrays(pair, fields=fields))
    if pa.types.is_list(type):
        return with_values(array, type, _nulls_down(array.values))
    return array


def _stripe_bytes(properties: Mapping[str, str]) -> int:
    return whole_number(properties, STRIPE_SIZE, default=DEFAULT_STRIPE_SIZE, least=1)


def _stored(field: NestedField) -> pa.Field:
    """Return a column as it is handed to ORC, with the attributes that tell what it means."""
    told = {_ID: str(field.field_id), _REQUIRED: str(field.required).lower()}
    type, more = _stored_type(field.field_type, field.name)
    return pa.field(
        field.name,
        type,
        # What is below a null struct is nothing: ORC knows no required columns.
        nullable=True,
        metadata={**told, **{key.decode(): value for key, value in more.items()}},
    )


def _stored_type(type: IcebergType, where: str) -> tuple[pa.DataType, dict[bytes, str]]:
    match type:
        case StructType():
            return pa.struct([_stored(each) for each in type.fields]), {}
        case ListType():
            return pa.list_(_stored(type.element_field)), {}
        case MapType():
            key = _stored(type.key_field).with_nullable(False)
            return pa.map_(key, _stored(type.value_field)), {}
        case TimeType():
            return pa.int64(), {_LONG: "TIME"}
        case UUIDType():
            return pa.binary(), {_BINARY: "UUID"}
        case FixedType():
            return pa.binary(), {_BINARY: "FIXED", _LENGTH: str(len(type))}
        case VariantType() | UnknownType():
            raise Unsupported(f"column {where} is {type}, which ORC has no room for: use Parquet")
    found = arrow_type(type)
    if not isinstance(type, _MOMENTS):
        return found, {}
    unit = "NANOS" if isinstance(type, _NANOS) else "MICROS"
    return pa.timestamp("ns", found.tz), {_UNIT: unit}


def with_old_times(content: pa.Buffer) -> pa.Buffer:
    """Return a new file whose times before 1970 other readers of ORC read, too."""
    whole = memoryview(content).cast("B")
    if not times.may_have_early_times(whole):
        return content
    file = orc.ORCFile(pa.BufferReader(content))
    found = [_times_in(file.read_stripe(at).to_struct_array()) for at in range(file.nstripes)]
    if not any(times.is_early(each) for stripe in found for each in stripe.values()):
        return content
    return pa.py_buffer(times.with_early_times(whole, found.__getitem__))


def _times_in(rows: pa.StructArray) -> dict[int, Any]:
    """Return all times in rows, in nanoseconds, by the numbers that ORC gives to columns."""
    found: dict[int, Any] = {}
    waiting, number = [rows], 0
    while waiting:
        array = waiting.pop()
        type = array.type
        if pa.types.is_struct(type):
            waiting += reversed(array.flatten())
        elif pa.types.is_map(type):
            waiting += [array.items, array.keys]
        elif pa.types.is_list(type):
            waiting.append(array.flatten())
        elif pa.types.is_timestamp(type):
            found[number] = array.drop_null().view(pa.int64()).to_numpy()
        number += 1
    return found


def _offsets(content: pa.Buffer) -> list[int]:
    return [each.offset for each in read_stripes(pa.BufferReader(content), file="a new file")]


ORC: Final = Format(
    name="orc",
    open=OrcReader,
    begin=OrcWriter,
    split_offsets=_offsets,
    finished=with_old_times,
    bytes_at_once=_stripe_bytes,
    id_key=_ID.encode(),
)
