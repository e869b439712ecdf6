"""Variants as Arrow has them: metadata and value, a pair of bytes; and what they hold at a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType

from icetree.codec.variant.coerce import coerced
from icetree.codec.variant.read import (
    Malformed,
    Path,
    Primitive,
    find,
    is_object,
    members,
    names,
    primitive,
)
from icetree.codec.variant.write import NULL, encode_array, encode_object, encode_primitive
from icetree.spec.arrays import is_blob
from icetree.spec.schema.types import bounds_type

METADATA, VALUE, TYPED = "metadata", "value", "typed_value"
PAIR: Final = pa.struct(
    [pa.field(METADATA, pa.binary(), nullable=False), pa.field(VALUE, pa.binary(), nullable=False)]
)

_is = pa.types


def is_pair(type: pa.DataType) -> bool:
    """Tell whether a type can hold variants: bytes of metadata and of a value, or typed parts of it."""
    if not _is.is_struct(type):
        return False
    parts = {field.name: field.type for field in type}
    if METADATA not in parts or not parts.keys() <= {METADATA, VALUE, TYPED}:
        return False
    plain = [parts[name] for name in (METADATA, VALUE) if name in parts]
    return len(parts) > 1 and all(map(is_blob, plain))


def as_pair(array: pa.Array) -> pa.StructArray:
    """Return variants as the pair, whatever parts of them are apart; ValueError for broken ones."""
    if array.type == PAIR:
        return array
    absent = array.is_null()
    metadata = _bytes(pc.struct_field(array, METADATA))
    parts = {field.name for field in array.type}
    value = (
        _bytes(pc.struct_field(array, VALUE))
        if VALUE in parts
        else pa.nulls(len(array), pa.binary())
    )
    if TYPED in parts and not _is.is_null(array.type.field(TYPED).type):
        value = _whole(metadata, value, pc.struct_field(array, TYPED), absent)
    # A variant that is there has a value: that none is stored means null.
    value = pc.fill_null(value, NULL)
    if pc.and_not(metadata.is_null(), absent).true_count:
        raise ValueError("a variant has no metadata")
    members = [pc.fill_null(metadata, b""), value]
    return pa.StructArray.from_arrays(members, fields=list(PAIR), mask=absent)


def _bytes(array: pa.Array) -> pa.Array:
    return array if _is.is_binary(array.type) else array.cast(pa.binary())


# --- variants of which parts are stored apart ------------------------------------------------------


def _whole(metadata: pa.Array, value: pa.Array, typed: pa.Array, absent: pa.Array) -> pa.Array:
    known = [{} if each is None else _ids(each) for each in metadata.to_pylist()]
    made = _rebuilt(value.to_pylist(), typed, known)
    gone = absent.to_pylist()
    return pa.array(
        [None if no else each for each, no in zip(made, gone, strict=True)], pa.binary()
    )


def _ids(metadata: bytes) -> dict[str, int]:
    return {name: id for id, name in enumerate(names(metadata))}


_Ids = Sequence[Mapping[str, int]]


def _rebuilt(
    values: Sequence[bytes | None], typed: pa.Array | None, known: _Ids
) -> list[bytes | None]:
    """Return each value, put together from its parts; None for one that is missing."""
    if typed is None:
        return list(values)
    if _is.is_struct(typed.type):
        return _objects(values, typed, known)
    if _is.is_list(typed.type) or _is.is_large_list(typed.type):
        return _arrays(values, typed, known)
    singles = _singles(typed)
    return [
        value if single is None else encode_primitive(single)
        for value, single in zip(values, singles, strict=True)
    ]


def _parts(array: pa.StructArray) -> tuple[list[bytes | None], pa.Array | None]:
    """Return the value and the typed value of fields or elements."""
    there = {field.name for field in array.type}
    value = pc.struct_field(array, VALUE) if VALUE in there else pa.nulls(len(array))
    typed = pc.struct_field(array, TYPED) if TYPED in there else None
    return value.to_pylist(), typed


def _objects(values: Sequence[bytes | None], typed: pa.Array, known: _Ids) -> list[bytes | None]:
    fields = {}
    for field in typed.type:
        if not _is.is_struct(field.type):
            raise ValueError(f"field {field.name!r} of a variant has no parts")
        value, inner = _parts(pc.struct_field(typed, field.name))
        fields[field.name] = _rebuilt(value, inner, known)
    there = typed.is_valid().to_pylist()
    made: list[bytes | None] = []
    for at, (rest, ids) in enumerate(zip(values, known, strict=True)):
        if not there[at]:
            made.append(rest)
            continue
        own = {name: each for name, parts in fields.items() if (each := parts[at]) is not None}
        if rest is not None:
            own |= fields_of(rest, ids)
        made.append(encode_object(own, ids))
    return made


def fields_of(value: bytes, ids: Mapping[str, int]) -> dict[str, bytes]:
    """Return the fields of an object, each as it is encoded."""
    if not is_object(value):
        raise ValueError("an object of which fields are apart has a rest that is none")
    found = sorted(members(value, 0, tuple(ids)), key=lambda each: each[1])
    ends = [*(at for _, at in found[1:]), len(value)][: len(found)]
    return {str(name): value[at:end] for (name, at), end in zip(found, ends, strict=True)}


def _arrays(values: Sequence[bytes | None], typed: pa.Array, known: _Ids) -> list[bytes | None]:
    lengths = pc.fill_null(pc.list_value_length(typed), 0).to_pylist()
    flat = typed.flatten()
    if not _is.is_struct(flat.type):
        raise ValueError("elements of a variant have no parts")
    value, inner = _parts(flat)
    spread = [ids for ids, length in zip(known, lengths, strict=True) for _ in range(length)]
    elements = [NULL if each is None else each for each in _rebuilt(value, inner, spread)]
    there = typed.is_valid().to_pylist()
    made: list[bytes | None] = []
    at = 0
    for rest, length, is_there in zip(values, lengths, there, strict=True):
        made.append(encode_array(elements[at : at + length]) if is_there else rest)
        at += length
    return made


#: What each Arrow type holds of a variant, and the type in which Python gets it.
_HELD: Final[tuple[tuple[Callable[[pa.DataType], bool], str, pa.DataType | None], ...]] = (
    (_is.is_boolean, "boolean", None),
    (_is.is_integer, "exact", None),
    (_is.is_decimal, "exact", None),
    (_is.is_float32, "float", None),
    (_is.is_float64, "double", None),
    (_is.is_date32, "date", pa.int32()),
    (_is.is_time64, "time", pa.int64()),
    (lambda t: _is.is_string(t) or _is.is_large_string(t), "string", None),
    (lambda t: _is.is_fixed_size_binary(t) and t.byte_width == 16, "uuid", None),
    (is_blob, "binary", None),
)


def _singles(typed: pa.Array) -> list[Primitive | None]:
    kind, plain = _held(typed.type)
    values = typed if plain is None else typed.cast(plain)
    return [None if each is None else Primitive(kind, each) for each in values.to_pylist()]


def _held(type: pa.DataType) -> tuple[str, pa.DataType | None]:
    if _is.is_timestamp(type):
        zone = "timestamp" if type.tz is None else "timestamptz"
        return f"{zone}_ns" if type.unit == "ns" else zone, pa.int64()
    for holds, kind, plain in _HELD:
        if holds(type):
            return kind, plain
    raise ValueError(f"a variant has a part of type {type}")


# --- what is at a path -----------------------------------------------------------------------------


def extracted(pairs: pa.Array, path: Path, type: IcebergType) -> pa.Array:
    """Return what variants hold at a path, as values of a type; null for what is none of it."""
    arrow = bounds_type(type)
    assert arrow is not None
    metadata, value = (pc.struct_field(pairs, name).to_pylist() for name in (METADATA, VALUE))
    found = []
    for names_of, content in zip(metadata, value, strict=True):
        single = None
        if content is not None and names_of is not None:
            try:
                at = find(content, names(names_of), path)
                single = None if at is None else primitive(content, at)
            except Malformed:
                single = None
        found.append(None if single is None else coerced(single, type))
    return pa.array(found, arrow)
