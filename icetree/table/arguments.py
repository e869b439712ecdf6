"""Arguments as callers give them: made plain, or refused with a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from icetree.errors import InvalidInput


def whole(number: int, *, what: str, least: int | None = None) -> int:
    """Return a number that is whole and, where that matters, not too small."""
    # NumPy's integers are numbers to count with, too.
    plain = number.__index__() if hasattr(number, "__index__") else None
    if plain is None or isinstance(number, bool) or (least is not None and plain < least):
        more = "" if least is None else f" of {least} or more"
        raise InvalidInput(f"{what}={number!r}: allowed are whole numbers{more}")
    return plain


def texts(given: Iterable[str], *, what: str) -> list[str]:
    """Return a list of texts; a single text is one of one."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise InvalidInput(f"{what}={given!r}: give texts")
    found = list(given)
    for each in found:
        if not isinstance(each, str):
            raise InvalidInput(f"{what}: {each!r} is no text")
    return found
