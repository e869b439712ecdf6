"""The words of a filter's text: names, literals, signs; and how a mistake in it is told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from icetree.errors import InvalidInput

#: Each kind of token, by the name of its group.
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<hex>[xX]'[^']*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<word>[^\W\d][\w$]*)
    | (?P<sign><=|>=|<>|!=|==|\|\||[=<>(),.+\-*/%])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)
#: As much of a filter as a message shows.
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One word of a filter and where it starts, counted from 0."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The token as a keyword or sign; empty for literals and quoted names."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


def tokens(text: str) -> list[Token]:
    """Return the words of a filter; the last is its end."""
    found: list[Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise mistake(text, start, _unread(text[start:]))
        kind = match.lastgroup or "end"
        found.append(Token(kind=kind, text=match[kind], at=match.start(kind)))
        at = match.end()
    return found


def mistake(text: str, at: int, what: str, *, of: str = "filter") -> InvalidInput:
    """Return the error for a mistake in a text; people count characters from 1."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return InvalidInput(f"cannot read the {of} {shown!r} at character {at + 1}: {what}")


def _unread(rest: str) -> str:
    opening = rest.lstrip("xX")[:1] if rest[1:2] == "'" else rest[:1]
    if opening in ("'", '"', "`"):
        return f"the {opening} is not closed" if rest.count(opening) == 1 else "it names nothing"
    if rest[:1].isdigit() or rest[:1] in ("+", "-"):
        return f"{rest.split(maxsplit=1)[0]!r} is not a number"
    return f"{rest[:1]!r} is not expected anywhere"
