"""Stats that say less than they could, or say it loosely: all of it is true."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from random import Random
from typing import Any

from tests.foreign.columns import Plain

_DAY = dt.timedelta(days=1)

#: What lies below a value of a type, and above it.
_BEYOND: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "int": (lambda it: it - 3, lambda it: it + 3),
    "long": (lambda it: it - 3, lambda it: it + 3),
    "double": (lambda it: it - 0.5, lambda it: it + 0.5),
    "float": (lambda it: it - 0.5, lambda it: it + 0.5),
    "string": (lambda _: "", lambda it: it + "é"),
    "binary": (lambda _: b"", lambda it: it + b"\0"),
    "boolean": (lambda _: False, lambda _: True),
    **dict.fromkeys(
        ("date", "timestamp", "timestamptz"), (lambda it: it - _DAY, lambda it: it + _DAY)
    ),
}


def vague(told: dict[str, Any], type: Plain, rng: Random) -> dict[str, Any]:
    """Return stats of a column with wider bounds, with one bound, or without how many values."""
    for at, name in enumerate(("lower_bound", "upper_bound")):
        if name in told and type.name in _BEYOND and rng.random() < 0.15:
            told = told | {name: _BEYOND[type.name][at](told[name])}
            told = {key: value for key, value in told.items() if key != "tight_bounds"}
            if rng.random() < 0.5:
                told["tight_bounds"] = False
    unsaid = rng.choice(("lower_bound", "upper_bound", "value_count", None, None, None))
    return {name: value for name, value in told.items() if name != unsaid}
