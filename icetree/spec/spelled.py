"""Arguments by the names that callers give them: one that a verb has not is refused, with a hint."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from icetree.errors import InvalidInput
from icetree.spec.texts import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def spelled_out(options: type | None = None) -> Callable[[F], F]:
    """Have a verb refuse arguments by names that it has not, with a hint at those that it has.

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
        known = [each.name for each in shown if each.kind in _NAMED and each.name != "self"]

        @wraps(verb)
        def strict(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in known:
                    raise InvalidInput(
                        f"{verb.__name__} takes no {name!r}, but "
                        f"{', '.join(known) or 'values alone, one after the other'}"
                        f"{did_you_mean(name, known)}"
                    )
            return verb(*args, **given)

        # What `inspect` looks for; a function's type knows nothing of it.
        vars(strict)["__signature__"] = own.replace(parameters=shown)
        return cast("F", strict)

    return spell


def spelled(held: C) -> C:
    """Have all public verbs of a class refuse arguments that they have not, as `spelled_out` does."""
    for name, verb in list(vars(held).items()):
        is_verb = inspect.isfunction(verb) and not name.startswith("_")
        if (
            is_verb
            and "__signature__" not in vars(verb)
            and len(inspect.signature(verb).parameters) > 1
        ):
            setattr(held, name, spelled_out()(verb))
    return held
