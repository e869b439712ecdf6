"""Making a failing script short: fewer steps, fewer faults, fewer writers, the same law broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from campaigns.simulate.run import Outcome, run
from campaigns.simulate.script import Script, Step


def shrunk(outcome: Outcome, *, most_runs: int = 400) -> Outcome:
    """Return the shortest failure of the same kind that so many runs lead to."""
    assert outcome.finding is not None
    law, best, left = outcome.finding.law, outcome, most_runs
    found = True
    while found and left > 0:
        found = False
        for script in _shorter(best.script):
            left -= 1
            tried = run(script, to_the_end=outcome.at_the_end)
            if tried.finding is not None and tried.finding.law == law:
                best, found = tried, True
                break
            if left <= 0:
                break
    return best


def _shorter(script: Script) -> Iterator[Script]:
    """Yield scripts with less in them, those with much less first."""
    steps = script.steps
    size = len(steps) // 2
    while size >= 1:
        for start in range(len(steps) - size, -1, -size):
            yield script.only(steps[:start] + steps[start + size :])
        size //= 2
    for writer in sorted({step.writer for step in steps})[1:]:
        yield script.only(
            tuple(replace(step, writer=0) if step.writer == writer else step for step in steps)
        )
    yield from _calmer(script, lambda step: replace(step, faulty=False))
    yield from _calmer(script, lambda step: replace(step, shared=False))


def _calmer(script: Script, calm: Callable[[Step], Step]) -> Iterator[Script]:
    steps = script.steps
    every = tuple(map(calm, steps))
    if every != steps:
        yield script.only(every)
        for at, step in enumerate(steps):
            if every[at] != step:
                yield script.only((*steps[:at], every[at], *steps[at + 1 :]))
