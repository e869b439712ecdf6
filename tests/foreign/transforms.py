"""Transforms of partitions, by the specification alone: what a value comes to, and of which type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.foreign.columns import EPOCH, EPOCH_UTC, Plain, plain

MICROSECOND = dt.timedelta(microseconds=1)
_WHOLE = ("int", "long")
_TIMES = ("timestamp", "timestamptz")
_CUT = (*_WHOLE, "string", "binary", "decimal")
_HASHED = (*_CUT, *_TIMES, "date", "uuid", "fixed", "time")

#: A transform that only this writer knows.
UNKNOWN = "shade[2]"

#: Which types a transform takes, by how their names begin.
TAKES: dict[str, tuple[str, ...]] = {
    "identity": (*_HASHED, "boolean", "double", "float"),
    "void": (*_HASHED, "boolean", "double", "float"),
    "bucket[3]": _HASHED,
    "truncate[2]": ("string", "binary"),
    "truncate[10]": (*_WHOLE, "decimal"),
    "year": (*_TIMES, "date"),
    "month": (*_TIMES, "date"),
    "day": (*_TIMES, "date"),
    "hour": _TIMES,
    UNKNOWN: (*_WHOLE, "string"),
}
_DATE = Plain("date", pa.date32())


def takes(transform: str, type: Plain) -> bool:
    return type.name.startswith(TAKES[transform])


def result(transform: str, source: Plain) -> Plain:
    """Return the type of what a transform makes."""
    if transform == UNKNOWN:
        return plain("string" if source.name == "string" else "int")
    if transform in ("identity", "void") or transform.startswith("truncate"):
        return source
    return _DATE if transform == "day" else plain("int")


def apply(transform: str, value: Any, *others: Any) -> Any:
    """Return what a value comes to, or several values of a row, where a transform takes these."""
    if transform.startswith("bucket"):
        # What is null counts for nothing.
        known = [each for each in (value, *others) if each is not None]
        return _bucket(transform, known) if known else None
    if value is None or transform == "void":
        return None
    if transform == "identity":
        return value
    name, _, width = transform.rstrip("]").partition("[")
    match name:
        case "shade":
            return f"of {len(value) % 2}" if isinstance(value, str) else value % 2 - 1
        case "truncate":
            return _cut(value, int(width))
        case "year":
            return value.year - 1970
        case "month":
            return (value.year - 1970) * 12 + value.month - 1
        case "day":
            return value.date() if isinstance(value, dt.datetime) else value
        case "hour":
            return whole(value) // 3_600_000_000
    raise AssertionError(transform)


def _bucket(transform: str, values: list[Any]) -> int:
    """Return the bucket of values: the hash of each is the seed of the next one's."""
    found = 0
    for value in values:
        found = _murmur3(_hashed(value), found)
    return (found & 0x7FFFFFFF) % int(transform.partition("[")[2].rstrip("]"))


def _cut(value: Any, width: int) -> Any:
    if isinstance(value, Decimal):
        number = unscaled(value) - unscaled(value) % width
        return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -2))
    return value[:width] if isinstance(value, str | bytes) else value - value % width


def whole(value: dt.datetime | dt.date | dt.time) -> int:
    """Return the microseconds of a time, the days of a date."""
    match value:
        case dt.datetime():
            return (value - (EPOCH if value.tzinfo is None else EPOCH_UTC)) // MICROSECOND
        case dt.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return seconds * 10**6 + value.microsecond
    return (value - EPOCH.date()).days


def unscaled(value: Decimal) -> int:
    """Return a decimal's digits as a number; no context may round these."""
    sign, digits, _ = value.as_tuple()
    return int("".join(map(str, digits))) * (-1 if sign else 1)


def unscaled_bytes(value: Decimal) -> bytes:
    """Return a decimal's digits as the fewest bytes, in two's complement."""
    number = unscaled(value)
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def bare(value: Any) -> Any:
    """Return what a value is told by: bytes, where their number differs, or a number."""
    match value:
        case str():
            return value.encode()
        case Decimal():
            return unscaled_bytes(value)
        case dt.datetime() | dt.date() | dt.time():
            return whole(value)
    return value


def _hashed(value: Any) -> bytes:
    found = bare(value)
    return found if isinstance(found, bytes) else int(found).to_bytes(8, "little", signed=True)


def _murmur3(content: bytes, found: int = 0) -> int:
    """Return the 32 bits of Murmur3 for x86, seeded with a number."""
    mask = 0xFFFFFFFF

    def turned(number: int, by: int) -> int:
        return (number << by | number >> (32 - by)) & mask

    def mixed(block: bytes) -> int:
        number = int.from_bytes(block, "little") * 0xCC9E2D51 & mask
        return turned(number, 15) * 0x1B873593 & mask

    whole = len(content) // 4 * 4
    for at in range(0, whole, 4):
        found = (turned(found ^ mixed(content[at : at + 4]), 13) * 5 + 0xE6546B64) & mask
    if content[whole:]:
        found ^= mixed(content[whole:])
    found ^= len(content)
    found = (found ^ found >> 16) * 0x85EBCA6B & mask
    found = (found ^ found >> 13) * 0xC2B2AE35 & mask
    return found ^ found >> 16
