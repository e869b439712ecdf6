"""Arguments as callers give them: made plain, or refused with a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping

from icetree.errors import InvalidInput
from icetree.spec.texts import did_you_mean


def whole(number: int, *, what: str, least: int | None = None) -> int:
    """Return a number that is whole and, where that matters, not too small."""
    # NumPy's integers are numbers to count with, too.
    plain = number.__index__() if hasattr(number, "__index__") else None
    if plain is None or isinstance(number, bool) or (least is not None and plain < least):
        more = "" if least is None else f" of {least} or more"
        raise InvalidInput(f"{what}={number!r}: allowed are whole numbers{more}")
    return plain


def require_known(given: Mapping[str, object], of: Callable[..., object], *, verb: str) -> None:
    """Refuse keyword arguments that a function does not have."""
    parameters = inspect.signature(of).parameters.values()
    known = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"{verb} takes no {name!r}: beside its own arguments it takes "
                f"{', '.join(known)}{did_you_mean(name, known)}"
            )


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
