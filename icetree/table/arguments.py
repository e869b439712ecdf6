"""Arguments as callers give them: made plain, or refused with a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

from icetree.errors import InvalidInput
from icetree.spec.texts import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


def whole(number: int, *, what: str, least: int | None = None) -> int:
    """Return a number that is whole and, where that matters, not too small."""
    # NumPy's integers are numbers to count with, too.
    plain = number.__index__() if hasattr(number, "__index__") else None
    if plain is None or isinstance(number, bool) or (least is not None and plain < least):
        more = "" if least is None else f" of {least} or more"
        raise InvalidInput(f"{what}={number!r}: allowed are whole numbers{more}")
    return plain


def spelled_out(options: type | None = None) -> Callable[[F], F]:
    """Have a verb refuse keywords that it has not, with a hint at those that it has.

    Where it takes the `options` of a TypedDict by `Unpack`, `help` shows them each by its name.
    """

    def spell(verb: F) -> F:
        own = inspect.signature(verb)
        shown = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, type in () if options is None else options.__annotations__.items():
            said = getattr(type, "__forward_arg__", type)
            shown.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=said
                )
            )
        known = {each.name for each in shown}
        keywords = [each.name for each in shown if each.kind is each.KEYWORD_ONLY]

        @wraps(verb)
        def strict(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in known:
                    raise InvalidInput(
                        f"{verb.__name__} takes no {name!r}: beside its own arguments it takes "
                        f"{', '.join(keywords)}{did_you_mean(name, keywords)}"
                    )
            return verb(*args, **given)

        # What `inspect` looks for; a function's type knows nothing of it.
        vars(strict)["__signature__"] = own.replace(parameters=shown)
        return cast("F", strict)

    return spell


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
