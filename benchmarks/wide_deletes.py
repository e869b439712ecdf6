"""What deleted rows cost in tables of many columns: a scan in CPU seconds of Java, with 5 % deleted.

`python -m benchmarks.wide_deletes 100 200 500` prints a line for each number of columns and way of
reading: all columns, and one of them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icetree.spark import SparkLake, local
from icetree.spark.read.internals import SETTING
from icetree.spark.session import BESIDE, local_session

_LIMIT = "spark.sql.codegen.maxFields"
#: Settings of each way of reading; a number is that of the table's columns and what comes beside them.
_WAYS = {
    "nothing deleted": {SETTING: "true", _LIMIT: "112"},
    "joined": {SETTING: "false", _LIMIT: "112"},
    "asked, limit 112": {SETTING: "true", _LIMIT: "112"},
    "asked, more": {SETTING: "true", _LIMIT: "{}"},
}
ROWS, TIMES = 60_000, 3


def main() -> None:
    """Measure for each number of columns that is given."""
    spark = local_session()
    with tempfile.TemporaryDirectory() as place:
        lake = local(Path(place), spark=spark)
        lake.create_namespace("db")
        for count in map(int, sys.argv[1:] or ("100", "200", "500")):
            _table(lake, count)
            for way, settings in _WAYS.items():
                for setting, value in settings.items():
                    spark.conf.set(setting, value.format(count + BESIDE))
                name = f"db.t{count}" + ("" if way == "nothing deleted" else "_d")
                rows = lake.read(name)
                every, one = _best(spark, rows), _best(spark, rows.select("c1"))
                print(
                    f"{count:4} columns, {way:16} all {every:6.2f} s, one {one:6.2f} s", flush=True
                )


def _table(lake: SparkLake, count: int) -> None:
    chance = np.random.default_rng(7)
    columns = {f"c{at}": pa.array(chance.integers(0, 1 << 40, ROWS)) for at in range(count)}
    rows = pa.table(columns | {"c0": pa.array(np.arange(ROWS))})
    for name in (f"db.t{count}", f"db.t{count}_d"):
        lake.create_table(name, [(each, "long") for each in rows.column_names]).append(rows)
    lake.delete(f"db.t{count}_d", "c0 % 20 = 3")


def _best(spark: SparkSession, rows: DataFrame) -> float:
    found = []
    for _ in range(TIMES):
        before = _cpu_seconds(spark)
        rows.write.format("noop").mode("overwrite").save()
        found.append(_cpu_seconds(spark) - before)
    return min(found)


def _cpu_seconds(spark: SparkSession) -> float:
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001
    told = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
