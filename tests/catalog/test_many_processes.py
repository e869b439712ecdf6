"""Many processes on one catalog, some of which die."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from icetree.catalog.base import Catalog, Stale, Swapped
from tests.catalog.conftest import EVENTS, opened
from tests.catalog.racers import open_and_migrate, swap_many

WRITERS, SWAPS = 8, 50


@pytest.fixture
def shared(sql_uri: str) -> Iterator[Catalog]:
    for catalog in opened(sql_uri):
        catalog.create_namespace(("db",), {})
        catalog.create(EVENTS, "start")
        yield catalog


def assert_one_chain(swaps: list[tuple[str, str]], end: str) -> None:
    """Every swap was applied exactly once, one on top of the other."""
    after = dict(swaps)
    assert len(after) == len(swaps), "two swaps replaced the same head"
    head, length = "start", 0
    while head in after:
        head, length = after[head], length + 1
    assert (head, length) == (end, len(swaps))


def test_eight_processes_swap_one_head_and_lose_nothing(shared: Catalog, sql_uri: str) -> None:
    with multiprocessing.get_context("spawn").Pool(WRITERS) as pool:
        jobs = [(sql_uri, f"w{writer}", SWAPS) for writer in range(WRITERS)]
        won = pool.map(swap_many, jobs, chunksize=1)
    swaps = [swap for each in won for swap in each]
    assert len(swaps) == WRITERS * SWAPS
    assert_one_chain(swaps, shared.load(EVENTS))


def test_threads_share_a_catalog(shared: Catalog) -> None:
    won: list[tuple[str, str]] = []

    def write(writer: int) -> None:
        head = shared.load(EVENTS)
        for count in range(20):
            to = f"t{writer}-{count}"
            while (outcome := shared.swap(EVENTS, expected=head, to=to)) != Swapped():
                head = outcome.metadata_location  # type: ignore[union-attr]
            won.append((head, to))
            head = to

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 120
    assert_one_chain(won, shared.load(EVENTS))


def test_a_process_killed_amid_swaps_leaves_the_catalog_usable(
    shared: Catalog, sql_uri: str
) -> None:
    for victim in range(4):
        command = [sys.executable, "-m", "tests.catalog.racers", sql_uri, f"v{victim}"]
        root = Path(__file__).parents[2]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
            assert process.stdout is not None
            told = [process.stdout.readline() for _ in range(11 + 2 * victim)]
            process.kill()
            told += [line for line in process.stdout if line.endswith("\n")]
        tries = [line.split()[1] for line in told if line.startswith("try ")]
        tried = int(tries[-1].split("-")[1])
        to = f"after-{victim}"
        head = shared.load(EVENTS)
        # A server may still carry out what a dead client asked for: then the head moves once.
        while (outcome := shared.swap(EVENTS, expected=head, to=to)) != Swapped():
            assert outcome == Stale(metadata_location=f"v{victim}-{tried}")
            head = f"v{victim}-{tried}"
        assert head in (f"v{victim}-{tried - 1}", f"v{victim}-{tried}")


def test_processes_that_open_a_new_database_at_once_agree_on_it(sql_uri: str) -> None:
    with multiprocessing.get_context("spawn").Pool(6) as pool:
        assert pool.map(open_and_migrate, [sql_uri] * 6, chunksize=1) == [[]] * 6


def test_a_forked_child_and_its_parent_both_go_on(shared: Catalog) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            swapped = shared.swap(EVENTS, expected="start", to="child")
            code = 0 if swapped == Swapped() else 2
            shared.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shared.load(EVENTS) == "child"
    assert shared.swap(EVENTS, expected="child", to="parent") == Swapped()
