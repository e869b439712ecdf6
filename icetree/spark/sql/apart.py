"""What tables of a statement go by where something else in it has the same name.

What stands for a table has a name of one part, so that `a.t.id` becomes `t.id`. Where that could be of
something else, such as a table `b.t`, the table goes by all of its name instead, as one: `` `a.t`.id ``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from icetree.errors import InvalidInput
from icetree.spark.names import quoted
from icetree.spark.tokens import (
    Edit,
    Token,
    edited,
    has_long_names,
    qualifiers,
    query_around,
    tokens,
)
from icetree.spark.trees import Named, named_tables

#: The parts of a name.
Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A table where a text names it, and what its columns may call it; its full name first."""

    named: Named
    called: tuple[Name, ...]

    @property
    def key(self) -> Name:
        """What tells it from other tables."""
        return tuple(part.lower() for part in self.called[0])

    @property
    def last(self) -> str:
        """What it goes by where nothing else is called so."""
        return self.named.parts[-1]

    @property
    def is_bare(self) -> bool:
        """Whether it has no alias, which would be all that its columns may call it."""
        return self.named.alias_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """What a table goes by, and the edits that make its columns say so."""

    alias: str
    edits: tuple[Edit, ...]


def callings(text: str, mentions: Sequence[Mention]) -> Mapping[Name, Calling]:
    """Return what tables without an alias go by, by their keys."""
    bare = {each.key: each for each in mentions if each.is_bare}
    runs = list(_runs(text, mentions)) if bare else []
    return {
        key: _calling(text, each, [run for its, run in runs if its == key], mentions)
        for key, each in bare.items()
    }


def told_apart(text: str, plan: Any, namespace: str | None) -> str:
    """Return a statement in which a table that goes by all of its name has that as an alias of its own.

    `namespace` is the one in use.
    """
    if not has_long_names(text):
        return text
    space = () if namespace is None else tuple(namespace.split("."))
    mentions = []
    for named in named_tables(plan, text):
        full = named.parts if len(named.parts) > 1 else (*space, *named.parts)
        mentions.append(Mention(named=named, called=(full, named.parts)))
    edits: list[Edit] = []
    known = callings(text, mentions)
    for each in mentions:
        at, calling = each.named.alias_at, known.get(each.key)
        if at is not None and calling is not None and calling.alias != each.last:
            edits += [(at, at, f" AS {quoted(calling.alias)}"), *calling.edits]
    return edited(text, edits)


def _calling(
    text: str, mention: Mention, runs: Sequence[Sequence[Token]], mentions: Sequence[Mention]
) -> Calling:
    """Return what a table goes by, whose columns have its name before theirs in some places."""
    if not runs:
        return Calling(alias=mention.last, edits=())
    own = {run[-2].start for run in runs}
    spans = [each.named.span for each in mentions if each.key == mention.key or not each.is_bare]
    alike = [
        (token, is_short)
        for token, is_short in _named(text, mention.last)
        if token.start not in own
        and not any(span.start <= token.start < span.stop for span in spans)
    ]
    if all(is_short for _, is_short in alike):
        cuts = ((run[0].start, run[-2].start, "") for run in runs)
        return Calling(alias=mention.last, edits=tuple(cuts))
    full = ".".join(mention.called[0])
    queries = [
        query_around(text, each.named.span.start)
        for each in mentions
        if each.is_bare and each.key == mention.key
    ]
    if any(
        is_short and query.start <= token.start < query.stop
        for token, is_short in alike
        for query in queries
    ):
        raise InvalidInput(
            f"{mention.last!r} may be {full} or something else of that name here: give {full} an "
            "alias, and call its columns by that"
        )
    edits = ((run[0].start, run[-2].stop, quoted(full)) for run in runs)
    return Calling(alias=full, edits=tuple(edits))


def _named(text: str, name: str) -> Iterator[tuple[Token, bool]]:
    """Yield each place of a name, and whether it says there which table a column is of."""
    found = tokens(text)
    before = ""
    for token, next in pairwise([*found, None]):
        assert token is not None
        if token.kind in ("word", "quoted") and token.name.lower() == name.lower():
            yield token, before != "." and next is not None and next.text == "."
        before = token.text


def _runs(text: str, mentions: Sequence[Mention]) -> Iterator[tuple[Name, Sequence[Token]]]:
    """Yield where columns say all of a table's name, dots included, and which table that is."""
    spans = [each.named.span for each in mentions]
    longest: dict[int, tuple[Name, Sequence[Token]]] = {}
    for each in mentions:
        for name in each.called if each.is_bare else ():
            for run in qualifiers(text, name) if len(name) > 1 else ():
                at = run[0].start
                known = longest.get(at)
                if known is None or len(known[1]) < len(run):
                    longest[at] = (each.key, run)
    yield from (
        found
        for at, found in longest.items()
        if not any(span.start <= at < span.stop for span in spans)
    )
