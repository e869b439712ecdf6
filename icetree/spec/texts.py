"""Texts as callers give them: names, notes and locations that files can hold, or a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from icetree.errors import InvalidInput

_HALF: Final = (
    "holds half of a character, which no file can: decode it from its bytes again, with the "
    "right encoding"
)


def shortened(values: Sequence[object], *, most: int = 5) -> str:
    """Return a list as text, only the start of a long one."""
    told = ", ".join(map(repr, values[:most]))
    return f"[{told}, … {len(values):,} in all]" if len(values) > most else f"[{told}]"


def text(given: Any, *, what: str) -> str:
    """Return a text that says something and can be stored; InvalidInput for all else."""
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(f"{what}={given!r}: give a text that is not empty")
    return storable(given, what=what)


def storable(given: Any, *, what: str) -> str:
    """Return a text, which may be empty, that can be stored; InvalidInput for all else."""
    if not isinstance(given, str):
        raise InvalidInput(f"{what}={given!r}: give a text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what}={given!r} {_HALF}") from None
    return given


def json_bytes(document: Any) -> bytes:
    """Return a document as JSON; InvalidInput for a text in it that cannot be stored."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{error.object!r} {_HALF}") from None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a hint at the nearest name, empty when none is near."""
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near is not None else ""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the nearest of some names, whatever their case; None when none is near."""
    lowered = {each.casefold(): each for each in names}
    near = get_close_matches(name.casefold(), lowered, n=1)
    return lowered[near[0]] if near else None
