"""How commands print: tables for people, lines for pipes, JSON for programs."""

from __future__ import annotations

import base64
import json
import math
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from icetree.visible import visible, visible_json, visible_lines

#: Columns that read better from the right.
_NUMBER: Final = (int, float, Decimal)
_GAP: Final = "  "


def print_json(value: Any) -> None:
    """Print a value as JSON: numbers are numbers, times are ISO, bytes are base64.

    Decimals are text, so that no digit is lost, and so is what is no number in JSON.
    """
    document = json.dumps(_finite(value), indent=2, default=_plain, ensure_ascii=False)
    print(visible_json(document))


def say(line: str) -> None:
    """Print a line of text, in which names and values may stand; a terminal breaks it in no word."""
    say_lines(visible(line))


def say_lines(text: str) -> None:
    """Do `say` for a text of lines, whose names and values begin none of their own."""
    shown = visible_lines(text)
    if sys.stdout.isatty():
        width = _terminal_width()
        shown = "\n".join(_folded(line, width) for line in shown.split("\n"))
    print(shown)


def _terminal_width() -> int:
    from icetree.cli.console import stdout

    return stdout().width


def _folded(line: str, width: int) -> str:
    """Return a line in as many as it takes, the others below where its words begin."""
    edge = len(line) - len(line.lstrip(" "))
    edge += 2 if line[edge:].startswith("- ") else 0
    if len(line) <= width or edge > width // 2:
        return line
    return textwrap.fill(
        line[edge:],
        width,
        initial_indent=line[:edge],
        subsequent_indent=" " * edge,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() | UUID():
            return str(value)
        case Enum():
            return value.value
    return str(value)


def _finite(value: Any) -> Any:
    """Return a value in which floats that JSON has no number for are text."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        case dict():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value


# --- tables --------------------------------------------------------------------------------


def print_rows(
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    empty: str,
    more: int = 0,
    folder: str | None = None,
) -> None:
    """Print rows under headings: `columns` maps keys to headings; `more` rows are not shown.

    Nothing is ever cut or broken, so that every id and path can be copied whole. On a terminal
    that is too narrow, columns give way from the last on: they go below their row, a line each;
    and a folder that many paths are in is said once.
    """
    found = [[row.get(key) for key in columns] for row in rows]
    if folder and sys.stdout.isatty():
        found = [[_within(cell, f"{folder}/") for cell in row] for row in found]
    if not found:
        say(empty)
        return
    numbers = [all(map(_is_number, cells)) for cells in zip(*found, strict=True)]
    texts = [[cell_text(cell) for cell in row] for row in found]
    # Of rows of a table, they are its names.
    headings = list(map(visible, columns.values()))
    if sys.stdout.isatty():
        _print_on_terminal(texts, headings, numbers)
    else:
        widths = _widths([headings, *texts])
        for row in (headings, *texts):
            print(_line(row, widths, numbers))
    if folder and sys.stdout.isatty():
        say(f"files are in {folder}")
    if more > 0:
        print(f"... and {more:,} more; --limit shows more, --json shows all")


def _within(cell: Any, folder: str) -> Any:
    return cell.removeprefix(folder) if isinstance(cell, str) else cell


def _is_number(cell: Any) -> bool:
    return cell is None or (isinstance(cell, _NUMBER) and not isinstance(cell, bool))


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


def _print_on_terminal(rows: list[list[str]], headings: list[str], numbers: list[bool]) -> None:
    from rich.cells import cell_len
    from rich.text import Text

    from icetree.cli.console import stdout

    console = stdout()
    widths = _widths([headings, *rows])
    beside = len(headings)
    while beside > 1 and sum(widths[:beside]) + len(_GAP) * (beside - 1) > console.width:
        beside -= 1
    below = [*headings[beside:]]
    # Where one column gives way, its heading is plain from the one line that says it.
    label = max(map(cell_len, below), default=0) if len(below) > 1 else 0
    console.print(
        Text(_line(headings[:beside], widths, numbers), style="bold cyan"), soft_wrap=True
    )
    if len(below) == 1:
        console.print(Text(f"{_GAP}{below[0]}", style="cyan"))
    for row in rows:
        console.print(Text(_line(row[:beside], widths, numbers)), soft_wrap=True)
        for heading, cell in zip(below, row[beside:], strict=True):
            if cell:
                name = f"{heading.lower():<{label}}{_GAP}" if label else ""
                console.print(Text.assemble((f"{_GAP}{name}", "cyan"), cell), soft_wrap=True)


def _widths(rows: list[list[str]]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]


def _line(row: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    """Return a row's cells, each as wide as its column."""
    from rich.cells import cell_len

    cells = []
    for cell, width, is_number in zip(row, widths, numbers, strict=False):
        room = " " * (width - cell_len(cell))
        cells.append(f"{room}{cell}" if is_number else f"{cell}{room}")
    return _GAP.join(cells).rstrip()


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line; a list of values has a line for each."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        lines = list(map(cell_text, value)) if isinstance(value, list) else [cell_text(value)]
        print(f"{name.ljust(width)}  {lines[0]}".rstrip())
        for line in lines[1:]:
            print(f"{'':{width}}  {line}")


def moment(at_ms: int | None) -> str | None:
    """Return a time as text, in UTC, to the second; JSON has it whole."""
    if at_ms is None:
        return None
    at = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
    return at.strftime("%Y-%m-%d %H:%M:%SZ")
