"""Doing things side by side, with answers in order and only so many under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from typing import TypeVar

from icetree.surroundings import new_pool

A = TypeVar("A")
B = TypeVar("B")

#: Threads that read leaves; decoding is Arrow's and lets the others run.
WORKERS = 4
#: How far reading runs ahead of whoever takes the answers: bounds what is held in memory.
AHEAD = 8


def in_order(call: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Do what `map` does, some calls side by side; the first answer comes when it is there."""
    waiting = list(items)
    if len(waiting) < 2:
        yield from map(call, waiting)
        return
    pool = new_pool(min(WORKERS, len(waiting)), "icetree-leaves")
    try:
        yield from results(pool, (partial(call, item) for item in waiting), ahead=AHEAD)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def results(
    pool: Executor,
    jobs: Iterable[Callable[[], B]],
    *,
    ahead: int,
    weigh: Callable[[B], int] = lambda _: 0,
    most: int = 1,
) -> Iterator[B]:
    """Yield what the jobs return, in their order, while at most `ahead` of them are under way.

    None is begun while those that are done and wait weigh `most` together.
    """
    under_way: deque[Future[B]] = deque()
    for job in jobs:
        while sum(weigh(each.result()) for each in under_way if _is_good(each)) >= most:
            yield under_way.popleft().result()
        under_way.append(pool.submit(job))
        if len(under_way) >= ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


def _is_good(job: Future[B]) -> bool:
    return job.done() and not job.cancelled() and job.exception() is None
