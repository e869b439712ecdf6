"""Who has its turn in a group, and who waits for whom."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from icetree.serve.waiting.groups import Groups
from icetree.surroundings import within
from tests.hasty import Hasty

T = TypeVar("T")
NAME = ("db", "t")


def test_who_is_done_does_not_wait_for_those_that_came_later() -> None:
    groups: Groups[int, int] = Groups()
    begun, go_on = threading.Event(), {1: threading.Event(), 2: threading.Event()}
    done: dict[int, threading.Event] = {number: threading.Event() for number in (1, 2)}

    def carry_out(what: Sequence[int]) -> Sequence[int]:
        begun.set()
        assert go_on[what[0]].wait(timeout=30)
        return what

    def join(number: int) -> None:
        groups.join("key", number, carry_out)
        done[number].set()

    threads = [threading.Thread(target=join, args=(number,)) for number in (1, 2)]
    threads[0].start()
    assert begun.wait(timeout=30)
    threads[1].start()
    go_on[1].set()
    assert done[1].wait(timeout=30)
    assert not done[2].is_set()
    go_on[2].set()
    for each in threads:
        each.join(timeout=30)


def test_whoever_has_its_turn_does_what_all_that_wait_have_asked_for() -> None:
    groups: Groups[int, int] = Groups()
    begun, go_on = threading.Event(), threading.Event()
    done: list[list[int]] = []

    def carry_out(what: Sequence[int]) -> list[BaseException | int]:
        begun.set()
        assert go_on.wait(timeout=30)
        done.append(sorted(what))
        return [ValueError("odd") if each % 2 else each for each in what]

    wrong: list[int] = []

    def join(number: int) -> None:
        try:
            groups.join("key", number, carry_out)
        except ValueError:
            wrong.append(number)

    threads = [threading.Thread(target=join, args=(number,)) for number in range(6)]
    threads[0].start()
    assert begun.wait(timeout=30)
    for thread in threads[1:]:
        thread.start()
    line = groups._lines["key"]
    for _ in range(3_000):
        if len(line.waiting) == 5:
            break
        threading.Event().wait(0.01)
    del line
    go_on.set()
    for thread in threads:
        thread.join(timeout=30)
    assert done == [[0], [1, 2, 3, 4, 5]]
    assert sorted(wrong) == [1, 3, 5]
    gc.collect()
    assert not groups._lines


def test_those_who_were_together_are_given_a_moment_to_come_back() -> None:
    groups: Groups[int, int] = Groups(patience=1e9)
    hasty, done = Hasty(), list[list[int]]()

    def carry_out(what: Sequence[int]) -> Sequence[int]:
        done.append(sorted(what))
        # So that half of it is longer than any test.
        hasty.wait(1e6)
        return what

    def join(number: int) -> None:
        with within(hasty):
            groups.join("key", number, carry_out)

    def joining(*numbers: int) -> list[threading.Thread]:
        threads = [threading.Thread(target=join, args=(number,)) for number in numbers]
        for each in threads:
            each.start()
        return threads

    # Who was alone waits for nobody.
    join(0)
    join(1)
    assert done == [[0], [1]]
    with groups._lock:
        groups._last["key"] = replace(groups._last["key"], count=2)
    first = joining(2)
    for _ in range(3_000):
        line = groups._lines.get("key")
        if line is not None and line.waiting:
            break
        threading.Event().wait(0.01)
    del line
    assert done == [[0], [1]]
    for each in (*first, *joining(3)):
        each.join(timeout=30)
    assert done == [[0], [1], [2, 3]]
    # Of those who do not come one is told once, and then goes alone.
    groups._patience = 0.01
    join(4)
    join(5)
    assert done == [[0], [1], [2, 3], [4], [5]]
    assert groups._last["key"].count == 1


def test_of_few_keys_alone_it_is_known_who_was_together() -> None:
    groups: Groups[int, int] = Groups(patience=1.0)
    for key in range(3_000):
        groups.join(key, 1, lambda what: what)
    assert len(groups._last) == 1_000


def test_what_befalls_the_group_befalls_each() -> None:
    groups: Groups[int, int] = Groups()

    def fail(_: Sequence[int]) -> list[BaseException | int]:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        groups.join("key", 1, fail)
    assert groups.join("key", 1, lambda what: [each + 1 for each in what]) == 2
