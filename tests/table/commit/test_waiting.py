"""A commit that lost a race waits, and then goes on from what is there by then."""

from __future__ import annotations

from collections.abc import Callable

from icetree.surroundings import Machine, within
from tests.table.lake import connection, data_file, new_table


class Busy(Machine):
    """Surroundings in which somebody is always faster while one waits."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile
        self.waits = 0

    def wait(self, seconds: float) -> None:
        assert seconds >= 0
        self.waits += 1
        self._meanwhile()


def test_a_commit_takes_up_the_head_that_is_there_after_its_wait() -> None:
    lake = connection()
    slow = new_table(lake)
    others = iter(range(1_000))

    def commit_another() -> None:
        lake.table("db.t").append_files([data_file(f"other{next(others)}")])

    commit_another()
    busy = Busy(commit_another)
    with within(busy):
        done = slow.append_files([data_file("slow")])
    # Once: the wait after the first try. On the head that won the first race every try is too late.
    assert busy.waits == 1
    assert done.report.attempts == 2
    assert lake.table("db.t").snapshot().sequence_number == 3
