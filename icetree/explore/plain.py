"""Values as JSON that a browser reads without loss: a number there has 53 bits, a snapshot's id 63."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from math import isfinite
from typing import Any, Final

import pyarrow as pa

from icetree.spec.texts import json_bytes

#: From here on a browser rounds whole numbers.
_ROUNDED: Final = 2**53
#: Of bytes and texts so much is shown.
_MOST: Final = 2_000
#: Values of one cell that are shown, and bytes of rows in one answer.
_VALUES: Final = 500
_ANSWER_BYTES: Final = 2_000_000
_NESTED: Final = (pa.ListScalar, pa.LargeListScalar, pa.FixedSizeListScalar, pa.StructScalar)


def plain(value: Any) -> Any:
    """Return a value in which there are texts, finite numbers, truths, null, lists and objects."""
    match value:
        case None | bool():
            return value
        case str():
            return shortened(value)
        case int():
            return int(value) if abs(value) < _ROUNDED else str(value)
        case float():
            return value if isfinite(value) else str(value)
        case bytes():
            return shortened(value[:_MOST].hex())
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(each) for each in value]
    return shortened(str(value))


def first_plain(rows: pa.Table) -> list[list[Any]]:
    """Return the first rows as plain values, few enough that a page shows them; one at least.

    Nothing is made of what is not shown: a small file may hold a very long list.
    """
    found: list[list[Any]] = []
    left = _ANSWER_BYTES
    for at in range(rows.num_rows):
        row = [_cell(column[at], _Room()) for column in rows.columns]
        left -= len(json_bytes(row))
        if found and left < 0:
            break
        found.append(row)
    return found


@dataclass(slots=True)
class _Room:
    """How many more values of a cell are shown."""

    left: int = _VALUES


def _cell(value: pa.Scalar, room: _Room) -> Any:
    """Return one value of a row; of very many in it, the first."""
    room.left -= 1
    if not value.is_valid or not isinstance(value, _NESTED):
        return plain(value.as_py())
    if isinstance(value, pa.StructScalar):
        return {name: _cell(each, room) for name, each in value.items()}
    found: list[Any] = []
    for each in value.values:
        if room.left <= 0:
            found.append(f"… ({len(value.values):,} in all)")
            break
        if isinstance(value, pa.MapScalar):
            found.append([_cell(part, room) for part in each.values()])
        else:
            found.append(_cell(each, room))
    return found


def shortened(text: str) -> str:
    """Return a text, only the start of a very long one."""
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(text):,} characters)"


def moment(at_ms: int) -> str:
    """Return a time as text, in UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"
