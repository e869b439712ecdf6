"""What the Spark benchmark measures with; what it compares is in `spark/test_bench_systems`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import spark, spark_data
from benchmarks.harness import Report
from benchmarks.spark_worker import busy_ms, spent_ms


def test_events_are_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "other"):
        spark_data.write_events(tmp_path / name, 10, 1000)
    one, other = (pq.read_table(tmp_path / name) for name in ("one", "other"))
    assert one.equals(other)
    assert one["id"].to_pylist() == list(range(10, 1010))
    assert pc.count_distinct(one["day"]).as_py() == spark_data.DAYS


def test_a_merge_brings_as_many_new_rows_as_there_are_old_ones(tmp_path: Path) -> None:
    spark_data.write_merge(tmp_path / "merged", 10_000, seed=7)
    ids = pq.read_table(tmp_path / "merged")["id"].to_numpy()
    assert len(set(ids.tolist())) == len(ids) == 10_000 // spark_data.SHARE
    assert (ids < 10_000).sum() == (ids >= 10_000).sum()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells of processes")
def test_the_time_of_a_process_counts_what_it_started() -> None:
    before = busy_ms()
    loop = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", loop], check=True)
    assert spent_ms(before) >= 250


def test_without_jars_it_says_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ICEBERG_JAR", raising=False)
    monkeypatch.setenv("DELTA_JARS", "delta.jar")
    with pytest.raises(SystemExit, match="no jars of Iceberg Java: run `make bench-spark`"):
        spark.measure(Report("spark"), True)
