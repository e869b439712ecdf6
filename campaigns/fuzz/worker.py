"""A process that makes what it needs once, and then children that try inputs till they die of one.

A child notes the number of each input before it tries it: what ends it is known by that, and an
input is the same whenever target, seed and number are.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn

from campaigns.fuzz.confine import MOST_BYTES, SECONDS_AN_INPUT, confine, peak_bytes
from campaigns.fuzz.mutate import mutated
from campaigns.fuzz.targets import TARGETS, Target, seeds_of

#: So that no process grows old.
_INPUTS_A_PROCESS: Final = 50_000


def input_of(target: str, seed: int, number: int) -> bytes:
    """Return the input with a number."""
    return mutated(seeds_of(target), Random(f"{seed} {target} {number}"))


def complaint(target: Target, data: bytes) -> str | None:
    """Return what is wrong with how an input was taken; None where nothing is."""
    before = peak_bytes()
    error = target.outcome(data)
    if error is not None:
        return f"{type(error).__name__}: {error}"[:300]
    grown = peak_bytes() - before
    if grown > MOST_BYTES:
        return f"took {grown:,} bytes for {len(data):,}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Inputs of one target to be tried."""

    target: str
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.target}:{self.first}:{self.end}"

    @classmethod
    def parse(cls, text: str) -> Job:
        """Return the job that `str` made the text of."""
        target, first, end = text.split(":")
        return cls(target=target, first=int(first), end=int(end))


def run(job: Job, seed: int, until: float) -> None:
    """Try the inputs of a job, a process after the other; print what is found."""
    started, number = time.monotonic(), job.first
    with tempfile.TemporaryFile() as told:
        while number < job.end and time.monotonic() < until:
            stop = min(job.end, number + _INPUTS_A_PROCESS)
            os.pwrite(told.fileno(), number.to_bytes(8, "little"), 0)
            child = os.fork()
            if not child:
                _try(job.target, seed, range(number, stop), until, told.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            number = int.from_bytes(os.pread(told.fileno(), 8, 0), "little")
            if status:
                died = signal.Signals(-status).name if status < 0 else f"exit {status}"
                _tell(target=job.target, number=number, why=f"died: {died}")
                number += 1
    seconds = time.monotonic() - started
    _tell(target=job.target, inputs=number - job.first, seconds=seconds)


def _try(name: str, seed: int, numbers: range, until: float, told: int) -> NoReturn:
    confine()
    # What Arrow prints when it gives up would drown the findings: their number tells all.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    target = TARGETS[name]
    for number in numbers:
        if time.monotonic() > until:
            os._exit(0)
        os.pwrite(told, number.to_bytes(8, "little"), 0)
        data = input_of(name, seed, number)
        signal.alarm(SECONDS_AN_INPUT)
        wrong = complaint(target, data)
        signal.alarm(0)
        if wrong is not None:
            _tell(target=name, number=number, why=wrong)
    os.pwrite(told, numbers.stop.to_bytes(8, "little"), 0)
    os._exit(0)


def _tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    """Run as told by the arguments: seed, seconds, and jobs."""
    seed, seconds, *jobs = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    for number, job in enumerate(map(Job.parse, jobs)):
        for sound in seeds_of(job.target):
            TARGETS[job.target].outcome(sound)  # so that what is loaded late counts for no input
        # A kind that takes its time leaves as much to each of the others.
        share = (until - time.monotonic()) / (len(jobs) - number)
        run(job, int(seed), time.monotonic() + share)


if __name__ == "__main__":
    main()
