"""DELETE, UPDATE and MERGE through a lake on Spark: what they look at, refuse and leave behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from icetree.spark import SparkLake, local
from tests.planted import planted
from tests.spark.settings import setting
from tests.table.foreign_names import rename_as_others_may


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("lake"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def test_a_row_that_matches_twice_is_refused_and_no_file_is_left(lake: SparkLake) -> None:
    table = lake.write("db.twice", lake.spark.range(5)).create()
    source = lake.spark.createDataFrame([(1,), (1,)], "id long")
    files = {info.location for info in table.files.store.list(table.location)}
    merge = lake.merge("db.twice", source, "target.id = source.id")
    with pytest.raises(InvalidInput, match="matches more than one row of the source"):
        merge.when_matched_update({"id": "target.id + 1"}).run()
    assert {info.location for info in table.files.store.list(table.location)} == files


def test_a_merge_looks_only_at_files_that_may_match(lake: SparkLake) -> None:
    rows = lake.spark.range(0, 30, 1, 1).selectExpr("id", "id DIV 10 AS p", "0 AS n")
    table = lake.write("db.looked", rows).create(partition_by=["p"])
    source = lake.spark.createDataFrame([(12, 1), (99, 1)], "id long, p long")
    merge = lake.merge(
        "db.looked", source, "target.p = source.p AND target.p = 1 AND target.id = source.id"
    )
    merge.when_matched_update({"n": "7"}).when_not_matched_insert(
        {"id": "source.id", "p": "source.p"}
    )
    assert "p" in str(merge._pruning(table.schema))
    merge.run()
    found = {row.id: (row.p, row.n) for row in lake.read("db.looked").collect()}
    assert len(found) == 31
    assert (found[12], found[99], found[13]) == ((1, 7), (1, None), (1, 0))
    before = table.snapshot()
    assert before is not None
    assert table.refresh().scan("p = 1").plan().metrics.dvs == 1


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_row_with_several_partners_that_does_not_change_stays_once(
    lake: SparkLake, mode: str
) -> None:
    name = f"db.partners_{mode[:4]}"
    table = lake.write(name, lake.spark.range(0, 4, 1, 1)).create(
        properties={"write.merge.mode": mode}
    )
    source = lake.spark.createDataFrame(
        [(1, False), (1, True), (2, False), (2, False)], "k long, go boolean"
    )
    merge = lake.merge(name, source, "target.id = source.k")
    merge.when_matched_update({"id": "target.id + 10"}, "source.go").run()
    assert sorted(row.id for row in lake.read(name).collect()) == [0, 2, 3, 11]
    assert table.refresh().verify(deep=True).findings == ()


def test_long_work_is_named_in_spark_and_logged(
    lake: SparkLake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.write("db.told", lake.spark.range(4)).create()
    jobs = []
    context = lake.spark.sparkContext
    name_jobs = context.setLocalProperty
    monkeypatch.setattr(context, "setLocalProperty", lambda *it: (jobs.append(it), name_jobs(*it)))
    with caplog.at_level("INFO", logger="icetree.spark.progress"):
        lake.delete("db.told", "id = 1")
        with pytest.raises(InvalidInput):
            lake.write("db.told", lake.spark.range(1)).overwrite("id = 2", strict=True)
    assert jobs[0] == ("spark.job.description", "icetree: DELETE from db.told")
    assert jobs[-1][1] is None
    done, failed = caplog.messages
    assert done.startswith("DELETE from db.told took ")
    assert failed.startswith("overwrite of db.told where id = 2 failed after ")


def test_positions_come_as_bitmaps_where_there_may_be_too_many(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icetree.spark.rows.marks._FEW_ROWS", 0)
    gone = "id % 64 IN (0, 31, 63) OR id BETWEEN 500 AND 800"
    lake.write("db.many", lake.spark.range(0, 3000, 1, 3)).create()
    lake.delete("db.many", gone)
    left = lake.spark.range(3000).where(f"NOT ({gone})")
    assert sorted(r.id for r in lake.read("db.many").collect()) == [r.id for r in left.collect()]
    lake.delete("db.many", "id < 0")
    assert lake.read("db.many").count() == left.count()
    lake.delete("db.many")
    assert lake.read("db.many").count() == 0


def test_a_statement_cannot_speak_of_lineage_that_is_not_known_yet(lake: SparkLake) -> None:
    spark = lake.spark
    lake.write("db.unknown_lineage", spark.range(5)).create()
    before = lake.table("db.unknown_lineage").metadata.current_snapshot_id
    source = spark.sql("SELECT id AS rid FROM range(5)")
    with pytest.raises(InvalidInput, match="_row_id"):
        lake.update("db.unknown_lineage", {"id": "_row_id + 1"}, "id = 1")
    for on in ("target._row_id = source.rid", "target.id = source.rid AND target._row_id > 1"):
        merge = lake.merge("db.unknown_lineage", source, on).when_not_matched_by_source_delete()
        with pytest.raises(InvalidInput, match="_row_id"):
            merge.run()
    assert lake.table("db.unknown_lineage").metadata.current_snapshot_id == before


def test_a_row_with_a_match_is_not_inserted_even_if_no_clause_applies(lake: SparkLake) -> None:
    spark = lake.spark
    lake.write("db.wide", spark.sql("SELECT id, id * 2 AS a, 'x' AS b FROM range(10)")).create()
    new = spark.sql("SELECT id, -id AS a, 'y' AS b FROM range(8, 12)")
    merge = lake.merge("db.wide", new, ["id"])
    merge.when_matched_update_all("source.id <> 9").when_not_matched_insert_all().run()
    assert sorted(lake.read("db.wide", "id >= 7").toArrow().to_pylist(), key=repr) == [
        {"id": 10, "a": -10, "b": "y"},
        {"id": 11, "a": -11, "b": "y"},
        {"id": 7, "a": 14, "b": "x"},
        {"id": 8, "a": -8, "b": "y"},
        {"id": 9, "a": 18, "b": "x"},
    ]


def test_deleting_everything_keeps_to_the_isolation_of_deletes(lake: SparkLake) -> None:
    lake.write("db.isolated", lake.spark.range(2)).create()
    planted(lake.table("db.isolated"), {"write.delete.isolation-level": "none"})
    for condition in (None, "id = 1"):
        with pytest.raises(InvalidInput, match="isolation"):
            lake.delete("db.isolated", condition)
    assert lake.read("db.isolated").count() == 2


def test_a_column_that_a_table_lacks_is_set_in_none(lake: SparkLake) -> None:
    rows = lake.spark.createDataFrame([(1, "a")], "id long, v string")
    table = lake.write("db.lacking", rows).create()
    before = table.refresh().metadata
    merge = lake.merge("db.lacking", rows, ["id"])
    with pytest.raises(InvalidInput, match="no column 'vv' to set; there are: id, v; did you mean"):
        merge.when_matched_update({"vv": "source.v"}).run()
    with pytest.raises(InvalidInput, match="no column 'vv' to set"):
        lake.merge("db.lacking", rows, ["id"]).when_not_matched_insert({"vv": "source.v"}).run()
    with pytest.raises(InvalidInput, match="has no column 'more'"):
        lake.upsert("db.lacking", rows.selectExpr("*", "1 AS more"), ["id"])
    assert table.refresh().metadata == before


def test_columns_whose_names_differ_in_case_alone_are_set_by_themselves(lake: SparkLake) -> None:
    rows = lake.spark.createDataFrame([(1, 2, 3)], "id long, a long, b long")
    rename_as_others_may(lake.write("db.cased", rows).create(), {"b": "A"})
    source = lake.spark.createDataFrame([(1, 7)], "id long, a long")
    with setting(lake.spark, "spark.sql.caseSensitive", "true"):
        merge = lake.merge("db.cased", source, ["id"])
        merge.when_matched_update({"A": "source.a"}).run()
        assert lake.read("db.cased").collect() == [(1, 2, 7)]
        merge = lake.merge("db.cased", source, ["id"])
        with pytest.raises(InvalidInput, match="the source has no column 'A'"):
            merge.when_matched_update_all().run()
