"""Maintenance by the clock, for people without a scheduler: tables are optimised round after round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from icetree.errors import IcetreeError
from icetree.surroundings import elapsed_s, wait
from icetree.table.maintain.optimize import Optimized

if TYPE_CHECKING:
    from icetree.table.lake import Lake


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came of one table in one round: one of the two is there."""

    table: str
    done: Optimized | None = None
    error: IcetreeError | None = None


def rounds(
    lake: Lake,
    names: Sequence[str] = (),
    *,
    every_seconds: float,
    max_rounds: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = None,
) -> Iterator[Round]:
    """Optimise tables, all without names, and again after a while; the budget is for each of them.

    What goes wrong with one is told, and does not keep the others from their turn.
    """
    for number in count(1):
        started = elapsed_s()
        for name in names or lake.tables():
            yield _one(lake, name, max_seconds=max_seconds, max_bytes=max_bytes)
        if number == max_rounds:
            return
        wait(max(0.0, started + every_seconds - elapsed_s()))


def _one(lake: Lake, name: str, **budget: Any) -> Round:
    try:
        return Round(table=name, done=lake.table(name).maintenance.optimize(**budget))
    except IcetreeError as error:
        return Round(table=name, error=error)
