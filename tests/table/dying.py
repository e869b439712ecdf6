"""A process whose forks commit and are killed half-way: imports are paid for once.

Reads a line of JSON for each commit to try, answers with a line: how the fork ended, and the
steps it counted. Nothing of Arrow, SQLite or the store runs before the fork, since threads do
not survive one.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import icetree
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from tests.store.wrapped import Request, WrappedStore
from tests.table.kinds import KINDS

#: What the local store asks of the system, in whatever thread.
CALLS = ("open", "write", "fsync", "close", "link", "unlink", "mkdir")


class Steps:
    """Counts steps while `on`; at one of them the process ends, before or after it is done."""

    def __init__(self, die_at: int | None, *, after: bool) -> None:
        self.on = False
        self.names: list[str] = []
        self._die_at, self._after = die_at, after
        self._lock = Lock()

    def take(self, name: str, do: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        if not self.on:
            return do()
        with self._lock:
            number = len(self.names)
            self.names.append(name)
        if number != self._die_at:
            return do()
        if self._after:
            do()
        elif half is not None:
            half()
        os.kill(os.getpid(), signal.SIGKILL)
        return None


class DyingStore(WrappedStore):
    def __init__(self, steps: Steps) -> None:
        super().__init__(LocalStore())
        self._steps = steps

    def _pass(self, request: Request, effect: Callable[[], Any]) -> Any:
        return self._steps.take(f"store {request.operation}", effect)

    def write_many(self, files: Any) -> None:
        # One after the other, so that the steps of a run are always the same.
        for location, content in files:
            self.write_new(location, content)


class _DyingConnection(sqlite3.Connection):
    steps: Steps

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        inner = super().execute
        cursor: sqlite3.Cursor = self.steps.take(
            f"sql {sql.split(maxsplit=1)[0]}", lambda: inner(sql, *values)
        )
        return cursor


@contextmanager
def watched(level: str, steps: Steps) -> Iterator[None]:
    """Count the calls of a level as steps, for the rest of this process."""
    if level == "system":
        for name in CALLS:
            _watch(name, steps)
    if level == "sql":
        _DyingConnection.steps = steps
        connect = sqlite3.connect
        sqlite3.connect = lambda *args, **how: connect(  # type: ignore[assignment]
            *args, factory=_DyingConnection, **how
        )
    yield


def _watch(name: str, steps: Steps) -> None:
    inner = getattr(os, name)

    def call(*args: Any, **how: Any) -> Any:
        half = None
        if name == "write":
            half = lambda: inner(args[0], bytes(args[1])[: len(args[1]) // 2])  # noqa: E731
        return steps.take(f"os.{name}", lambda: inner(*args, **how), half)

    setattr(os, name, call)


def commit(folder: Path, kind: str, level: str, die_at: int | None, after: bool) -> list[str]:
    """Carry out a commit of a kind; die at a step, if one is given, else return the steps."""
    steps = Steps(die_at, after=after)
    with watched(level, steps):
        lake = icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/lake")
        if level == "store":
            lake = Lake(catalog=lake.catalog, store=DyingStore(steps), warehouse=lake.warehouse)
        table = lake.table("db.t")
        if meanwhile := KINDS[kind].meanwhile:
            meanwhile(lake.table("db.t"))
            (folder / "meanwhile").touch()
        steps.on = True
        KINDS[kind].commit(table)
        steps.on = False
        lake.close()
    return steps.names


def serve() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        answer = Path(order["folder"]) / "steps.json"
        pid = os.fork()
        if pid == 0:
            try:
                steps = commit(
                    Path(order["folder"]),
                    order["kind"],
                    order["level"],
                    order["die_at"],
                    order["after"],
                )
                answer.write_text(json.dumps(steps))
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)  # noqa: T201
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        steps = json.loads(answer.read_text()) if answer.exists() else []
        ended = os.waitstatus_to_exitcode(status)
        print(json.dumps({"ended": ended, "steps": steps}), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
