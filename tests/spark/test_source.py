"""Tables as a data source in Python: read, filter, write, commit once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, UUIDType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as pushed

from icetree.errors import CommitUnknown, InvalidInput
from icetree.spark import SparkLake, local
from icetree.spark.source import register
from icetree.spark.source.filters import filter_from
from icetree.spark.source.options import options, options_of
from icetree.spark.source.write import TableWriter
from icetree.table import transaction
from icetree.table.commit.commit import Committed, commit
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.table.changing import delete_equal, delete_rows, now

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
    NestedField(3, "x", DoubleType(), required=False),
    NestedField(4, "key", UUIDType(), required=False),
    identifier_field_ids=[1],
)
_ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("v", pa.string()),
        ("x", pa.float64()),
        ("key", pa.binary(16)),
    ]
)

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    lake = local(tmp_path, spark=spark)
    lake.create_namespace("db")
    register(spark)
    yield lake
    lake.close()


def _table(lake: SparkLake, **how: Any) -> Table:
    return lake.create_table("db.t", _SCHEMA, **how)


def _some(*ids: int) -> pa.Table:
    rows = [{"id": id, "v": f"v{id}", "x": id / 2, "key": bytes([id]) * 16} for id in ids]
    return pa.Table.from_pylist(rows, _ARROW)


def _options(lake: SparkLake, **more: Any) -> dict[str, Any]:
    return {**options_of(lake, "db.t"), **more}


def _read(lake: SparkLake, **more: Any) -> DataFrame:
    given = {name.replace("_", "-"): value for name, value in more.items()}
    return lake.spark.read.format("icetree").options(**_options(lake, **given)).load()


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())


def test_a_table_is_read_without_what_is_deleted_in_it(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(*range(6)))
    delete_rows(table, [1])
    delete_equal(table, [2], add=_some(7))
    rows = _read(lake)
    assert rows.columns == ["id", "v", "x", "key"]
    assert _ids(rows) == [0, 3, 4, 5, 7]
    [row] = rows.where("id = 7").collect()
    assert row.asDict() == {
        "id": 7,
        "v": "v7",
        "x": 3.5,
        "key": "07070707-0707-0707-0707-070707070707",
    }


def test_options_say_which_snapshot_rows_and_columns(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(1, 2))
    first = now(table)
    then = time_of(table.metadata.last_updated_ms).isoformat()
    table.create_tag("old", at=first)
    table.append(_some(3))
    assert _ids(_read(lake, at=first)) == [1, 2]
    assert _ids(_read(lake, at="old")) == [1, 2]
    assert _ids(_read(lake, at="main")) == [1, 2, 3]
    assert _ids(_read(lake, at=then)) == [1, 2]
    assert _ids(_read(lake, where="id > 1")) == [2, 3]
    assert _read(lake, columns="v,id").columns == ["v", "id"]


def test_an_option_that_is_not_known_is_refused(lake: SparkLake) -> None:
    _table(lake)
    with pytest.raises(PySparkException, match="option 'snapshotid' is not known"):
        _read(lake, snapshotid=1)
    for name, instead in (
        *(("tag", "at"), ("as-of-timestamp", "at"), ("filter", "where")),
        *(("name", "path"), ("end-snapshot-id", "upto")),
    ):
        with pytest.raises(InvalidInput, match=f"say it with option '{instead}'"):
            options({name: "a"})
    with pytest.raises(InvalidInput, match="which table"):
        _ = options({}).table
    connected = SparkLake(lake.spark, lake)
    with pytest.raises(InvalidInput, match="open it by its catalog's address"):
        options_of(connected, "db.t")


_FILTERS = {
    "id > 10 and v != 'v11'": [12],
    "id in (1, 12) or v is null": [1, 12],
    "x >= 5.5": [11, 12],
    "not v like 'v1%'": [2, 3],
    "key = '03030303-0303-0303-0303-030303030303'": [3],
}


def test_a_dataframe_is_good_for_many_filters(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(1, 2, 3))
    table.append(_some(11, 12))
    rows = _read(lake)
    assert {text: _ids(rows.where(text)) for text in _FILTERS} == _FILTERS


def test_filters_that_mean_the_same_are_pushed_down_where_asked_for(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(1, 2, 3))
    table.append(_some(11, 12))
    # Without this file only a query that skips it can succeed.
    first = table.scan("id = 1").plan().tasks["location"][0].as_py()
    held = Path(table.location, first)
    held.rename(held.with_suffix(".away"))
    lake.spark.conf.set(_PUSHDOWN, "true")
    try:
        assert _ids(_read(lake, push_filters="true").where("id > 10 and v != 'v11'")) == [12]
    finally:
        lake.spark.conf.unset(_PUSHDOWN)
    assert _ids(_read(lake, where="id > 10")) == [11, 12]
    held.with_suffix(".away").rename(held)


def test_a_filter_that_means_something_else_to_spark_is_left_to_it() -> None:
    taken = filter_from(pushed.GreaterThan(("id",), 3), _SCHEMA)
    assert str(taken) == "GreaterThan(term=Reference(name='id'), literal=LongLiteral(3))"
    assert filter_from(pushed.IsNull(("x",)), _SCHEMA) is not None
    for left in (
        pushed.GreaterThan(("x",), 3.0),  # a NaN is above all numbers there
        pushed.EqualTo(("key",), "03030303-0303-0303-0303-030303030303"),  # text there
        pushed.In(("id",), (1, None)),
        pushed.EqualNullSafe(("id",), 1),
        pushed.StringContains(("v",), "a"),
        pushed.EqualTo(("nothing",), 1),
    ):
        assert filter_from(left, _SCHEMA) is None, left


def test_rows_are_appended_and_replaced_as_one_snapshot(lake: SparkLake) -> None:
    table = _table(lake)
    rows = lake.spark.createDataFrame(
        [(id, f"v{id}", None, str(id) * 8 + "-0000-0000-0000-" + "0" * 12) for id in range(4)],
        "id long, v string, x double, key string",
    )
    writer = rows.repartition(2).write.format("icetree").options(**_options(lake))
    writer.mode("append").save()
    assert len(list(table.refresh().history())) == 1
    assert _ids(lake.read("db.t")) == [0, 1, 2, 3]
    assert str(table.scan("id = 3").to_arrow()["key"][0]) == "33333333-0000-0000-0000-000000000000"
    few = rows.where("id = 2").write.format("icetree").options(**_options(lake))
    few.mode("overwrite").save()
    assert _ids(lake.read("db.t")) == [2]
    assert len(list(table.refresh().history())) == 2


def test_changes_are_read_as_the_feed_tells_them(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(1, 2))
    first = now(table)
    delete_rows(table, [1])
    delete_equal(table, [2], add=_some(7))
    last = now(table)
    table.update({"v": "'new'"}, "id = 7")
    for given in ({"since": first, "upto": last}, {"since": last}, {"upto": first}, {}):
        for images in (True, False):
            rows = _read(lake, changes="true", columns="v,id", images=str(images).lower(), **given)
            told = sorted(tuple(row) for row in rows.collect())
            here = table.changes(**given).to_arrow(images=images, columns=["v", "id"])
            assert told == sorted(tuple(row.values()) for row in here.to_pylist())
    rows = _read(lake, changes="true", since=first, upto=last, columns="id")
    told = sorted(tuple(row)[:2] for row in rows.collect())
    assert told == [(1, "DELETE"), (2, "DELETE"), (7, "INSERT")]


def test_an_option_that_means_nothing_to_what_is_done_is_refused(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(1, 2))
    with pytest.raises(PySparkException, match="option 'since' means nothing to reading a snap"):
        _read(lake, since=now(table)).collect()
    with pytest.raises(PySparkException, match="say option 'upto'"):
        _read(lake, changes="true", at=now(table)).collect()
    rows = lake.spark.createDataFrame([(9, "v")], "id long, v string")
    writer = rows.write.format("icetree").options(**_options(lake, since="main"))
    with pytest.raises(PySparkException, match="option 'since' means nothing to overwriting"):
        writer.mode("overwrite").save()
    assert _ids(lake.read("db.t")) == [1, 2]


def test_a_commit_with_a_key_is_made_once(lake: SparkLake) -> None:
    table = _table(lake)
    rows = lake.spark.createDataFrame([(1, "a")], "id long, v string")
    for _ in range(2):
        writer = rows.write.format("icetree").options(**_options(lake, key="load 7"))
        writer.mode("append").save()
    assert _ids(lake.read("db.t")) == [1]
    assert len(list(table.refresh().history())) == 1


def test_rows_that_match_are_replaced(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some(1, 2, 3))
    rows = lake.spark.createDataFrame([(9, "v9"), (3, "new")], "id long, v string")
    writer = rows.write.format("icetree").options(**_options(lake, where="id >= 3"))
    writer.mode("overwrite").save()
    assert _ids(lake.read("db.t")) == [1, 2, 3, 9]
    with pytest.raises(PySparkException, match="a new row does not match id > 3"):
        rows.write.format("icetree").options(**_options(lake, where="id > 3")).mode(
            "overwrite"
        ).save()
    assert _ids(lake.read("db.t")) == [1, 2, 3, 9]


def test_partitions_that_are_written_to_are_replaced(lake: SparkLake) -> None:
    table = _table(lake, partition_by=["v"])
    table.append(_some(1, 2))
    rows = lake.spark.createDataFrame([(9, "v2")], "id long, v string")
    writer = rows.write.format("icetree").options(**_options(lake, **{"overwrite-mode": "dynamic"}))
    writer.mode("overwrite").save()
    assert _ids(lake.read("db.t")) == [1, 9]


def test_a_write_that_fails_commits_nothing(lake: SparkLake) -> None:
    table = _table(lake)
    bad = lake.spark.range(0, 4, numPartitions=2).selectExpr(
        "id", "if(id = 3, raise_error('no more'), 'fine') as v"
    )
    with pytest.raises(PySparkException, match="no more"):
        bad.write.format("icetree").options(**_options(lake)).mode("append").save()
    assert table.refresh().snapshot() is None


def test_files_of_a_write_that_is_given_up_are_deleted(lake: SparkLake, tmp_path: Path) -> None:
    _table(lake)
    writer = TableWriter(options(_options(lake)), overwrite=False)
    done = writer.write(iter(_some(1, 2).to_batches()))
    assert len(list(tmp_path.rglob("data/*.parquet"))) == 1
    writer.abort([done, None])
    assert not list(tmp_path.rglob("data/*.parquet"))


def test_files_of_a_job_that_failed_are_deleted(lake: SparkLake, tmp_path: Path) -> None:
    _table(lake)

    def fail_late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch["id"].to_pylist() == [1]:
                time.sleep(3)  # the other task is done by then
                raise ValueError("no more")
            yield batch

    rows = lake.spark.range(0, 2, numPartitions=2).mapInArrow(fail_late, "id long")
    with pytest.raises(PySparkException, match="no more"):
        rows.write.format("icetree").options(**_options(lake)).mode("append").save()
    assert not list(tmp_path.rglob("data/*.parquet"))


def test_files_of_a_commit_that_may_have_landed_stay(
    lake: SparkLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(lake)
    writer = TableWriter(options(_options(lake)), overwrite=False)
    done = writer.write(iter(_some(1).to_batches()))

    def lands_unheard(*given: Any) -> Committed:
        commit(*given)
        raise CommitUnknown("nobody answers")

    monkeypatch.setattr(transaction, "commit", lands_unheard)
    with pytest.raises(CommitUnknown):
        writer.commit([done])
    # Spark tells a writer to give up whenever its commit failed, be it known to have failed or not.
    writer.abort([done])
    assert len(list(tmp_path.rglob("data/*.parquet"))) == 1
    assert _ids(lake.read("db.t")) == [1]
