"""How hard a run of the tests tries: each law on few examples, or on many that a seed decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings

#: What decides the examples, and how many times as many as usual there are: `make laws` sets both.
SEED = int(os.environ.get("ICETREE_LAWS_SEED", "0"))
EFFORT = int(os.environ.get("ICETREE_LAWS_EFFORT", "1"))

Law = TypeVar("Law", bound=Callable[..., None])


def usually(cases: Iterable[Any], *usual: Any) -> list[Any]:
    """Return cases to parametrize a test by: all but the usual ones are left to `make laws`."""
    return [each if each in usual else _left_out(each) for each in cases]


def _left_out(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.long)


def length(seed: int, steps: int) -> int:
    """Return how many steps a sequence has: where more effort is made, every other is longer too.

    Some faults need a table with a long past, and no number of short sequences finds these.
    """
    return steps * EFFORT if seed % 2 else steps


def law(examples: int, *, usual: int | None = None, shrinks: bool = True) -> Callable[[Law], Law]:
    """Have a law tried on so many examples, or on as many times as many as effort is made.

    Where fewer find what is planted, those are the usual ones. Where each example takes long, one that
    fails is told as it was found: looking for a smaller one would take minutes.
    """
    few = examples if usual is None else usual
    return tried(few if EFFORT == 1 else examples * EFFORT, SEED, shrinks=shrinks)


def tried(examples: int, start: int, *, shrinks: bool = True) -> Callable[[Law], Law]:
    """Have a law tried on so many examples, which the number it starts with decides."""
    often = settings(
        phases=tuple(Phase) if shrinks else (Phase.explicit, Phase.generate),
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: seed(start)(often(test))
