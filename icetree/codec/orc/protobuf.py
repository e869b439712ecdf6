"""Protocol buffers, as much of them as ORC files need: strict, bounded, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_VARINT: Final = 0
_EIGHT_BYTES: Final = 1
_SPAN: Final = 2
_FOUR_BYTES: Final = 5
_WIDTHS: Final = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_VARINT_BYTES: Final = 10
_MOST: Final = 2**63 - 1


class Broken(Exception):
    """The bytes are no message; the text says why."""


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message, in order: its number, and a whole number or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        width = _WIDTHS.get(kind)
        if kind == _SPAN:
            width, at = _varint(message, at)
        if width is None or number == 0:
            raise Broken(f"field {number} is of a kind {kind} that there is not")
        if at + width > len(message):
            raise Broken("it ends in the middle")
        yield number, message[at : at + width]
        at += width


def number_in(fields: dict[int, int | bytes], number: int, what: str) -> int:
    """Return a field that is a whole number, 0 where it is left out."""
    value = fields.get(number, 0)
    if not isinstance(value, int) or value > _MOST:
        raise Broken(f"{what} is no number")
    return value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[at : at + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise Broken("a number does not end")


def numbers_of(packed: bytes) -> list[int]:
    """Return whole numbers that stand one after the other."""
    found, at = [], 0
    while at < len(packed):
        value, at = _varint(packed, at)
        found.append(value)
    return found


def message_of(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """Return a message of whole numbers and bytes."""
    made = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            made += varint(number << 3 | _VARINT) + varint(value)
        else:
            made += varint(number << 3 | _SPAN) + varint(len(value)) + value
    return bytes(made)


def varint(value: int) -> bytes:
    """Return a whole number, not below 0, as messages have it."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
