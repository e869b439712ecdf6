"""Protocol buffers, as much of them as the tail of an ORC file needs: strict, bounded, no I/O."""

from __future__ import annotations

from collections.abc import Iterator
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
