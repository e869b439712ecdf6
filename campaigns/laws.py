"""Laws: `make laws`, the long form of what every run of the tests tries, as seeds decide."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
#: Tests whose examples follow from a seed, and those that the usual run has a short form of.
LAWS, LONG = "law or hypothesis", "long"
_SEED, _EFFORT = "ICETREE_LAWS_SEED", "ICETREE_LAWS_EFFORT"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first round")
    parser.add_argument("--minutes", type=float, default=30, help="begin no round after these")
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument(
        "--effort", type=int, default=5, help="how many times the examples of the usual tests"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("laws", nargs="*", default=["tests"], help="where, if not all are meant")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    for seed in range(options.seed, options.seed + options.rounds):
        # What no seed decides is tried once.
        which = f"{LAWS} or {LONG}" if seed == options.seed else f"({LAWS}) and not {LONG}"
        if not _holds(seed, which, options):
            again = f'make laws ARGS="--seed {seed} --effort {options.effort} --rounds 1"'
            print(f"seed {seed} broke a law\n  again: {again}")
            return 1
        if time.monotonic() > until:
            break
    print("all is well")
    return 0


def _holds(seed: int, which: str, options: argparse.Namespace) -> bool:
    """Try the laws that have such marks on the examples of one seed."""
    started = time.monotonic()
    given = {**os.environ, _SEED: str(seed), _EFFORT: str(options.effort)}
    command = [sys.executable, "-m", "pytest", "--quiet", "-m", which]
    command += [f"--numprocesses={options.workers}", f"--hypothesis-seed={seed}", *options.laws]
    done = subprocess.run(command, cwd=REPOSITORY, env=given, check=False)
    print(f"seed {seed}: {time.monotonic() - started:.0f} s", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
