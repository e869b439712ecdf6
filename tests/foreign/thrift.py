"""Thrift's compact protocol, as plain values: enough to write a Parquet footer anew."""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
#: What a struct has, by field: of which type, and its value. A list is a type and values.
Fields: TypeAlias = "dict[int, tuple[int, Any]]"


def read(data: bytes) -> Fields:
    """Return a struct."""
    found: Fields = _struct(data, 0)[0]
    return found


def written(fields: Fields) -> bytes:
    """Return a struct's bytes, its fields in order."""
    out, last = bytearray(), 0
    for id, (type, value) in sorted(fields.items()):
        step = id - last
        out += bytes([step << 4 | type]) if 0 < step < 16 else bytes([type]) + _zigzag(id)
        out += b"" if type in (TRUE, FALSE) else _value(type, value)
        last = id
    return bytes(out) + b"\0"


def _value(type: int, value: Any) -> bytes:
    match type:
        case 3:
            return bytes([value & 0xFF])
        case 4 | 5 | 6:
            return _zigzag(value)
        case 7:
            return struct.pack("<d", value)
        case 8:
            return _number(len(value)) + bytes(value)
        case 9:
            of, items = value
            size = len(items)
            head = bytes([size << 4 | of]) if size < 15 else bytes([0xF0 | of]) + _number(size)
            return head + b"".join(_item(of, item) for item in items)
        case 12:
            return written(value)
    raise AssertionError(type)


def _item(type: int, value: Any) -> bytes:
    return bytes([TRUE if value else FALSE]) if type in (TRUE, FALSE) else _value(type, value)


def _zigzag(value: int) -> bytes:
    return _number(value << 1 if value >= 0 else (-value << 1) - 1)


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _struct(data: bytes, at: int) -> tuple[Fields, int]:
    found: Fields = {}
    id = 0
    while head := data[at]:
        type, step = head & 0x0F, head >> 4
        at += 1
        if step:
            id += step
        else:
            id, at = _signed(data, at)
        value: Any = type == TRUE
        if type not in (TRUE, FALSE):
            value, at = _read(type, data, at)
        found[id] = (type, value)
    return found, at + 1


def _read(type: int, data: bytes, at: int) -> tuple[Any, int]:
    match type:
        case 1 | 2:
            return data[at] == TRUE, at + 1
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            return _signed(data, at)
        case 7:
            return struct.unpack_from("<d", data, at)[0], at + 8
        case 8:
            size, at = _unsigned(data, at)
            return data[at : at + size], at + size
        case 9:
            of, size = data[at] & 0x0F, data[at] >> 4
            at += 1
            if size == 15:
                size, at = _unsigned(data, at)
            items = []
            for _ in range(size):
                item, at = _read(of, data, at)
                items.append(item)
            return (of, items), at
        case 12:
            return _struct(data, at)
    raise AssertionError(type)


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
