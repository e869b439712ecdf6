"""Values as JSON that a browser reads without loss: a number there has 53 bits, a snapshot's id 63."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timezone
from math import isfinite
from typing import Any, Final

#: From here on a browser rounds whole numbers.
_ROUNDED: Final = 2**53
#: Of bytes and texts so much is shown.
_MOST: Final = 2_000


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


def shortened(text: str) -> str:
    """Return a text, only the start of a very long one."""
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(text):,} characters)"


def moment(at_ms: int) -> str:
    """Return a time as text, in UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"
