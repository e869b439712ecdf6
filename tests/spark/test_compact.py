"""Compaction with the work on executors: the same rows with the same lineage, in fewer files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.errors import CorruptTable, InvalidInput
from icetree.spark import local
from icetree.spark.lake import SparkLake
from icetree.table.table import Table


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SparkLake:
    """A table of two partitions in many small files, with rows deleted and changed."""
    made = local(tmp_path, spark=spark)
    made.create_namespace("db", exist_ok=True)
    schema = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("s", pa.string())])
    table = made.create_table("db.t", schema, partition_by="k")
    for number in range(6):
        ids = [10 * number + at for at in range(10)]
        table.append(
            pa.table({"id": ids, "k": [id % 2 for id in ids], "s": [str(id) for id in ids]})
        )
    table.delete("id in (3, 14, 25)")
    table.update({"s": "'new'"}, "id = 31")
    return made


def _rows(table: Table) -> list[dict[str, Any]]:
    columns = ["id", "k", "s", "_row_id", "_last_updated_sequence_number"]
    found = table.refresh().scan(columns=columns).to_arrow().sort_by("id").to_pylist()
    return list(found)


def _files(table: Table) -> int:
    return int(table.refresh().scan().plan().tasks.num_rows)


@pytest.mark.parametrize("order_by", [None, "id desc", "zorder(id, s)"])
def test_rows_and_lineage_stay_in_fewer_files(lake: SparkLake, order_by: str | None) -> None:
    table = lake.table("db.t")
    before, count = _rows(table), _files(table)
    done = lake.rewrite_data_files("db.t", order_by=order_by)
    assert done.rewritten_data_files_count == count
    assert done.added_data_files_count == _files(table) == 2
    assert _rows(table) == before
    assert table.verify(deep=True).is_clean
    assert lake.read("db.t").count() == len(before)


def test_a_group_is_a_task_of_its_own(lake: SparkLake) -> None:
    table = lake.table("db.t")
    before = _rows(table)
    size = table.scan().plan().tasks["file_size_in_bytes"][0].as_py()
    many = lake.rewrite_data_files(
        "db.t", options={"max-file-group-size-bytes": 3 * size, "rewrite-all": True}
    )
    assert many.added_data_files_count >= 4
    assert _rows(table) == before


def test_what_goes_wrong_on_an_executor_is_our_error_and_leaves_nothing(lake: SparkLake) -> None:
    table = lake.table("db.t")
    [lost, *_] = table.scan().plan().tasks["location"].to_pylist()
    Path(f"{table.location}/{lost}").write_bytes(b"no Parquet")
    stored = {*Path(table.location).rglob("*.parquet")}
    with pytest.raises(CorruptTable):
        lake.rewrite_data_files("db.t")
    assert {*Path(table.location).rglob("*.parquet")} == stored


def test_a_dry_run_and_bad_options_start_no_job(lake: SparkLake) -> None:
    would = lake.rewrite_data_files("db.t", dry_run=True)
    assert would.rewritten_data_files_count == _files(lake.table("db.t"))
    with pytest.raises(InvalidInput, match="no option"):
        lake.rewrite_data_files("db.t", options={"target": 1})
