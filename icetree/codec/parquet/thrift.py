"""Thrift's compact protocol, as much of it as a Parquet footer needs: strict, bounded, no I/O.

A struct is read by a table of the fields one wants. A wanted field of another type, one that
comes twice, a number that is too wide and a length that passes the end are errors here, where
other readers skip, truncate or guess: so nobody reads the same bytes in two ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

BOOLEAN: Final = 1
I32: Final = 5
I64: Final = 6
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12

_FALSE: Final = 2
_BYTE: Final = 3
_I16: Final = 4
_DOUBLE: Final = 7
_SET: Final = 10
_MAP: Final = 11
_UUID: Final = 13

_VARINT_BYTES: Final = 10
_WIDTH: Final = {_I16: 16, I32: 32, I64: 64}
#: No struct of Parquet nests as deep.
_DEEPEST: Final = 32

#: Bytes, or a part of some.
Data: TypeAlias = "bytes | memoryview"
#: Values by field id.
Struct: TypeAlias = dict[int, Any]


class Broken(Exception):
    """The bytes are not what they must be; the message says how."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a field must be: its type, that of its elements for a list, and their fields.

    Of a list it may be enough to know where it is.
    """

    kind: int
    element: int = 0
    fields: Fields | None = None
    only_where: bool = False


Fields: TypeAlias = dict[int, Wanted]


def read_struct(
    data: Data, at: int, fields: Fields, depth: int = 0, *, after: int = 0
) -> tuple[Struct, int]:
    """Return the wanted fields of the struct at `at`, and where it ends.

    With `after`, the fields up to that one were read already, and `at` is where the next begins.
    """
    _require_shallow(depth)
    found: Struct = {}
    id = after
    try:
        while head := data[at]:
            kind = head & 0x0F
            if head > 0x0F:
                id += head >> 4
                at += 1
            else:
                id, at = _written_id(data, at + 1, id)
            wanted = fields.get(id)
            if wanted is not None:
                found[id], at = _value(data, at, kind, wanted, depth)
            # Most of what is skipped are numbers of one byte.
            elif _I16 <= kind <= I64 and data[at] < 0x80:
                at += 1
            else:
                at = _skip(data, at, kind, depth)
    except IndexError:
        raise Broken("it ends in the middle") from None
    return found, at + 1


def _written_id(data: Data, at: int, last: int) -> tuple[int, int]:
    id, at = _number(data, at, _I16)
    if id <= last:
        raise Broken(f"field {id} comes after field {last}")
    return id, at


def _value(data: Data, at: int, kind: int, wanted: Wanted, depth: int) -> tuple[Any, int]:
    if kind != wanted.kind and not (kind == _FALSE and wanted.kind == BOOLEAN):
        raise Broken(f"a field has type {kind}, not {wanted.kind}")
    if kind in _WIDTH:
        value = data[at]
        if value < 0x80:
            return (value >> 1) ^ -(value & 1), at + 1
        return _number(data, at, kind)
    if kind == BINARY:
        start, end = _span(data, at)
        return data[start:end], end
    if kind == STRUCT:
        return read_struct(data, at, wanted.fields or {}, depth + 1)
    if kind == LIST:
        if wanted.only_where:
            return at, _skip_list(data, at, depth)
        return _list(data, at, wanted, depth)
    return kind == BOOLEAN, at


def read_unsigned(data: Data, at: int) -> tuple[int, int]:
    """Return a number of up to ten bytes, and where it ends."""
    try:
        return _unsigned(data, at)
    except IndexError:
        raise Broken("it ends in the middle") from None


def skip_struct(data: Data, at: int) -> int:
    """Return where a struct ends."""
    try:
        return _skip_struct(data, at, 0)
    except IndexError:
        raise Broken("it ends in the middle") from None


def read_list_head(data: Data, at: int, element: int) -> tuple[int, int]:
    """Return how many elements a list has, and where the first one is."""
    try:
        head = data[at]
        at += 1
        count = head >> 4
        if count == 15:
            count, at = _unsigned(data, at)
    except IndexError:
        raise Broken("it ends in the middle") from None
    if head & 0x0F != element:
        raise Broken(f"a list has elements of type {head & 0x0F}, not {element}")
    # No element takes less than a byte.
    if count > len(data) - at:
        raise Broken(f"a list of {count} elements does not fit")
    return count, at


def _list(data: Data, at: int, wanted: Wanted, depth: int) -> tuple[list[Any], int]:
    count, at = read_list_head(data, at, wanted.element)
    element = Wanted(wanted.element, fields=wanted.fields)
    found: list[Any] = []
    for _ in range(count):
        value, at = _value(data, at, wanted.element, element, depth)
        found.append(value)
    return found, at


# --- what nobody wants ---------------------------------------------------------------------------


def _skip(data: Data, at: int, kind: int, depth: int) -> int:
    """Return where a value ends."""
    skip = _SKIPS.get(kind)
    if skip is None:
        raise Broken(f"there is no type {kind}")
    return skip(data, at, depth)


def _skip_struct(data: Data, at: int, depth: int) -> int:
    _require_shallow(depth)
    while head := data[at]:
        at += 1
        if head <= 0x0F:
            _, at = _unsigned(data, at)
        kind = head & 0x0F
        if _I16 <= kind <= I64 and data[at] < 0x80:
            at += 1
        else:
            at = _skip(data, at, kind, depth + 1)
    return at + 1


def _skip_list(data: Data, at: int, depth: int) -> int:
    element = data[at] & 0x0F
    count, at = read_list_head(data, at, element)
    return _skip_elements(data, at, count, (element,), depth)


def _skip_map(data: Data, at: int, depth: int) -> int:
    count, at = _unsigned(data, at)
    if not count:
        return at
    if 2 * count > len(data) - at:
        raise Broken(f"a map of {count} pairs does not fit")
    kinds = data[at]
    return _skip_elements(data, at + 1, count, (kinds >> 4, kinds & 0x0F), depth)


def _skip_elements(data: Data, at: int, count: int, kinds: tuple[int, ...], depth: int) -> int:
    _require_shallow(depth)
    for _ in range(count):
        for kind in kinds:
            # A boolean that stands in a list takes a byte.
            if kind in (BOOLEAN, _FALSE) or (_I16 <= kind <= I64 and data[at] < 0x80):
                at += 1
            else:
                at = _skip(data, at, kind, depth + 1)
    return at


def _skip_bytes(data: Data, at: int, depth: int) -> int:  # noqa: ARG001
    return _span(data, at)[1]


def _skip_number(data: Data, at: int, depth: int) -> int:  # noqa: ARG001
    return _unsigned(data, at)[1]


def _skip_fixed(width: int) -> Callable[[Data, int, int], int]:
    def skip(data: Data, at: int, depth: int) -> int:  # noqa: ARG001
        if at + width > len(data):
            raise IndexError(at)
        return at + width

    return skip


_SKIPS: Final = {
    BOOLEAN: _skip_fixed(0),
    _FALSE: _skip_fixed(0),
    _BYTE: _skip_fixed(1),
    _I16: _skip_number,
    I32: _skip_number,
    I64: _skip_number,
    _DOUBLE: _skip_fixed(8),
    BINARY: _skip_bytes,
    LIST: _skip_list,
    _SET: _skip_list,
    _MAP: _skip_map,
    STRUCT: _skip_struct,
    _UUID: _skip_fixed(16),
}


# --- numbers and lengths -------------------------------------------------------------------------


def _require_shallow(depth: int) -> None:
    if depth > _DEEPEST:
        raise Broken("values nest too deep")


def _span(data: Data, at: int) -> tuple[int, int]:
    """Return start and end of bytes that come with their length."""
    length = data[at]
    at += 1
    if length >= 0x80:
        length, at = _unsigned(data, at - 1)
    end = at + length
    if end > len(data):
        raise Broken(f"{length} bytes do not fit")
    return at, end


def _number(data: Data, at: int, kind: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    if value >> _WIDTH[kind]:
        raise Broken(f"a number takes more than {_WIDTH[kind]} bits")
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: Data, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise Broken("a number does not end")
