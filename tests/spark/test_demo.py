"""`icetree demo`, shortened: a pipeline on Spark that ends well, with numbers that add up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from icetree.cli.demo.events import EVENTS, ROWS
from icetree.cli.demo.pipeline import Pipeline
from icetree.cli.demo.screen import show_pipeline
from icetree.cli.demo.truth import truths
from icetree.spark import local

_COMMITS, _PAST = 6, 60_000


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
    console = Console(file=StringIO(), width=100, color_system=None, highlight=False)
    holds = show_pipeline(console, spark, folder, commits=_COMMITS, past=_PAST, kept=True)
    assert isinstance(console.file, StringIO)
    return Shown(holds=holds, text=console.file.getvalue(), folder=folder)


def test_the_pipeline_ends_well_and_verified(shown: Shown) -> None:
    assert shown.holds
    assert shown.text.count("✓") == 5
    assert "clean: " in shown.text


def test_rows_that_came_less_those_deleted_are_those_there(
    shown: Shown, spark: SparkSession
) -> None:
    came, gone, late, newest, rows = shown.number(
        r"([\d,]+) - ([\d,]+) deleted \+ ([\d,]+) late \+ ([\d,]+) appended = ([\d,]+) rows"
    )
    assert came == _PAST + _COMMITS * ROWS
    assert gone > 0
    assert came - gone + late + newest == rows
    assert local(shown.folder / "lake", spark=spark).read(EVENTS).count() == rows


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


def test_the_metadata_files_told_are_those_on_disk(shown: Shown) -> None:
    ours, theirs = shown.number(r"metadata files written +v4 +([\d,]+) +v3 +([\d,]+)")
    assert ours == sum(1 for _ in (shown.folder / "lake").rglob("metadata/*"))
    assert ours < theirs


def test_a_commit_of_the_stream_writes_a_file_less_than_in_v3(shown: Shown) -> None:
    line = next(each for each in shown.text.splitlines() if "small commits" in each)
    files = re.search(r"(\d+) +[\d.]+ kB +(\d+) +[\d.]+ kB$", line)
    assert files is not None
    assert [int(each) for each in files.groups()] == [2 * _COMMITS, 3 * _COMMITS]


def test_the_kept_folder_has_the_picture(shown: Shown) -> None:
    assert ET.parse(shown.folder / "tree.svg").getroot().tag.endswith("svg")


@pytest.mark.long
def test_a_row_too_many_is_not_passed_over(shown: Shown, spark: SparkSession) -> None:
    lake = local(shown.folder / "lake", spark=spark)
    done = Pipeline(lake=lake, checkpoint=shown.folder / "checkpoint", commits=_COMMITS, past=_PAST)
    done.streamed = [each.snapshot_id for each in done.table.history()][-1 - _COMMITS]
    lake.sql(f"INSERT INTO {EVENTS} SELECT * FROM {EVENTS} LIMIT 1")
    wrong = [law.says for law in truths(done) if not law.holds]
    assert len(wrong) == 3
    assert wrong[0].startswith("What came in")
