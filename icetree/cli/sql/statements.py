"""Where one statement of SQL ends and the next begins."""

from __future__ import annotations

import re
from typing import Final

#: What a semicolon may stand in without ending anything; a quote that is never closed is open. In
#: a raw string, of the letter r before it, a backslash is one.
_PARTS: Final = re.compile(
    r"""
    (?P<shut> (?<=\W[rR])(?: '[^']*' | "[^"]*" )
        | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*` | --[^\n]* )
    | (?P<comment> /\* )
    | (?P<open> ['"`] )
    | (?P<end> ; )
    | [^'"`;/-]+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_SIGN: Final = re.compile(r"/\*|\*/")


def split(text: str) -> tuple[list[str], str]:
    """Return the statements that a semicolon ends, and what is left after the last.

    Semicolons in quotes and comments end nothing. Statements of nothing but comments are left out.
    """
    done: list[str] = []
    start, says, at = 0, False, 0
    while at < len(text):
        part = _PARTS.match(text, at)
        assert part is not None  # any character is a part
        end = _comment_end(text, part.end()) if part["comment"] else part.end()
        if part["open"] or end is None:
            return done, text[start:]
        at = end
        if part["end"]:
            if says:
                done.append(text[start : part.start()].strip())
            start, says = at, False
        else:
            says = says or not (part[0].isspace() or part[0].startswith(("--", "/*")))
    return done, text[start:] if says else ""


def _comment_end(text: str, at: int) -> int | None:
    """Return where a comment ends whose inside begins here, None if it never does; they nest."""
    depth = 1
    for sign in _COMMENT_SIGN.finditer(text, at):
        depth += 1 if sign[0] == "/*" else -1
        if depth == 0:
            return sign.end()
    return None


def statements(text: str) -> list[str]:
    """Return every statement of a text, the last one with or without a semicolon."""
    done, rest = split(text)
    return [*done, rest.strip()] if rest.strip() else done
