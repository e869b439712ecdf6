"""Values as HTML for notebooks: every text is only seen, none is markup, and none acts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

#: Of a text so much is shown.
_MOST: Final = 500
_LEFT: Final = 'style="text-align:left"'


def facts_html(title: str, facts: Mapping[str, Any]) -> str:
    """Return names and values under a title; those that are None are left out."""
    rows = [(name, value) for name, value in facts.items() if value is not None]
    body = "".join(
        f"<tr><th {_LEFT}>{text_html(name)}</th><td {_LEFT}>{text_html(value)}</td></tr>"
        for name, value in rows
    )
    return (
        f"<table><caption {_LEFT}><b>{text_html(title)}</b></caption><tbody>{body}</tbody></table>"
    )


def grid_html(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows under headings, and a title above them."""
    head = "".join(f"<th {_LEFT}>{text_html(each)}</th>" for each in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption {_LEFT}><b>{text_html(title)}</b></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def text_html(value: Any) -> str:
    """Return a value as text that HTML shows as it is; what cannot be printed is escaped."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(text_html, value))
    text = str(value)
    text = text if len(text) <= _MOST else f"{text[:_MOST]}…"
    return escape("".join(each if each.isprintable() else _escaped(each) for each in text))


def _cell(value: Any) -> str:
    side = "right" if isinstance(value, int) and not isinstance(value, bool) else "left"
    shown = f"{value:,}" if side == "right" else "" if value is None else text_html(value)
    return f'<td style="text-align:{side}">{shown}</td>'


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
