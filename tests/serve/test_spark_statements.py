"""Statements that seeds draw, by icetree and by stock Iceberg Java on one Spark: a short `make statements`."""

from __future__ import annotations

from pathlib import Path

from tests.serve.stock_spark import ran

#: Runs in the session that has Iceberg Java.
PROGRAM = """
from pyspark.sql import SparkSession

from campaigns.statements.run import Tally, played

spark, tally = SparkSession.builder.getOrCreate(), Tally()
found = [each for seed in {seeds} for each in played(spark, seed, {length}, tally)]
assert not found, found
assert tally.statements == tally.expected, tally
"""


def test_statements_of_a_seed_lead_to_the_same_rows_as_with_iceberg_java(tmp_path: Path) -> None:
    ran(tmp_path, PROGRAM.format(seeds=(1, 2), length=20), [])
