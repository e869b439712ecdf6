"""A process whose forks change views and are killed half-way; see `tests.table.dying`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import icetree
from icetree.table.lake import Lake
from tests.table.dying import DyingStore, Steps, watched
from tests.table.views.verbs import VERBS


def change(folder: str, verb: str, level: str, die_at: int | None, after: bool) -> list[str]:
    """Carry out a verb; die at a step, if one is given, else return the steps."""
    steps = Steps(die_at, after=after)
    with watched(level, steps):
        lake = icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/lake")
        if level == "store":
            lake = Lake(catalog=lake.catalog, store=DyingStore(steps), warehouse=lake.warehouse)
        steps.on = True
        VERBS[verb](lake)
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
                answer.write_text(json.dumps(change(**order)))
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)  # noqa: T201
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        steps = json.loads(answer.read_text()) if answer.exists() else []
        print(json.dumps([os.waitstatus_to_exitcode(status), steps]), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
