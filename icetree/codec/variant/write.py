"""Python to variants."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from icetree.codec.variant.read import Malformed, Primitive

#: Bytes of a whole number, and the number of its type.
_WHOLE: Final = ((1, 3), (2, 4), (4, 5), (8, 6))
#: Digits of a decimal, its bytes, and the number of its type.
_DECIMALS: Final = ((9, 4, 8), (18, 8, 9), (38, 16, 10))
_FIXED: Final = {
    "double": (7, "<d"),
    "date": (11, "<i"),
    "timestamptz": (12, "<q"),
    "timestamp": (13, "<q"),
    "float": (14, "<f"),
    "time": (17, "<q"),
    "timestamptz_ns": (18, "<q"),
    "timestamp_ns": (19, "<q"),
}
_BINARY, _STRING, _UUID = 15, 16, 20
_SHORTEST: Final = 64
_SMALL: Final = 256
NULL: Final = b"\0"


def encode_primitive(single: Primitive) -> bytes:
    """Return a single value, in as few bytes as hold it."""
    kind: str = single.kind
    value: Any = single.value
    if kind == "null":
        return NULL
    if kind == "boolean":
        return b"\x04" if value else b"\x08"
    if kind == "exact":
        return _exact(value)
    if kind in _FIXED:
        number, form = _FIXED[kind]
        packed: bytes = struct.pack(form, value)
        return bytes([number << 2]) + packed
    if kind == "uuid":
        return bytes([_UUID << 2]) + bytes(value)
    content: bytes = value.encode() if kind == "string" else bytes(value)
    if kind == "string" and len(content) < _SHORTEST:
        return bytes([len(content) << 2 | 1]) + content
    number = _STRING if kind == "string" else _BINARY
    length = len(content).to_bytes(4, "little")
    return bytes([number << 2]) + length + content


def _exact(value: int | Decimal) -> bytes:
    if isinstance(value, int):
        for width, number in _WHOLE:
            if -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1:
                return bytes([number << 2]) + value.to_bytes(width, "little", signed=True)
        value = Decimal(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    unscaled = int("".join(map(str, digits)) + "0" * max(0, exponent))
    for most, width, number in _DECIMALS:
        if len(str(unscaled)) <= most and scale <= most:
            signed = (-unscaled if sign else unscaled).to_bytes(width, "little", signed=True)
            return bytes([number << 2, scale]) + signed
    raise Malformed(f"{value} has too many digits")


def _width(most: int) -> int:
    return max(1, (most.bit_length() + 7) // 8)


def encode_names(names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """Return a dictionary of names, and the number of each."""
    ordered = sorted(set(names))
    contents = [each.encode() for each in ordered]
    ends = [0]
    for each in contents:
        ends.append(ends[-1] + len(each))
    width = _width(max(ends[-1], len(ordered)))
    numbers = b"".join(each.to_bytes(width, "little") for each in (len(ordered), *ends))
    metadata = bytes([(width - 1) << 6 | 0x10 | 1]) + numbers + b"".join(contents)
    return metadata, {name: id for id, name in enumerate(ordered)}


def encode_object(fields: Mapping[str, bytes], ids: Mapping[str, int]) -> bytes:
    """Return an object of values that are encoded already."""
    ordered = sorted(fields)
    try:
        numbers = [ids[name] for name in ordered]
    except KeyError as missing:
        raise Malformed(f"the dictionary lacks the name {missing}") from None
    values = [fields[name] for name in ordered]
    id_width = _width(max(numbers, default=0))
    large = len(ordered) >= _SMALL
    starts, width, content = _laid_out(values)
    head = (large << 4 | (id_width - 1) << 2 | (width - 1)) << 2 | 2
    told = b"".join(each.to_bytes(id_width, "little") for each in numbers)
    return bytes([head]) + _count(len(ordered), large) + told + starts + content


def encode_array(values: Sequence[bytes]) -> bytes:
    """Return an array of values that are encoded already."""
    large = len(values) >= _SMALL
    starts, width, content = _laid_out(values)
    head = (large << 2 | (width - 1)) << 2 | 3
    return bytes([head]) + _count(len(values), large) + starts + content


def _count(number: int, large: bool) -> bytes:
    return number.to_bytes(4 if large else 1, "little")


def _laid_out(values: Sequence[bytes]) -> tuple[bytes, int, bytes]:
    ends = [0]
    for each in values:
        ends.append(ends[-1] + len(each))
    width = _width(ends[-1])
    return b"".join(each.to_bytes(width, "little") for each in ends), width, b"".join(values)


def encode(value: Any) -> tuple[bytes, bytes]:
    """Return metadata and value of what JSON can say, and of decimals, bytes and primitives."""
    metadata, ids = encode_names(_names(value))
    return metadata, _encode(value, ids)


def _names(value: Any) -> Iterable[str]:
    match value:
        case Mapping():
            yield from value
            for each in value.values():
                yield from _names(each)
        case list() | tuple():
            for each in value:
                yield from _names(each)


def _encode(value: Any, ids: Mapping[str, int]) -> bytes:
    match value:
        case Mapping():
            return encode_object({name: _encode(each, ids) for name, each in value.items()}, ids)
        case list() | tuple():
            return encode_array([_encode(each, ids) for each in value])
        case Primitive():
            return encode_primitive(value)
        case None:
            return NULL
        case bool():
            return encode_primitive(Primitive("boolean", value))
        case int() | Decimal():
            return encode_primitive(Primitive("exact", value))
        case float():
            return encode_primitive(Primitive("double", value))
        case bytes():
            return encode_primitive(Primitive("binary", value))
    return encode_primitive(Primitive("string", str(value)))
