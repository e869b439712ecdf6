"""A process killed at any step of a change of views: a view is old or new, and the next succeeds."""

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
from icetree.table.lake import Lake
from tests.table.views.verbs import VERBS, again, prepare, seen


class Murderer:
    """Has verbs killed in a process of its own, each on a fresh copy of a lake."""

    def __init__(self, folder: Path) -> None:
        self._pristine, self.folder = folder / "pristine", folder / "now"
        self.folder.mkdir()
        with self.connect() as lake:
            prepare(lake)
        shutil.move(self.folder, self._pristine)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.table.views.dying"],
            cwd=Path(__file__).parents[3],
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

    def renew(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._pristine, self.folder)

    def change(
        self, verb: str, level: str, *, die_at: int | None = None, after: bool = False
    ) -> tuple[int, list[str]]:
        """Return how a verb ended, and its steps."""
        self.renew()
        order = {"folder": str(self.folder), "verb": verb, "level": level,
                 "die_at": die_at, "after": after}  # fmt: skip
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        ended, steps = json.loads(self._server.stdout.readline())
        return ended, steps

    def seen(self) -> dict[str, object]:
        with self.connect() as lake:
            return seen(lake)


@pytest.fixture(scope="module")
def murderer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Murderer]:
    found = Murderer(tmp_path_factory.mktemp("views"))
    yield found
    found.close()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("level", ["store", "sql"])
def test_a_kill_at_any_step_leaves_views_old_or_new(
    murderer: Murderer, verb: str, level: str
) -> None:
    murderer.renew()
    old = murderer.seen()
    ended, steps = murderer.change(verb, level)
    new = murderer.seen()
    assert ended == 0
    assert old != new
    found = []
    for die_at in range(len(steps)):
        for after in (False, True):
            ended, _ = murderer.change(verb, level, die_at=die_at, after=after)
            assert ended == -signal.SIGKILL, (die_at, steps)
            found.append(murderer.seen())
            assert found[-1] in (old, new), (die_at, after, steps)
            with murderer.connect() as lake:
                again(lake, verb)
                assert seen(lake) == new
    assert level == "store" or (old in found and new in found)
