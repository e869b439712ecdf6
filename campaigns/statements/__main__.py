"""Statements: `make statements`, with ARGS="--seed 42" to see one seed again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

from campaigns.statements.run import Finding, Tally, played, shrunk
from icetree.spark.session import local_session

REPOSITORY = Path(__file__).parents[2]
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_SETTINGS = {
    "spark.sql.extensions": _EXTENSIONS,
    "spark.master": "local[1]",
    "spark.sql.adaptive.enabled": "false",
    # Compiling code for each plan takes longer than to run it on a few rows.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one alone, and shrink what it finds")
    parser.add_argument("--first", type=int, default=1, help="the seed to begin with")
    parser.add_argument("--minutes", type=float, default=30, help="begin no seed after these")
    parser.add_argument("--length", type=int, default=40, help="how many statements a seed draws")
    parser.add_argument("--whole", action="store_true", help="show findings without shrinking")
    options = parser.parse_args()
    settings = {**_SETTINGS, "spark.jars": os.environ["ICEBERG_JAR"]}
    spark = local_session("statements", shuffle_partitions=1, extra_conf=settings)
    until, tally, findings, seeds = time.monotonic() + 60 * options.minutes, Tally(), 0, 0
    for seed in [options.seed] if options.seed is not None else count(options.first):
        for found in played(spark, seed, options.length, tally):
            findings += 1
            if options.seed is None:
                _show(seed, replace(found, statements=found.statements[-1:]))
            else:
                _show(seed, found if options.whole else shrunk(spark, found))
        seeds += 1
        if time.monotonic() > until:
            break
    _tell(tally, seeds, findings)
    return 1 if findings else 0


def _show(seed: int, found: Finding) -> None:
    print(";\n".join(found.statements))
    print(f"FOUND {found.how}")
    print(f'  again: make statements ARGS="--seed {seed}"', flush=True)


def _tell(tally: Tally, seeds: int, findings: int) -> None:
    print(
        f"{tally.statements:,} statements of {seeds:,} seeds, {tally.refused:,} that both refuse, "
        f"{findings} differences"
    )
    for why, times in tally.allowed.most_common():
        print(f"{times:>6} times: {why}")


if __name__ == "__main__":
    sys.exit(main())
