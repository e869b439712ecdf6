"""Arguments as callers give them: made plain, or refused with a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeAlias

from icetree.errors import InvalidInput
from icetree.spec.texts import did_you_mean

#: Milliseconds since 1970, a datetime with a time zone, or the text of one.
Time: TypeAlias = "int | datetime | str"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND: Final = timedelta(milliseconds=1)
_FORMS: Final = (
    "give milliseconds since 1970, a datetime with a time zone, or a text such as "
    "'2026-01-31T12:00:00Z'"
)


def milliseconds(time: Time, *, what: str) -> int:
    """Return a time as milliseconds since 1970, rounded down."""
    at: Any = time
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at.strip().replace("Z", "+00:00"))
        except ValueError:
            raise InvalidInput(f"{what}={time!r} is no time: {_FORMS}") from None
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidInput(
                f"{what}={time!r} has no time zone, so it could be any of many times: "
                "add one, such as UTC"
            )
        return (at - _EPOCH) // _MILLISECOND
    if isinstance(at, bool) or not isinstance(at, int):
        raise InvalidInput(f"{what}={time!r} is no time: {_FORMS}")
    return at


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
