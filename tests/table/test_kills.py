"""A process killed at any step of a commit: the table is old or new, and the next one succeeds.

Real files and a real SQLite database; the steps are requests to the store, calls to the system
that the local store makes, and statements to the database.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import icetree
from icetree.store.local import TEMPORARY
from icetree.table.lake import Lake
from tests.effort import usually
from tests.table.kinds import KINDS, data_file, reached, view
from tests.table.lake import SCHEMA

#: Between them they write all that a commit may write, and one is tried again.
USUAL = ("first append", "row delta with a flush", "retried append to leaves", "metadata only")


class Murderer:
    """Has commits killed in a process of its own, each on a fresh copy of a kind's table."""

    def __init__(self, folder: Path) -> None:
        self._pristine, self.folder = folder / "pristine", folder / "now"
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.table.dying"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._server.communicate(timeout=30)

    def connect(self) -> Lake:
        return icetree.connect(
            f"sqlite:///{self.folder}/catalog.db", warehouse=str(self.folder / "lake")
        )

    def prepare(self, kind: str) -> None:
        for left in (self.folder, self._pristine):
            shutil.rmtree(left, ignore_errors=True)
        self.folder.mkdir()
        with self.connect() as lake:
            lake.create_namespace("db")
            KINDS[kind].before(lake.create_table("db.t", SCHEMA, properties=KINDS[kind].properties))
        shutil.move(self.folder, self._pristine)

    def commit(
        self, kind: str, level: str, *, die_at: int | None = None, after: bool = False
    ) -> tuple[int, list[str]]:
        """Return how the commit ended and its steps, on the table as it was prepared."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._pristine, self.folder)
        order = {
            "folder": str(self.folder),
            "kind": kind,
            "level": level,
            "die_at": die_at,
            "after": after,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return answer["ended"], answer["steps"]

    def seen(self) -> dict[str, object]:
        with self.connect() as lake:
            return view(lake.table("db.t"))


@pytest.fixture(scope="module")
def murderer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Murderer]:
    found = Murderer(tmp_path_factory.mktemp("killed"))
    yield found
    found.close()


def kill_at_each(murderer: Murderer, kind: str, level: str) -> tuple[list[str], list[bool]]:
    """Kill before and after each step; return the steps, and which kills came too late to matter."""
    murderer.prepare(kind)
    ended, steps = murderer.commit(kind, level)
    assert ended == 0
    new = murderer.seen()
    olds: dict[bool, dict[str, object]] = {}
    late = []
    # After one step is before the next, but for a call to the system that is done by half.
    deaths = [(at, True) for at in range(len(steps))]
    deaths += [(at, False) for at, name in enumerate(steps) if at == 0 or name == "os.write"]
    for at, after in sorted(deaths):
        ended, _ = murderer.commit(kind, level, die_at=at, after=after)
        assert ended == -signal.SIGKILL
        with murderer.connect() as lake:
            table = lake.table("db.t")
            now = view(table)
            missing = [each for each in reached(table) if not Path(each).is_file()]
            assert missing == []
            late.append(now == new)
            others = (murderer.folder / "meanwhile").exists()
            if others not in olds:
                olds[others] = old_of(murderer, kind)
            assert now in (olds[others], new)
            table.append_files([data_file("later")])
            assert "data/later.parquet" in view(lake.table("db.t"))["files"]  # type: ignore[operator]
    return steps, late


def old_of(murderer: Murderer, kind: str) -> dict[str, object]:
    """Return what the table would be, had the killed commit never been tried."""
    now = murderer.folder
    aside = now.with_name("aside")
    now.rename(aside)
    try:
        shutil.copytree(now.with_name("pristine"), now)
        with murderer.connect() as lake:
            if (aside / "meanwhile").exists():
                KINDS[kind].meanwhile(lake.table("db.t"))  # type: ignore[misc]
            return view(lake.table("db.t"))
    finally:
        shutil.rmtree(now)
        aside.rename(now)


@pytest.mark.parametrize("kind", usually(KINDS, *USUAL))
def test_a_commit_killed_at_any_request_to_the_store_never_happened(
    murderer: Murderer, kind: str
) -> None:
    steps, late = kill_at_each(murderer, kind, "store")
    writes = [name for name in steps if name == "store write_new"]
    assert len(writes) >= (1 if kind == "metadata only" else 2)
    # What follows the swap is the removal of files of lost tries.
    retried = KINDS[kind].meanwhile is not None
    assert (steps[-1] == "store delete") == retried
    assert any(late) == retried


@pytest.mark.parametrize("kind", usually(["append", "first append"], "append"))
def test_a_commit_killed_at_any_call_of_the_local_store_never_happened(
    murderer: Murderer, kind: str
) -> None:
    steps, late = kill_at_each(murderer, kind, "system")
    assert {"os.open", "os.write", "os.fsync", "os.link", "os.unlink"} <= set(steps)
    assert not any(late)


@pytest.mark.parametrize("kind", usually(["append", "retried append"], "retried append"))
def test_a_commit_killed_in_the_database_is_there_once_the_database_says_so(
    murderer: Murderer, kind: str
) -> None:
    steps, late = kill_at_each(murderer, kind, "sql")
    assert "sql UPDATE" in steps
    last = len(steps) - 1 - steps[::-1].index("sql COMMIT")
    assert late == [False] * (last + 1) + [True] * (len(steps) - last)


def test_a_writer_killed_half_way_through_a_file_leaves_it_under_no_name_of_the_table(
    murderer: Murderer,
) -> None:
    murderer.prepare("append")
    _, steps = murderer.commit("append", "system")
    # Two threads write, so which of their calls is the step to die at differs from run to run:
    # it takes a few deaths until one is sure to fall within a file.
    torn: set[str] = set()
    for _ in range(10):
        murderer.commit("append", "system", die_at=steps.index("os.write"), after=False)
        with murderer.connect() as lake:
            table = lake.table("db.t")
            kept = {Path(each).name for each in reached(table)}
            folder = murderer.folder / "lake" / "db" / "t" / "metadata"
            strays = {each.name for each in folder.iterdir()} - kept
        torn = {each for each in strays if not each.startswith("00000-")}
        if torn:
            break
    assert torn
    assert all(each.startswith(TEMPORARY) for each in torn)
