"""Texts that may hold anything, as they can be shown: no character acts instead of being seen.

Names, values and messages come from tables, and tables from anybody. A control character in one
could clear a terminal, retitle it or hide what follows; one that turns the direction of writing
could show a name as another. All of them are shown as escapes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: C0, DEL and C1; what changes the direction of text; what ends a line; halves of characters.
_ACTING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)
_FORMATTER: Final = logging.Formatter()
_SHORT: Final[Mapping[str, str]] = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """Return a text of one line in which every character is one that is only seen."""
    return _ACTING.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """Do `visible` for a text of lines, which stay lines."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(document: str) -> str:
    """Do `visible` for JSON, which means the same afterwards."""
    return "\n".join(_ACTING.sub(_as_json, line) for line in document.split("\n"))


def visible_in(record: T) -> T:
    """Do `visible` for every text of a record, and of records and tuples in it."""
    found: Any = record
    if type(found) is str:
        found = visible(found)
    elif isinstance(found, tuple):
        found = tuple(map(visible_in, found))
    elif is_dataclass(found) and not isinstance(found, type):
        found = replace(
            found, **{each.name: visible_in(getattr(found, each.name)) for each in fields(found)}
        )
    return found  # type: ignore[no-any-return]


def log_of(name: str) -> logging.Logger:
    """Return the logger of a file, in whose lines and tracebacks every character is only seen."""
    log = logging.getLogger(name)
    if _as_line not in log.filters:
        log.addFilter(_as_line)
    return log


def _as_line(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    shown = visible(message)
    # A line that shows nothing amiss keeps its parts, which handlers and counters of lines go by.
    if shown != message:
        record.msg, record.args = shown, ()
    # What formatters would make of an error, which may be any library's; they keep what is there.
    if record.exc_info and not record.exc_text:
        record.exc_text = visible_lines(_FORMATTER.formatException(record.exc_info))
    return True


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _as_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
