"""Metadata columns in a statement: a table shows those that the statement reads of it, and no others.

A table that shows `_deleted` shows its deleted rows, so that a word in the text decides nothing: the
same name may be an alias, a field, or a column of another table. Spark itself says what it misses. A
name that means something without metadata columns is left to mean that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pyspark.errors import PySparkException

from icetree.errors import InvalidInput
from icetree.spark.sql.bind import Bound, BoundTable
from icetree.spark.tokens import tokens
from icetree.spark.trees import kind, seq, walk
from icetree.spec.schema.metadata_columns import NAMES

#: What a query begins with, where it stands in brackets.
_QUERY: Final = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "("})
#: What tells one complaint of Spark's from another, where it names no place.
_TOLD: Final = ("objectName", "colName", "side")
_AMBIGUOUS: Final = "AMBIGUOUS"
_UNRESOLVED: Final = "UNRESOLVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What Spark has against a statement, and where in its text."""

    condition: str
    places: tuple[int, ...]
    told: tuple[str | None, ...]

    @property
    def is_of_a_name(self) -> bool:
        """Whether it is that nothing has a name."""
        return self.condition.startswith(_UNRESOLVED)


#: Spark's plan of a statement on such tables, or what it has against it.
Judge: TypeAlias = Callable[[Sequence[Bound]], "Trouble | Any"]


def trouble_of(error: Exception, origin: Callable[[int], int]) -> Trouble:
    """Return what Spark complains of; `origin` gives the place that one of its text comes from."""
    if not isinstance(error, PySparkException):
        # A function has refused what it was given.
        return Trouble(condition="", places=(), told=())
    parameters = error.getMessageParameters() or {}
    contexts = [each for each in error.getQueryContext() if each.contextType().name == "SQL"]
    return Trouble(
        condition=error.getCondition() or "",
        places=tuple(origin(each.startIndex()) for each in contexts),
        told=tuple(parameters.get(name) for name in _TOLD),
    )


def names_metadata(text: str) -> list[str]:
    """Return the metadata columns whose names a text has, whatever they mean in it."""
    words = {token.name.lower() for token in tokens(text) if token.kind in ("word", "quoted")}
    return [name for name in NAMES if name in words]


def revealed(text: str, bound: Sequence[Bound], judge: Judge) -> list[Bound]:
    """Return the tables of a statement, each with the metadata columns that are read of it."""
    names, found = names_metadata(text), list(bound)
    if not any(_open(found, names)):
        return found
    verdict = judge(found)
    while isinstance(verdict, Trouble):
        better = _helping(text, found, names, verdict, judge) if verdict.is_of_a_name else []
        if not better:
            # Spark will say it again, to the user.
            return found
        for at, name in better:
            found[at] = _shown(found[at], name)
        _require_said(text, found)
        verdict = judge(found)
    found = _nearest(found, verdict, judge)
    _require_said(text, found)
    return found


def _require_said(text: str, found: Sequence[Bound]) -> None:
    """Refuse a NATURAL JOIN that would compare what tables show of themselves."""
    if not any(token.says("NATURAL") for token in tokens(text)):
        return
    for name, many in Counter(name for each in _tables(found) for name in each.hidden).items():
        if many > 1:
            raise InvalidInput(
                f"NATURAL JOIN: {name} is read of more than one table, and would be compared too: say "
                "JOIN … USING and the columns that are to be equal"
            )


def _tables(bound: Sequence[Bound]) -> Iterator[BoundTable]:
    return (each for each in bound if isinstance(each, BoundTable))


def _shown(bound: Bound, name: str) -> BoundTable:
    assert isinstance(bound, BoundTable)
    return bound.showing(name)


def _with(found: Sequence[Bound], at: int, name: str) -> list[Bound]:
    return [*found[:at], _shown(found[at], name), *found[at + 1 :]]


def _open(found: Sequence[Bound], names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the columns that could be shown and are not."""
    for at, each in enumerate(found):
        if isinstance(each, BoundTable):
            yield from ((at, name) for name in names if each.can_show(name))


def _helping(
    text: str, found: Sequence[Bound], names: Sequence[str], trouble: Trouble, judge: Judge
) -> list[tuple[int, str]]:
    """Return what to show so that Spark gets further: of tables in the innermost query alone.

    Where it is of two there, the statement is ambiguous, and Spark is to say so.
    """
    helping = []
    told = " ".join(each.lower() for each in trouble.told if each)
    for at, name in _open(found, [name for name in names if name in told] or names):
        verdict = judge(_with(found, at, name))
        if verdict != trouble and not _is_ambiguous(verdict):
            helping.append((at, name))
    depths = {at: _depth(text, found[at]) for at, _ in helping}
    return [(at, name) for at, name in helping if depths[at] == max(depths.values())]


def _is_ambiguous(verdict: Any) -> bool:
    return isinstance(verdict, Trouble) and verdict.condition.startswith(_AMBIGUOUS)


def _depth(text: str, bound: Bound) -> int:
    """Return how many queries in brackets a table is within."""
    within: list[bool] = []
    found = [token for token in tokens(text) if token.start < bound.named.span.start]
    for at, token in enumerate(found):
        if token.text == "(" and token.kind == "symbol":
            next = found[at + 1] if at + 1 < len(found) else None
            within.append(next is not None and next.text.upper() in _QUERY)
        elif token.text == ")" and token.kind == "symbol" and within:
            within.pop()
    return sum(within)


def _nearest(found: list[Bound], plan: Any, judge: Judge) -> list[Bound]:
    """Return the tables, with columns of inner ones where a reference went past these to an outer one.

    That happens where both are read under the same name, and the outer one was missed first.
    """
    shown = sorted({name for each in _tables(found) for name in each.hidden})
    if len(found) < 2 or not any(_outer(plan, name) for name in shown):
        return found
    for at, name in list(_open(found, shown)):
        verdict = judge(_with(found, at, name))
        if not isinstance(verdict, Trouble) and _outer(verdict, name) < _outer(plan, name):
            found, plan = _with(found, at, name), verdict
    return found


def _outer(plan: Any, name: str) -> int:
    """Return how often subqueries of a plan refer to a column of what is outside of them."""
    return sum(
        sum(each == name for each in _outer_names(inner)) + _outer(inner, name)
        for node in walk(plan)
        for inner in seq(node.subqueries())
    )


def _outer_names(plan: Any) -> Iterator[str]:
    for node in walk(plan):
        for expression in seq(node.expressions()):
            for each in walk(expression):
                if kind(each) == "OuterReference":
                    yield each.name()
