"""Table properties, which are strings, as the values they mean."""

from __future__ import annotations

from collections.abc import Mapping

from icetree.errors import InvalidInput


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
