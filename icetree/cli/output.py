"""How commands print: tables for people, lines for pipes, JSON for programs."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from icetree.picture.visible import visible, visible_json, visible_lines

#: Columns that read better from the right.
_NUMBER: Final = (int, float)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(visible_json(json.dumps(value, indent=2, default=_plain, ensure_ascii=False)))


def say(text: str) -> None:
    """Print lines of text, in which names and values may stand."""
    print(visible_lines(text))


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() | UUID():
            return str(value)
    return str(value)


def print_rows(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], *, empty: str, more: int = 0
) -> None:
    """Print rows under headings: `columns` maps keys to headings; `more` rows are not shown."""
    found = [[row.get(key) for key in columns] for row in rows]
    if not found:
        say(empty)
        return
    numbers = [
        all(
            cell is None or (isinstance(cell, _NUMBER) and not isinstance(cell, bool))
            for cell in at
        )
        for at in zip(*found, strict=True)
    ]
    texts = [[cell_text(cell) for cell in row] for row in found]
    if sys.stdout.isatty():
        _print_table(texts, list(columns.values()), numbers)
    else:
        _print_lines(texts, list(columns.values()), numbers)
    if more > 0:
        print(f"... and {more:,} more; --limit shows more, --json shows all")


def cell_text(value: Any) -> str:
    """Return a value as a cell shows it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case list() | tuple():
            return ", ".join(map(cell_text, value))
        case dict():
            return ", ".join(f"{visible(str(k))}={cell_text(each)}" for k, each in value.items())
    return visible(str(value))


def _print_table(rows: list[list[str]], headings: Sequence[str], numbers: list[bool]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from icetree.cli.console import stdout

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False)
    for heading, is_number in zip(headings, numbers, strict=True):
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    stdout().print(table)


def _print_lines(rows: list[list[str]], headings: Sequence[str], numbers: list[bool]) -> None:
    """Print columns of text that no width cuts, so that every name can be copied whole."""
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        cells = (
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numbers, strict=True)
        )
        print("  ".join(cells).rstrip())


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line; a list of values has a line for each."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        lines = list(map(cell_text, value)) if isinstance(value, list) else [cell_text(value)]
        print(f"{name.ljust(width)}  {lines[0]}".rstrip())
        for line in lines[1:]:
            print(f"{'':{width}}  {line}")


def moment(at_ms: int | None) -> str | None:
    """Return a time as text, in UTC."""
    if at_ms is None:
        return None
    at = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}Z"
