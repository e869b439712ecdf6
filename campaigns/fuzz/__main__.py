"""The campaign: damaged inputs for every target, in processes of their own.

`make fuzz ARGS="--inputs 10000000 --seconds 3600 --seed 1"`. An input is told again by its
target, seed and number: `make fuzz ARGS="--replay root/1/4711"`.
"""

from __future__ import annotations

import argparse
import sys

from campaigns.fuzz.run import campaign, follow_coverage, replay, show
from campaigns.fuzz.targets import TARGETS


def main() -> int:
    """Run the campaign; the exit status tells whether anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="*", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--guided", type=float, default=0, help="seconds a target, by coverage")
    parser.add_argument("--replay", help="target/seed/number of one input")
    told = parser.parse_args()
    if told.replay:
        return replay(told.replay)
    chosen = [TARGETS[name] for name in told.targets]
    if told.guided:
        return follow_coverage(chosen, seconds=told.guided, seed=told.seed)
    tallies = campaign(chosen, inputs=told.inputs, seconds=told.seconds, seed=told.seed, tell=show)
    total = sum(tally.inputs for tally in tallies.values())
    found = sum(len(tally.findings) for tally in tallies.values())
    print(f"{total:,} inputs, {found} findings")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
