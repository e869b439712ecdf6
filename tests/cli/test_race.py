"""The race of the demo, shortened: the same rows on both sides, and figures that are those on disk."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

import icetree
from icetree.cli.demo.events import EVENTS, ROWS, USER, corrections, events
from icetree.cli.demo.peer import READS, WRITES, peer_catalog
from icetree.cli.demo.race import WRITERS, Race, race
from icetree.cli.demo.race_screen import facts, fair, points, show_race

_COMMITS: Final = 6
_EACH: Final = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("race")


@pytest.fixture(scope="module")
def shown(folder: Path) -> tuple[Race, list[str]]:
    console = Console(file=StringIO(), width=80, color_system=None, highlight=False)
    done = show_race(console, folder, _COMMITS, each=_EACH)
    assert isinstance(console.file, StringIO)
    return done, console.file.getvalue().splitlines()


def test_both_sides_have_the_same_events(shown: tuple[Race, list[str]], folder: Path) -> None:
    done, _ = shown
    with icetree.connect(f"sqlite:///{folder}/catalog.db") as lake:
        ours = lake.table(EVENTS).scan().to_arrow().sort_by("id")
    assert ours.num_rows == done.end
    assert ours["id"].to_pylist() == list(range(done.end))
    theirs = peer_catalog(folder / "pyiceberg").load_table(EVENTS).scan().to_arrow().sort_by("id")
    # They may have been refused when writers met; what they had before is the same.
    first = theirs.slice(0, _COMMITS * ROWS).combine_chunks()
    assert first.to_pylist() == ours.slice(0, _COMMITS * ROWS).to_pylist()


def test_files_and_bytes_are_those_on_disk(tmp_path: Path) -> None:
    done = race(tmp_path, 3, lambda _: None, each=1)
    for lane in (done.ours, done.theirs):
        named = [each for each in lane.system.metadata().iterdir() if each.name in lane._seen]
        assert sum(lane.files) == len(named)
        assert sum(lane.size_bytes) == sum(each.stat().st_size for each in named)
        # A data file and each metadata file is a request; what makes the table came before.
        assert lane.requests[WRITES] >= 3 + sum(lane.files[1:])


def test_a_small_commit_writes_fewer_files_and_reads_none(
    shown: tuple[Race, list[str]],
) -> None:
    ours, theirs = shown[0].ours, shown[0].theirs
    assert ours.files[1:] == [2] * (_COMMITS - 1)
    assert theirs.files[1:] == [3] * (_COMMITS - 1)
    assert ours.requests[READS] == 0 < theirs.requests[READS]
    assert ours.planned == theirs.planned > 0


def test_no_commit_of_ours_is_lost_and_none_of_theirs_in_silence(
    shown: tuple[Race, list[str]],
) -> None:
    done, _ = shown
    assert (done.ours.landed, done.ours.refused) == (WRITERS * _EACH, 0)
    assert done.ours.none_lost
    assert done.theirs.none_lost
    assert fair(done).holds
    done.ours.rows -= 1
    assert not fair(done).holds
    done.ours.rows += 1


def test_what_is_shown_fits_80_columns_and_tells_each_figure(
    shown: tuple[Race, list[str]],
) -> None:
    done, lines = shown
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    lanes = (done.ours, done.theirs)
    for label, (ours, theirs) in facts(lanes):
        assert any(label in line and ours in line and theirs in line for line in lines), label
    assert text.count("█" * 44) == 1
    assert all(f"commit {number:>5,}" in text for number in points(done.ours))
    assert "What v3 does as well" in text


def test_an_event_is_a_function_of_its_number_alone() -> None:
    assert events(500, 20).to_pylist() == events(0, 1_000).slice(500, 20).to_pylist()
    every = events(0, 50_000)
    share = every["kind"].to_pylist().count("order") / every.num_rows
    assert 0.08 < share < 0.12
    assert USER in every["user_id"].to_pylist()
    changed = corrections(50_000, 500)
    assert USER not in changed["user_id"].to_pylist()
    before = {row["id"]: row["amount"] for row in every.to_pylist()}
    for row in changed.to_pylist():
        assert row["id"] >= 50_000 or row["amount"] < before[row["id"]]
