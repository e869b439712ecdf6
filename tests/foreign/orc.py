"""ORC as anyone may write it: columns by the attributes that Iceberg names, the rest as it falls."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
from pyarrow import orc

from tests.foreign.columns import Field, List, Map, Plain, Row, Struct, Type, named
from tests.foreign.dress import Dress
from tests.foreign.transforms import whole

_CODECS = ("uncompressed", "snappy", "zlib", "lz4", "zstd")
#: What ORC has in the place of types that it lacks, and the attributes that say so.
_LACKS: dict[str, tuple[pa.DataType, dict[str, str]]] = {
    "time": (pa.int64(), {"iceberg.long-type": "TIME"}),
    "uuid": (pa.binary(), {"iceberg.binary-type": "UUID"}),
    "fixed[3]": (pa.binary(), {"iceberg.binary-type": "FIXED", "iceberg.length": "3"}),
}
#: A time in ORC counts nanoseconds; how many of them mean something may be told, or not.
_TIMES = {"timestamp": pa.timestamp("ns"), "timestamptz": pa.timestamp("ns", "UTC")}


def rows_file(rows: list[Row], columns: list[Field], dress: Dress) -> bytes:
    """Return a file of columns of the rows."""
    fields = [_field(each, dress) for each in columns]
    arrays = [
        _array(each.type, [named(each.type, row.get(each.key)) for row in rows], at.type)
        for each, at in zip(columns, fields, strict=True)
    ]
    if dress.chance(0.2):
        fields.append(pa.field("made_by", pa.string(), metadata={"iceberg.id": "8001"}))
        arrays.append(pa.array([f"other {at}" for at in range(len(rows))]))
    if dress.chance(0.2):
        fields.append(pa.field("of_no_id", pa.int32()))
        arrays.append(pa.array(range(len(rows)), pa.int32()))
    if dress.chance(0.2) and not dress.named:
        fields = _turned(fields)
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    out = io.BytesIO()
    with orc.ORCWriter(out, **_options(dress)) as writer:
        step = 1 if dress.chance(0.3) else max(1, len(rows))
        for at in range(0, max(1, len(rows)), step):
            # Of parts of structs, Arrow's writer takes the first rows of a slice, not its own.
            writer.write(table.take(pa.array(range(at, min(at + step, len(rows))), pa.int64())))
    return out.getvalue()


def _options(dress: Dress) -> dict[str, Any]:
    if (rng := dress.rng) is None:
        return {}
    return {
        "compression": rng.choice(_CODECS),
        "compression_block_size": rng.choice((1 << 16, 1 << 18)),
        "compression_strategy": rng.choice(("speed", "compression")),
        "stripe_size": rng.choice((1, 1 << 26)),
        "dictionary_key_size_threshold": rng.choice((0.0, 1.0)),
        "row_index_stride": rng.choice((1000, 10000)),
        "file_version": rng.choice(("0.11", "0.12")),
    }


def _turned(fields: list[pa.Field]) -> list[pa.Field]:
    """Give columns each other's names: readers go by ids."""
    names = [field.name for field in fields]
    return [
        field.with_name(name) for field, name in zip(fields, names[1:] + names[:1], strict=True)
    ]


def _field(field: Field, dress: Dress, name: str | None = None) -> pa.Field:
    type, told = _type(field.type, dress)
    told = told if dress.named else {"iceberg.id": str(field.id), **told}
    if dress.chance(0.7):
        told["iceberg.required"] = str(field.required).lower()
    return pa.field(name or field.name, type, metadata=told)


def _type(type: Type, dress: Dress) -> tuple[pa.DataType, dict[str, str]]:
    match type:
        case Struct(members):
            return pa.struct([_field(each, dress) for each in members]), {}
        case List(element):
            return pa.list_(_field(element, dress, "element")), {}
        case Map(key, value):
            key_field = _field(key, dress, "key").with_nullable(False)
            return pa.map_(key_field, _field(value, dress, "value")), {}
        case Plain(name, arrow):
            if name in _TIMES:
                return _TIMES[name], {"iceberg.timestamp-unit": "MICROS"} if dress.chance(
                    0.5
                ) else {}
            return _LACKS.get(name, (arrow, {}))
    raise AssertionError(type)


def _array(type: Type, values: list[Any], stored: pa.DataType) -> pa.Array:
    """Return values, by names, as ORC has them.

    Whatever is below a null struct is null: Arrow's writer takes it for values of later rows else.
    """
    match type:
        case Struct(members):
            parts = [
                _array(each.type, [value and value[each.name] for value in values], at.type)
                for each, at in zip(members, stored, strict=True)
            ]
            mask = pa.array([value is None for value in values], pa.bool_())
            return pa.StructArray.from_arrays(parts, fields=list(stored), mask=mask)
        case List(element):
            held = _array(element.type, _flat(values), stored.value_type)
            return pa.ListArray.from_arrays(_offsets(values), held, type=stored)
        case Map(key, of):
            keys = _array(key.type, [one for one, _ in _flat(values)], stored.key_type)
            items = _array(of.type, [other for _, other in _flat(values)], stored.item_type)
            return pa.MapArray.from_arrays(_offsets(values), keys, items, type=stored)
    told = [whole(value) if isinstance(value, dt.time) else value for value in values]
    return pa.array(told, stored)


def _flat(values: list[Any]) -> list[Any]:
    return [each for value in values for each in value or ()]


def _offsets(values: list[Any]) -> pa.Int32Array:
    """Return where each list begins, null where there is none, and where the last one ends."""
    found, at = [], 0
    for value in values:
        found.append(None if value is None else at)
        at += len(value or ())
    return pa.array([*found, at], pa.int32())
