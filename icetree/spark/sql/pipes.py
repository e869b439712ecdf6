"""Pipes, `FROM t |> WHERE …`: where what a table shows of itself goes out of one.

No `*` stands in them from which a column could be left out: it is dropped once no step names it any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Final

from icetree.errors import InvalidInput
from icetree.spark.tokens import Token, tokens

_SETS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
#: Steps after which there is what they say, and nothing else.
_LISTS: Final = frozenset({"SELECT", "AGGREGATE"})
_TURNING: Final = frozenset({"PIVOT", "UNPIVOT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where a column goes out: behind which place, of the pipe that begins at another."""

    pipe: int
    at: int


def way_out(text: str, table: int, name: str) -> Way | None:
    """Return where a metadata column of the table at a place is to be dropped.

    None where the table is in no pipe, or a list of columns decides.
    """
    around, depth = _around(text, table)
    steps = _steps(around, depth)
    own = next(at for at, step in enumerate(steps) if step and step[-1].start >= table)
    if len(steps) == 1 or any(t.says("SELECT") and t.depth == depth for t in steps[own]):
        return None
    last = max((at for at in range(own, len(steps)) if _names(steps[at], name)), default=own)
    for at, step in enumerate(steps[own : last + 1], own):
        first = step[0].text.upper()
        if at == own and first in _SETS:
            # What it shows no step could name: it is looked at, and not shown.
            return None
        if at > own and (first in _LISTS or (first in _TURNING and _names(step, name))):
            return None
        if (at > own and first in _TURNING) or _joins_sets(step, depth):
            raise InvalidInput(
                f"{name} would come to the columns of a pipe: select what is wanted first, as in "
                f"FROM t |> SELECT *, {name} |> …"
            )
    return Way(pipe=around[0].start, at=steps[last][-1].stop)


def _around(text: str, place: int) -> tuple[Sequence[Token], int]:
    """Return what stands in the same brackets as a place, and how deep that is."""
    found = tokens(text)
    at = next(at for at, token in enumerate(found) if token.start >= place)
    depth = found[at].depth
    before = [*takewhile(lambda token: token.depth >= depth, reversed(found[:at]))]
    return [*before[::-1], *takewhile(lambda token: token.depth >= depth, found[at:])], depth


def _steps(around: Sequence[Token], depth: int) -> list[list[Token]]:
    steps: list[list[Token]] = [[]]
    skipped = -1
    for at, (token, next) in enumerate(pairwise([*around, None])):
        assert token is not None
        if token.text == "|" and token.depth == depth and next is not None and next.text == ">":
            steps.append([])
            skipped = at + 1
        elif at != skipped:
            steps[-1].append(token)
    return steps


def _names(step: Sequence[Token], name: str) -> bool:
    return any(each.kind in ("word", "quoted") and each.name.lower() == name for each in step)


def _joins_sets(step: Sequence[Token], depth: int) -> bool:
    """Tell whether a UNION or its like stands in a step, and no `* EXCEPT`."""
    return any(
        token.depth == depth
        and token.text.upper() in _SETS
        and (before is None or before.text != "*")
        for before, token in pairwise([None, *step])
        if token is not None
    )
