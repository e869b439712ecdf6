"""Start the writers, wait for them, and judge."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

import icetree
from campaigns.entries import data_file
from campaigns.writers.life import SHARED, TABLE, live
from campaigns.writers.verdict import figures, journals, wrong_with

#: The arguments of one writer's life.
Work: TypeAlias = tuple[str, str, str, int, int]

SCHEMA = pa.schema([pa.field("n", pa.int64())])
#: Small thresholds, so that flushes and compactions race with everything else.
PROPERTIES = {
    "write.root.max-data-entries": "60",
    "write.root.max-delete-entries": "30",
    "write.leaf.max-entries": "400",
    "write.metadata.inline-snapshots": "20",
    "write.metadata.previous-versions-max": "20",
}


def run(
    uri: str,
    folder: Path,
    *,
    writers: int,
    commits: int,
    give_up_s: float,
    in_threads: bool = False,
) -> tuple[str, list[str]]:
    """Let writers commit so often each; return how it went and what is wrong.

    Each is a process, or a thread where a few commits would not be worth starting one.
    """
    warehouse = str(folder / "lake")
    with icetree.connect(uri, warehouse=warehouse) as lake:
        lake.create_namespace("db", exist_ok=True)
        lake.create_table(TABLE, SCHEMA, properties=PROPERTIES).append_files(
            [data_file(name) for name in SHARED]
        )
    work = [(uri, warehouse, str(folder), number, commits) for number in range(writers)]
    started = time.monotonic()
    wrong = _in_threads(work) if in_threads else _in_processes(work, give_up_s)
    took_s = time.monotonic() - started
    told = journals(folder)
    with icetree.connect(uri, warehouse=warehouse) as lake:
        wrong += wrong_with(lake.table(TABLE), told)
    return figures(told, took_s), wrong


def _in_threads(work: list[Work]) -> list[str]:
    with ThreadPoolExecutor(len(work)) as pool:
        lives = [pool.submit(live, *each) for each in work]
    return [f"a writer ended with {each.exception()!r}" for each in lives if each.exception()]


def _in_processes(work: list[Work], give_up_s: float) -> list[str]:
    # Spawned, not forked: threads of Arrow and the catalog do not survive a fork.
    spawn = multiprocessing.get_context("spawn")
    everyone = [spawn.Process(target=live, args=each) for each in work]
    give_up = time.monotonic() + give_up_s
    for each in everyone:
        each.start()
    for each in everyone:
        each.join(max(0.0, give_up - time.monotonic()))
    late = [each for each in everyone if each.is_alive()]
    for each in late:
        each.kill()
        each.join()
    wrong = [f"{len(late)} writers were not done after {give_up_s:g} s"] if late else []
    return wrong + [f"a writer ended with {each.exitcode}" for each in everyone if each.exitcode]
