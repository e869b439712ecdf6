"""Table properties, which are strings, as the values they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from icetree.errors import InvalidInput

#: Ten years: whoever gives more means none at all, which no connection should have.
_LONGEST_S: Final = 10 * 365 * 86_400


def properties_of(given: Any) -> dict[str, str]:
    """Return properties as they may be stored, texts by name; InvalidInput for all else."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"properties={given!r}: give a mapping of names to texts")
    for name, value in given.items():
        if not isinstance(name, str):
            raise InvalidInput(f"the name of a property is a string, not {name!r}")
        if not isinstance(value, str):
            raise InvalidInput(f"property {name!r} is a string, not {value!r}")
    return dict(given)


def whole_number(properties: Mapping[str, str], name: str, *, default: int, least: int = 0) -> int:
    """Return a property that is a whole number; InvalidInput when it is not one."""
    text = properties.get(name, str(default))
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise InvalidInput(f"{name}={text!r}: allowed are whole numbers of {least} or more")
    return number


def flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a property that is true or false; InvalidInput when it is neither."""
    given = properties.get(name, str(default))
    if given.lower() not in ("true", "false"):
        raise InvalidInput(f"{name}={given!r}: allowed are 'true' and 'false'")
    return given.lower() == "true"


def choice(
    properties: Mapping[str, str], name: str, allowed: Sequence[str], *, default: str
) -> str:
    """Return a property that is one of a few words; InvalidInput when it is another."""
    given = properties.get(name, default)
    if given.lower() not in allowed:
        raise InvalidInput(f"{name}={given!r}: allowed are {', '.join(allowed)}")
    return given.lower()


def seconds(properties: Mapping[str, str], name: str, *, default: float) -> float:
    """Return a property that is a span of time; InvalidInput when it is none that can pass."""
    given = properties.get(name, str(default))
    try:
        span = float(given)
    except ValueError:
        span = math.nan
    if not 0 < span < _LONGEST_S:
        raise InvalidInput(f"{name} is {given!r}: give seconds, more than 0, such as {default:g}")
    return span
