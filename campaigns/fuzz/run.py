"""Damaged inputs for every target, shared out among processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from campaigns.fuzz import guided
from campaigns.fuzz.confine import confine
from campaigns.fuzz.targets import TARGETS, Target, seeds_of
from campaigns.fuzz.worker import Job, complaint, input_of

#: The module that is run in each process.
WORKER = "campaigns.fuzz.worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An input that was not taken as it must be."""

    target: str
    seed: int
    number: int
    why: str

    def __str__(self) -> str:
        return f"{self.target}/{self.seed}/{self.number}: {self.why}"


@dataclass(slots=True, kw_only=True)
class Tally:
    """How many inputs a target had, and what was found."""

    inputs: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)


def campaign(
    targets: Sequence[Target],
    *,
    inputs: int,
    seconds: float,
    seed: int,
    processes: int = 2,
    tell: Callable[[str, Tally], None] = lambda *_: None,
) -> dict[str, Tally]:
    """Share inputs out among targets, and try them in some processes side by side."""
    whole = sum(target.share for target in targets)
    jobs = [
        Job(target=each.name, first=0, end=max(1, inputs * each.share // whole)) for each in targets
    ]
    tallies = {each.name: Tally() for each in targets}
    with ThreadPoolExecutor(processes) as pool:
        parts = [jobs[at::processes] for at in range(processes)]
        list(pool.map(lambda part: _follow(part, seconds, seed, tallies, tell), parts))
    return tallies


def _follow(
    jobs: Sequence[Job],
    seconds: float,
    seed: int,
    tallies: dict[str, Tally],
    tell: Callable[[str, Tally], None],
) -> None:
    """Start a worker, and note what it prints."""
    words = [sys.executable, "-m", WORKER, str(seed), str(seconds)]
    with subprocess.Popen([*words, *map(str, jobs)], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            what = json.loads(line)
            name = what.pop("target")
            tally = tallies[name]
            if "why" in what:
                tally.findings.append(Finding(target=name, seed=seed, **what))
            else:
                tally.inputs, tally.seconds = what["inputs"], what["seconds"]
                tell(name, tally)
    if worker.returncode:
        raise RuntimeError(f"a worker ended with {worker.returncode}")


def show(name: str, tally: Tally) -> None:
    """Print what came of a target."""
    rate = tally.inputs / max(tally.seconds, 1e-9)
    print(f"{name:18} {tally.inputs:>10,} inputs {rate:>8,.0f}/s {len(tally.findings):>4} findings")
    for each in tally.findings[:20]:
        print(f"    {each}")
    sys.stdout.flush()


def replay(named: str) -> int:
    """Read one input in this process, so that one can look on."""
    target, seed, number = named.split("/")
    data = input_of(target, int(seed), int(number))
    print(f"{len(data):,} bytes: {data[:200]!r}")
    confine()
    wrong = complaint(TARGETS[target], data)
    print(wrong or "taken as it must be")
    return int(wrong is not None)


def follow_coverage(targets: Sequence[Target], *, seconds: float, seed: int) -> int:
    """Guide inputs by what they cover, target by target; return an exit status."""
    if not guided.is_installed():
        print("Atheris has no wheel for this Python: leave --guided out for damage by chance alone")
        return 2
    found = 0
    for target in targets:
        if target.is_guided:
            tried, wrong = guided.attack(
                target.name, seeds_of(target.name), seconds=seconds, seed=seed
            )
            print(f"{target.name:18} {tried:>10,} inputs by coverage  {wrong or 'nothing found'}")
            found += bool(wrong)
    return int(found > 0)
