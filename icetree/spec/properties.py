"""Table properties, which are strings, as the values they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icetree.errors import InvalidInput


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
