"""Variants to Python: bytes of all kinds, of which the worst is `Malformed`.

A variant is a dictionary of names, the metadata, and a value whose fields are told by their numbers
in it. Nothing here calls itself, so no nesting is too deep to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from struct import error as struct_error
from struct import unpack_from
from typing import Any, Final, TypeAlias

_VERSION: Final = 1
_PRIMITIVE, _SHORT, _OBJECT, _ARRAY = range(4)

#: Keys of objects and numbers of array elements, outermost first.
Path: TypeAlias = "tuple[str | int, ...]"


class Malformed(ValueError):
    """The bytes are no variant; the message says why."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A single value and what it is; whole numbers and decimals are one kind, `exact`."""

    kind: str
    value: Any


#: The number of each kind of primitive: its kind, how its bytes are read, how many there are.
_FIXED: Final = {
    3: ("exact", "<b", 1),
    4: ("exact", "<h", 2),
    5: ("exact", "<i", 4),
    6: ("exact", "<q", 8),
    7: ("double", "<d", 8),
    11: ("date", "<i", 4),
    12: ("timestamptz", "<q", 8),
    13: ("timestamp", "<q", 8),
    14: ("double", "<f", 4),
    17: ("time", "<q", 8),
    18: ("timestamptz_ns", "<q", 8),
    19: ("timestamp_ns", "<q", 8),
}
_PLAIN: Final = {0: ("null", None), 1: ("boolean", True), 2: ("boolean", False)}
_DECIMALS: Final = {8: 4, 9: 8, 10: 16}
_BINARY, _STRING, _UUID = 15, 16, 20
_MOST_SCALE: Final = 38


@lru_cache(maxsize=1024)
def names(metadata: bytes) -> tuple[str, ...]:
    """Return the names that a dictionary has."""
    try:
        head = metadata[0]
        if head & 0x0F != _VERSION:
            raise Malformed(f"version {head & 0x0F} of the encoding is not known")
        width = (head >> 6) + 1
        count = _number(metadata, 1, width)
        start = 1 + width * (count + 2)
        if start > len(metadata):
            raise Malformed("the names do not fit")
        ends = [_number(metadata, 1 + width * (at + 1), width) for at in range(count + 1)]
        if ends != sorted(ends) or start + ends[-1] > len(metadata):
            raise Malformed("the names do not fit")
        return tuple(
            metadata[start + one : start + other].decode() for one, other in pairwise(ends)
        )
    except (IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"broken names: {error}") from None


def _number(content: bytes, at: int, width: int) -> int:
    if at + width > len(content):
        raise Malformed("it ends in the middle")
    return int.from_bytes(content[at : at + width], "little")


def is_object(value: bytes, at: int = 0) -> bool:
    """Tell whether a value is an object."""
    return at < len(value) and value[at] & 3 == _OBJECT


def primitive(value: bytes, at: int = 0) -> Primitive | None:
    """Return a single value; None for an object or an array."""
    try:
        head = value[at]
        kind, number = head & 3, head >> 2
        if kind == _SHORT:
            return Primitive("string", _text(value, at + 1, number))
        if kind != _PRIMITIVE:
            return None
        if number in _PLAIN:
            return Primitive(*_PLAIN[number])
        if number in _FIXED:
            name, form, _ = _FIXED[number]
            return Primitive(name, unpack_from(form, value, at + 1)[0])
        if number in _DECIMALS:
            return Primitive("exact", _decimal(value, at + 1, _DECIMALS[number]))
        if number in (_BINARY, _STRING):
            length = _number(value, at + 1, 4)
            if number == _STRING:
                return Primitive("string", _text(value, at + 5, length))
            return Primitive("binary", _bytes(value, at + 5, length))
        if number == _UUID:
            return Primitive("uuid", _bytes(value, at + 1, 16))
        raise Malformed(f"there is no type {number}")
    except (IndexError, struct_error):
        raise Malformed("it ends in the middle") from None


def _decimal(value: bytes, at: int, width: int) -> Decimal:
    scale = value[at]
    if scale > _MOST_SCALE:
        raise Malformed(f"a decimal has scale {scale}")
    unscaled = int.from_bytes(_bytes(value, at + 1, width), "little", signed=True)
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _bytes(value: bytes, at: int, length: int) -> bytes:
    if at + length > len(value):
        raise Malformed("it ends in the middle")
    return value[at : at + length]


def _text(value: bytes, at: int, length: int) -> str:
    try:
        return _bytes(value, at, length).decode()
    except UnicodeDecodeError:
        raise Malformed("a text is no UTF-8") from None


def members(value: bytes, at: int, known: tuple[str, ...]) -> list[tuple[str | int, int]]:
    """Return the fields of an object, or the elements of an array, and where each begins."""
    try:
        head = value[at] >> 2
    except IndexError:
        raise Malformed("it ends in the middle") from None
    is_array = value[at] & 3 == _ARRAY
    large = head >> 2 & 1 if is_array else head >> 4 & 1
    width, id_width = (head & 3) + 1, (head >> 2 & 3) + 1
    count = _number(value, at + 1, 4 if large else 1)
    at += 1 + (4 if large else 1)
    ids_end = at if is_array else at + count * id_width
    start = ids_end + width * (count + 1)
    if start > len(value):
        raise Malformed("more members are told than there can be")
    found: list[tuple[str | int, int]] = []
    for number in range(count):
        begins = start + _number(value, ids_end + number * width, width)
        name: str | int = number
        if not is_array:
            id = _number(value, at + number * id_width, id_width)
            if id >= len(known):
                raise Malformed(f"there is no name {id}")
            name = known[id]
        if begins >= len(value):
            raise Malformed("a member is beyond the end")
        found.append((name, begins))
    return found


def find(value: bytes, known: tuple[str, ...], path: Path) -> int | None:
    """Return where the value at a path begins; None where there is none."""
    at = 0
    for step in path:
        if at >= len(value):
            raise Malformed("it ends in the middle")
        kind = value[at] & 3
        if kind != (_OBJECT if isinstance(step, str) else _ARRAY):
            return None
        inside = dict(members(value, at, known))
        if step not in inside:
            return None
        at = inside[step]
    return at


def leaves(value: bytes, known: tuple[str, ...]) -> Iterator[tuple[Path, Primitive | None]]:
    """Yield every field within objects and what it is; None for an array, and for an object itself.

    What is within arrays is looked at, but not told.
    """
    waiting: list[tuple[Path | None, int]] = [((), 0)]
    looked = 0
    while waiting:
        path, at = waiting.pop()
        looked += 1
        # Members may lie upon each other; what is more than its bytes is no value of use.
        if looked > len(value):
            raise Malformed("members lie upon each other")
        single = primitive(value, at)
        if path is not None:
            yield path, single
        if single is None:
            within = is_object(value, at)
            for name, begins in members(value, at, known):
                deeper = (*path, name) if path is not None and within else None
                waiting.append((deeper, begins))


def require_sound(metadata: bytes, value: bytes) -> None:
    """Raise `Malformed` where the bytes are no variant."""
    for _ in leaves(value, names(metadata)):
        pass
