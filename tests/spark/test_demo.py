"""`icetree demo`, shortened: it ends well, with numbers that add up, and leaves what it says."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from rich.console import Console

from icetree.cli.demo.events import EVENTS, ROWS
from icetree.cli.demo.pipeline import Pipeline
from icetree.cli.demo.race import WRITERS
from icetree.cli.demo.screen import _next, show_all
from icetree.cli.demo.truth import truths
from icetree.cli.main import cli
from icetree.spark import connect
from tests.explore.browsing import is_built

_COMMITS, _EACH, _BATCHES = 16, 2, 2
_PAST = (_COMMITS + WRITERS * _EACH) * ROWS


@dataclass(frozen=True)
class Shown:
    holds: bool
    text: str
    folder: Path

    def number(self, pattern: str) -> list[int]:
        found = re.search(pattern, self.text)
        assert found is not None, self.text
        return [int(each.replace(",", "")) for each in found.groups()]


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo")
    console = Console(file=StringIO(), width=80, color_system=None, highlight=False)

    @contextmanager
    def running() -> Iterator[SparkSession]:
        yield spark

    holds = show_all(console, folder, running, commits=_COMMITS, each=_EACH, batches=_BATCHES)
    assert isinstance(console.file, StringIO)
    return Shown(holds=holds, text=console.file.getvalue(), folder=folder)


def test_the_demo_ends_well_and_verified_and_nothing_wraps(shown: Shown) -> None:
    assert shown.holds
    assert shown.text.count("✓") == 6
    assert "clean: " in shown.text
    # But for where it is: the folder of a test is a long way from here.
    wide = [line for line in shown.text.splitlines() if len(line) > 80]
    assert [
        line for line in wide if str(shown.folder) not in line and sys.executable not in line
    ] == []


def test_rows_that_came_less_those_deleted_are_those_there(
    shown: Shown, spark: SparkSession
) -> None:
    came, gone, late, newest, rows = shown.number(
        r"([\d,]+) - ([\d,]+) deleted \+ ([\d,]+) late \+ ([\d,]+) appended = ([\d,]+) rows"
    )
    assert came == _PAST + _BATCHES * ROWS
    assert gone > 0
    assert came - gone + late + newest == rows
    lake = connect(f"sqlite:///{shown.folder}/catalog.db", spark=spark)
    assert lake.read(EVENTS).count() == rows


def test_the_change_feed_tells_the_same_numbers(shown: Shown) -> None:
    _, gone, late, newest = shown.number(
        r"([\d,]+) - ([\d,]+) deleted \+ ([\d,]+) late \+ ([\d,]+) appended"
    )
    feed = shown.number(
        r"DELETE ([\d,]+), INSERT ([\d,]+), UPDATE_AFTER ([\d,]+), UPDATE_BEFORE ([\d,]+)"
    )
    deleted, inserted, after, before = feed
    assert (deleted, inserted) == (gone, late + newest)
    assert after == before > 0


def test_the_commands_that_it_ends_with_run_as_they_are_pasted(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    pasted = shown.text.partition("paste these")[2].strip().split("\n\n")[0].splitlines()
    export, *commands = [line.strip() for line in pasted]
    name, _, value = export.removeprefix("export ").partition("=")
    monkeypatch.setenv(name, value)
    assert len(commands) == 3
    for command in commands:
        program, *words = shlex.split(command)
        words = words[words.index("icetree") + 1 :] if "-m" in words[:1] else words
        assert os.access(program, os.X_OK) or program == "icetree"
        found = CliRunner().invoke(cli, words)
        assert (found.exit_code, found.stderr) == (0, ""), command
        assert found.stdout


def test_the_folder_has_the_page(shown: Shown) -> None:
    page = (shown.folder / "tree.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "shop.events" in page
    assert ("Its history, for a browser" in shown.text) == is_built()


@pytest.mark.parametrize("is_film", [True, False])
def test_the_last_line_promises_what_the_page_holds(tmp_path: Path, is_film: bool) -> None:
    console = Console(file=StringIO(), width=200, color_system=None, highlight=False)
    _next(console, tmp_path, is_film=is_film)
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert ("Its history, for a browser" in text) == is_film
    assert ("still, for a browser" in text) == ("`make page`" in text) == (not is_film)


@pytest.mark.long
def test_a_row_too_many_is_not_passed_over(shown: Shown, spark: SparkSession) -> None:
    lake = connect(f"sqlite:///{shown.folder}/catalog.db", spark=spark)
    done = Pipeline(lake=lake, folder=shown.folder / "stream", past=_PAST, batches=_BATCHES)
    streamed = next(
        each
        for each in done.table.history()
        if (each.summary or {}).get("total-records") == str(done.end)
    )
    done.streamed = streamed.snapshot_id
    lake.sql(f"INSERT INTO {EVENTS} SELECT * FROM {EVENTS} LIMIT 1")
    wrong = [law.says for law in truths(done) if not law.holds]
    assert len(wrong) == 3
    assert wrong[0].startswith("What came in")
