"""Running seed after seed, in several processes, until enough was done or something was found."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from campaigns.simulate.run import run, script_of


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was done so far."""

    seeds: int = 0
    operations: int = 0
    landings: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    #: Seeds that broke a law, and which.
    findings: dict[int, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Count what another tally has."""
        self.seeds += other.seeds
        self.operations += other.operations
        self.landings += other.landings
        self.faults += other.faults
        self.outcomes += other.outcomes
        self.findings |= other.findings


def one(seed: int, *, busy: bool = False) -> Tally:
    """Run one seed."""
    outcome = run(script_of(seed, busy=busy))
    return Tally(
        seeds=1,
        operations=outcome.steps,
        landings=outcome.landings,
        faults=outcome.faults,
        outcomes=outcome.outcomes,
        findings={} if outcome.finding is None else {seed: str(outcome.finding)},
    )


def campaign(
    *, first: int, operations: int, minutes: float, workers: int, busy: bool = False
) -> Iterator[Tally]:
    """Yield the tally after each seed, from the first on, until one of the limits is reached."""
    tally, until = Tally(), time.monotonic() + minutes * 60
    for each in _results(partial(one, busy=busy), first, workers):
        tally.add(each)
        yield tally
        if tally.operations >= operations or time.monotonic() > until:
            return


def calm() -> None:
    """Have the collector look seldom: a tenth of the time would go by looking at what stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def _results(one: Callable[[int], Tally], first: int, workers: int) -> Iterator[Tally]:
    seeds = iter(range(first, 1 << 60))
    if workers == 1:
        calm()
        yield from map(one, seeds)
        return
    # Spawned, not forked: Arrow's threads do not survive a fork. Replaced now and then, so that
    # what an allocator keeps does not pile up.
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(workers, calm, maxtasksperchild=500) as pool:
        waiting = [pool.apply_async(one, (next(seeds),)) for _ in range(workers * 4)]
        while waiting:
            done = waiting.pop(0).get()
            waiting.append(pool.apply_async(one, (next(seeds),)))
            yield done
