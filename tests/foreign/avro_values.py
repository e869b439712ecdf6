"""Values in Avro's binary form; lists and maps in as many blocks as chance has."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any


def number(value: int) -> bytes:
    """Return a whole number."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _sized(value: bytes) -> bytes:
    return number(len(value)) + value


def _text(value: str | bytes) -> bytes:
    return _sized(value.encode() if isinstance(value, str) else value)


_PLAIN: dict[str, Callable[[Any], bytes]] = {
    "null": lambda _: b"",
    "boolean": lambda value: bytes([bool(value)]),
    "int": number,
    "long": number,
    "float": lambda value: struct.pack("<f", value),
    "double": lambda value: struct.pack("<d", value),
    "bytes": _text,
    "string": _text,
    "fixed": bytes,
}


class Values:
    """Writes values, by chance where that is given."""

    def __init__(self, rng: Random | None) -> None:
        self._rng = rng

    def of(self, schema: Any, value: Any) -> bytes:
        """Return a value of a type, which tells each type that has a name right there."""
        match schema:
            case list():
                return self._either(schema, value)
            case {"type": "record", "fields": fields}:
                return b"".join(self.of(e["type"], value.get(e["name"])) for e in fields)
            case {"type": "array", "items": items}:
                return self._blocks([self.of(items, each) for each in value])
            case {"type": "map", "values": values}:
                pairs = value.items()
                return self._blocks([_sized(k.encode()) + self.of(values, v) for k, v in pairs])
            case {"type": inner}:
                return self.of(inner, value)
        return _PLAIN[schema](value)

    def _either(self, types: list[Any], value: Any) -> bytes:
        for at, each in enumerate(types):
            if (each in ("null", {"type": "null"})) == (value is None):
                return number(at) + self.of(each, value)
        raise AssertionError(types)

    def _blocks(self, items: list[bytes]) -> bytes:
        return b"".join(map(self._block, self._parts(items))) + b"\0"

    def _parts(self, items: list[bytes]) -> Iterator[list[bytes]]:
        at = 0
        while at < len(items):
            size = len(items) - at
            if self._rng is not None and self._rng.random() < 0.5:
                size = self._rng.randint(1, size)
            yield items[at : at + size]
            at += size

    def _block(self, items: list[bytes]) -> bytes:
        content = b"".join(items)
        if self._rng is not None and self._rng.random() < 0.5:
            # A number below zero is followed by how many bytes there are.
            return number(-len(items)) + number(len(content)) + content
        return number(len(items)) + content
