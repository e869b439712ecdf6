"""How commands print: whole at any width, and JSON that every parser takes."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icetree.cli.main import cli
from icetree.cli.output import print_json, print_rows
from tests.cli.terminal import on_terminal
from tests.table.damage import make_table

ROWS = [
    {
        "id": 3209390401102861058,
        "kind": "data",
        "at": "2026-11-16 17:18:27Z",
        "path": "/t/" + "a" * n,
    }
    for n in (5, 40, 200)
]
HEADINGS = {"id": "SNAPSHOT", "kind": "KIND", "at": "AT", "path": "FILE"}


@pytest.mark.parametrize("width", [10, 40, 60, 80, 120, 300])
def test_every_cell_stands_whole_on_a_line_at_any_width(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    lines = on_terminal(monkeypatch, width, lambda: print_rows(ROWS, HEADINGS, empty=""))
    for row in ROWS:
        for cell in map(str, row.values()):
            assert any(cell in line for line in lines), cell
    longest = max(len(str(cell)) for row in ROWS for cell in row.values())
    # Only what is wider than the terminal by itself is left to the terminal to wrap.
    assert max(map(len, lines)) <= max(width, longest + len("  FILE  SNAPSHOT"))


def test_columns_give_way_from_the_last_on(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = on_terminal(monkeypatch, 300, lambda: print_rows(ROWS, HEADINGS, empty=""))
    assert len(wide) == 1 + len(ROWS)
    narrow = on_terminal(monkeypatch, 60, lambda: print_rows(ROWS, HEADINGS, empty=""))
    assert narrow[:3] == [
        "           SNAPSHOT  KIND  AT",
        "  FILE",
        "3209390401102861058  data  2026-11-16 17:18:27Z",
    ]
    assert narrow[3] == "  /t/aaaaa"


def test_a_folder_that_paths_are_in_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 80, lambda: print_rows(ROWS, HEADINGS, empty="", folder="/t"))
    assert [line for line in lines if "/t" in line] == ["files are in /t"]


def test_lines_of_a_pipe_are_as_long_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, HEADINGS, empty="", folder="/t")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(ROWS)
    assert lines[3].endswith("/t/" + "a" * 200)


COMMANDS = [
    ("ls",),
    ("describe", "db.t"),
    ("snapshots", "db.t"),
    ("refs", "db.t"),
    ("files", "db.t"),
    ("plan", "db.t"),
    ("changes", "db.t"),
    ("tree", "db.t"),
    ("explain", "db.t", "--where", "id > 3"),
    ("schema", "db.t"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lake")
    make_table(made)
    return made


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_a_command_shows_fits_a_terminal_with_ids_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], width: int
) -> None:
    catalog = f"sqlite:///{folder}/catalog.db"
    lines = on_terminal(
        monkeypatch, width, lambda: cli(["--catalog", catalog, *words], standalone_mode=False)
    )
    assert lines
    # What names a file or folder is never broken: a terminal wraps it, and copies it whole.
    long = [line for line in lines if len(line) > width]
    assert [line for line in long if str(folder) not in line and ".parquet" not in line] == []


def test_numbers_are_numbers_and_what_json_has_none_for_is_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given: dict[str, Any] = {
        "a": [1, 2.5, float("nan"), (float("-inf"),)],
        "b": Decimal("1.10"),
        "c": b"ice",
    }
    print_json(given)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found == {"a": [1, 2.5, "NaN", ["-Infinity"]], "b": "1.10", "c": "aWNl"}
