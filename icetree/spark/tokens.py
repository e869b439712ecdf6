"""Words of SQL text, and a cursor over them: enough to cut a statement into its clauses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, pairwise, takewhile
from typing import Final, TypeAlias

from icetree.errors import InvalidInput

#: A comment, with others in it up to some depth.
_COMMENT: Final = reduce(
    lambda inner, _: rf"/\*(?:[^*/]|\*(?!/)|/(?!\*)|{inner})*\*/", range(4), r"(?!)"
)
_TOKEN: Final = re.compile(
    rf"""
    (?P<gap>\s+|--(?:\\\n|[^\r\n])*|{_COMMENT})
    |(?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?\w*|\d+[eE][+-]?\d+\w*|\d+\b)
    |(?P<word>\w+)
    |(?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
#: From here, to here, this instead.
Edit: TypeAlias = tuple[int, int, str]

#: What a query begins with, where it stands in brackets.
_QUERY: Final = ("SELECT", "WITH", "FROM", "TABLE", "VALUES")
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, a name in backticks, a string, a number or a symbol, and where it stands."""

    kind: str
    text: str
    start: int
    stop: int
    #: How many brackets, and CASEs, it is within.
    depth: int

    @property
    def name(self) -> str:
        """The name it is, without backticks."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    def says(self, word: str) -> bool:
        """Tell whether it is this keyword or symbol."""
        return self.kind in ("word", "symbol") and self.text.upper() == word


def tokens(text: str) -> list[Token]:
    """Return the words of a statement, without comments."""
    found: list[Token] = []
    within: list[str] = []
    for match in _TOKEN.finditer(text):
        kind, word = match.lastgroup or "symbol", match[0]
        if kind == "gap":
            continue
        # A column may be called `case`, or `end`: behind a dot, or where no CASE is to be ended.
        case = kind == "word" and not (found and found[-1].text == ".")
        opens = word in _OPENING or (case and word.upper() == "CASE")
        if case and word.upper() == "END" and within and within[-1] == "CASE":
            within.pop()
        elif word in _CLOSING:
            while within and within.pop() == "CASE":
                pass
        found.append(
            Token(kind=kind, text=word, start=match.start(), stop=match.end(), depth=len(within))
        )
        if opens:
            within.append(word.upper())
    return found


def first_words(text: str, count: int) -> tuple[str, ...]:
    """Return the keywords that a statement starts with, in capitals, at most so many.

    The rest, which may be long, is not looked at.
    """
    found = (each for each in _TOKEN.finditer(text) if each.lastgroup != "gap")
    words = takewhile(lambda each: each.lastgroup == "word", islice(found, count))
    return tuple(each[0].upper() for each in words)


def qualifiers(text: str, parts: Sequence[str]) -> list[list[Token]]:
    """Return where a name stands before another, as `db.t.` does in `db.t.a`; dots included."""
    wanted = [word for part in parts for word in (part.lower(), ".")]
    found = tokens(text)
    return [
        found[at : at + len(wanted)]
        for at in range(len(found) - len(wanted))
        if not (at and found[at - 1].text == ".")
        and [token.name.lower() for token in found[at : at + len(wanted)]] == wanted
    ]


def has_long_names(text: str) -> bool:
    """Tell whether a name of three parts or more stands anywhere, as that of a column may."""
    dots = [token.text == "." for token in tokens(text)]
    return any(first and second for first, second in zip(dots, dots[2:], strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query in brackets, or all of a statement; `stop` is behind it."""

    start: int
    stop: int


def queries(text: str) -> Iterator[Query]:
    """Yield the queries in brackets of a text, those within others after these."""
    found = tokens(text)
    for opening, first in pairwise(found):
        if opening.text == "(" and any(map(first.says, _QUERY)):
            closing = (t for t in found if t.start > opening.start and t.depth == opening.depth)
            stop = next((t.start for t in closing), len(text))
            yield Query(start=opening.stop, stop=stop)


def query_around(text: str, place: int) -> Query:
    """Return the innermost query that a place of a statement is in."""
    around = [each for each in queries(text) if each.start <= place < each.stop]
    return around[-1] if around else Query(start=0, stop=len(text))


def knowing(ctes: str, text: str) -> str:
    """Return an expression whose queries know the CTEs that stand before its statement."""
    if not ctes:
        return text
    edits: list[Edit] = []
    for each in queries(text):
        # Those within know what is told outside of them.
        if not edits or each.start > edits[-1][1]:
            edits.append((each.start, each.stop, f"{ctes} ({text[each.start : each.stop]}\n)"))
    return edited(text, edits)


def shortenings(text: str, names: Iterable[Sequence[str]]) -> set[Edit]:
    """Return the edits that make `db.t.a` into `t.a`."""
    longer = {tuple(name) for name in names if len(name) > 1}
    return {(run[0].start, run[-2].start, "") for name in longer for run in qualifiers(text, name)}


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with all edits made, none of which overlap."""
    for start, stop, new in sorted(set(edits), reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def origin(edits: Iterable[Edit], place: int) -> int:
    """Return where in a text something stands that is at a place of the edited one."""
    longer = 0
    for start, stop, new in sorted(set(edits)):
        if place < start + longer:
            break
        if place < start + longer + len(new):
            return start
        longer += len(new) - (stop - start)
    return place - longer


class Cursor:
    """A place in a statement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens(text)
        self._at = 0

    @property
    def at(self) -> int:
        """Where the next word starts, in the text."""
        return self._tokens[self._at].start if self._at < len(self._tokens) else len(self.text)

    @property
    def passed(self) -> int:
        """Where the word before ended, in the text."""
        return self._tokens[self._at - 1].stop if self._at else 0

    @property
    def next(self) -> Token | None:
        """The next word."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self) -> Token:
        """Pass a word."""
        found = self.next
        if found is None:
            raise self.error("more")
        self._at += 1
        return found

    def accept(self, *words: str) -> bool:
        """Pass these words if they come next."""
        coming = self._tokens[self._at : self._at + len(words)]
        if len(coming) < len(words) or not all(
            token.says(word) for token, word in zip(coming, words, strict=True)
        ):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Pass these words, which must come next."""
        if not self.accept(*words):
            raise self.error(" ".join(words))

    def name(self) -> list[str]:
        """Pass a name of one or more parts."""
        parts = [self._part()]
        while self.accept("."):
            parts.append(self._part())
        return parts

    def _part(self) -> str:
        token = self.next
        if token is None or token.kind not in ("word", "quoted", "number"):
            raise self.error("a name")
        self._at += 1
        return token.name

    def number(self) -> int:
        """Pass a whole number."""
        token = self.next
        if token is None or token.kind != "number" or not token.text.isdigit():
            raise self.error("a number")
        self._at += 1
        return int(token.text)

    def whole_number(self) -> int:
        """Pass a whole number that may have a sign."""
        return -self.number() if self.accept("-") else self.number()

    def until(self, *words: str) -> str:
        """Pass everything before any of the words, or the end of the bracket; return it as text."""
        start = end = self.at
        base = self.next.depth if self.next is not None else 0
        while (token := self.next) is not None:
            if token.depth < base or (
                token.depth == base and any(token.says(word) for word in words)
            ):
                break
            end = token.stop
            self._at += 1
        return self.text[start:end]

    def listed(self, *words: str) -> Iterator[str]:
        """Pass the parts between commas, up to any of the words."""
        while True:
            yield self.until(",", *words)
            if not self.accept(","):
                return

    def bracket(self) -> list[str]:
        """Pass a bracket, and return the parts between its commas."""
        self.expect("(")
        found = [] if self.next is not None and self.next.says(")") else list(self.listed())
        self.expect(")")
        return found

    def rest(self) -> str:
        """Pass all that is left, and return it as text."""
        start = self.at
        self._at = len(self._tokens)
        return self.text[start:]

    def end(self) -> None:
        """Insist that nothing is left."""
        self.accept(";")
        if self.next is not None:
            raise self.error("the end of the statement")

    def error(self, wanted: str) -> InvalidInput:
        """Return the complaint that something else should stand here."""
        found = f"{self.next.text!r}" if self.next is not None else "the end"
        line = self.text.count("\n", 0, self.at) + 1
        position = self.at - (self.text.rfind("\n", 0, self.at) + 1)
        return InvalidInput(f"expected {wanted}, found {found} (line {line}, position {position})")


def query_of(text: str) -> str:
    """Return the query of `CREATE TABLE … AS …` or `CREATE VIEW … AS …`."""
    cursor = Cursor(text)
    cursor.until("AS")
    cursor.expect("AS")
    return cursor.rest()
