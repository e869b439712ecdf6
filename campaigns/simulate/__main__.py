"""Simulate: `make simulate`, with ARGS="--seed 42" to see one seed again."""

from __future__ import annotations

import argparse
import os
import sys
import time

from campaigns.simulate.campaign import Tally, campaign
from campaigns.simulate.run import Outcome, run, script_of
from campaigns.simulate.shrink import shrunk

#: How many findings are worth going on for.
_ENOUGH = 5
_TELL_EVERY_S = 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one alone, and shrink it if it fails")
    parser.add_argument("--first", type=int, default=1, help="the seed to begin with")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--whole", action="store_true", help="show a failing seed without shrinking it"
    )
    parser.add_argument(
        "--busy", action="store_true", help="short scripts of every verb, with many faults"
    )
    options = parser.parse_args()
    if options.seed is not None:
        return _one(options.seed, busy=options.busy, whole=options.whole)
    return _many(options)


def _one(seed: int, *, busy: bool, whole: bool) -> int:
    outcome = run(script_of(seed, busy=busy))
    if outcome.finding is None:
        print(f"seed {seed}: {outcome.steps} operations, {outcome.landings} commits, all is well")
        return 0
    _show(outcome if whole else shrunk(outcome))
    return 1


def _show(outcome: Outcome) -> None:
    settings = outcome.script.settings
    print(f"partitioned by {settings.partition_by or 'nothing'}")
    for name, value in settings.properties.items():
        print(f"{name}={value}")
    print("\n".join(outcome.log))
    print(f"FOUND {outcome.finding}")


def _many(options: argparse.Namespace) -> int:
    started, told = time.monotonic(), 0.0
    tally, shown = Tally(), 0
    for tally in campaign(
        first=options.first,
        operations=options.operations,
        minutes=options.minutes,
        workers=options.workers,
        busy=options.busy,
    ):
        spent = time.monotonic() - started
        if spent - told > _TELL_EVERY_S:
            told = spent
            _tell(tally, spent)
        for seed, what in [*tally.findings.items()][shown:]:
            again = f"--seed {seed}{' --busy' if options.busy else ''}"
            print(f'FOUND {what}\n  again: make simulate ARGS="{again}"', flush=True)
        shown = len(tally.findings)
        if shown >= _ENOUGH:
            break
    _tell(tally, time.monotonic() - started)
    print("faults:", ", ".join(f"{kind.lower()} {n}" for kind, n in tally.faults.most_common()))
    print("commits:", ", ".join(f"{how} {n}" for how, n in tally.outcomes.most_common()))
    print("all is well" if not tally.findings else f"{len(tally.findings)} seeds broke a law")
    return 1 if tally.findings else 0


def _tell(tally: Tally, spent_s: float) -> None:
    print(
        f"{tally.operations:>9,} operations  {tally.operations / max(spent_s, 1e-9):6.1f}/s  "
        f"{tally.seeds:,} seeds  {tally.landings:,} landed  {tally.faults.total():,} faults  "
        f"{len(tally.findings)} findings",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
