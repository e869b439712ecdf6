"""Statements that a seed draws, by icetree and by stock Iceberg Java on one Spark: a short `make statements`."""

from __future__ import annotations

from pathlib import Path

from tests.serve.stock_spark import ran

SEED, LENGTH = 103, 14
#: Runs where Iceberg Java is.
PROGRAM = f"""
from pyspark.sql import SparkSession

from campaigns.statements.run import Tally, played

tally = Tally()
found = list(played(SparkSession.builder.getOrCreate(), {SEED}, {LENGTH}, tally))
assert not found, found
assert tally.statements == {LENGTH}, tally
"""


def test_statements_of_a_seed_lead_to_the_same_rows_as_with_iceberg_java(tmp_path: Path) -> None:
    ran(tmp_path, PROGRAM, [])
