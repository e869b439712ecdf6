"""What `make bench-spark` compares is the same work: systems agree on the rows at every step."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import spark_data, spark_far
from benchmarks.plan_tables import open_lake
from benchmarks.spark_systems import FAR, Icetree, Parquet, SameFiles, System
from benchmarks.spark_worker import ids_of, rows_of_part
from icetree.spark import SparkLake
from tests.effort import usually

pytestmark = pytest.mark.usefixtures("lazily")

ROWS = 4000
MORE = 500


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    spark_data.write_events(folder / "events", 0, ROWS)
    spark_data.write_events(folder / "more", ROWS, MORE)
    spark_data.write_merge(folder / "merged", ROWS, seed=7)
    spark_data.write_many(folder / "many", 5)
    return folder


@pytest.fixture(params=[pytest.param(Parquet, marks=pytest.mark.long), Icetree])
def system(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> System:
    made: System = request.param(spark, tmp_path)
    return made


def ids(system: System, name: str = "t") -> list[int]:
    return sorted(row.id for row in system.table(name).select("id").collect())


def loaded(system: System, sources: Path, *, by_day: bool = False) -> System:
    system.create("t", by_day=by_day)
    system.append("t", str(sources / "events"))
    return system


@pytest.mark.parametrize("by_day", usually([False, True], True))
def test_what_was_appended_is_read(system: System, sources: Path, by_day: bool) -> None:
    loaded(system, sources, by_day=by_day).append("t", str(sources / "more"))
    assert ids(system) == list(range(ROWS + MORE))


def test_files_become_a_table_as_they_are(system: System, sources: Path) -> None:
    system.add_files("many", str(sources / "many"))
    assert ids(system, "many") == sorted(list(range(100)) * 5)


def test_rows_are_deleted_and_come_back_with_a_reset(
    spark: SparkSession, sources: Path, tmp_path: Path
) -> None:
    system = loaded(Icetree(spark, tmp_path), sources)
    system.keep("t")
    system.delete("t", "id % 100 = 51")
    assert ids(system) == [id for id in range(ROWS) if id % 100 != 51]
    system.reset("t")
    assert ids(system) == list(range(ROWS))


def test_a_merge_brings_half_a_share_of_new_rows(
    spark: SparkSession, sources: Path, tmp_path: Path
) -> None:
    system = loaded(Icetree(spark, tmp_path), sources)
    old = {row.id: row.note for row in system.table("t").collect()}
    system.merge("t", str(sources / "merged"))
    now = {row.id: row.note for row in system.table("t").collect()}
    assert len(now.keys() - old.keys()) == ROWS // spark_data.SHARE // 2
    changed = {id for id in old if old[id] != now[id]}
    assert changed == set(range(7, ROWS, 2 * spark_data.SHARE))


def test_plain_spark_reads_the_files_that_we_wrote(
    spark: SparkSession, sources: Path, tmp_path: Path
) -> None:
    ours = loaded(Icetree(spark, tmp_path), sources)
    assert ids(SameFiles(spark, ours.folder)) == ids(ours)


def test_a_wide_table_has_a_hundred_columns(system: System, tmp_path: Path) -> None:
    spark_data.write_wide(tmp_path / "wide", 50)
    system.create("w", columns=spark_data.WIDE)
    system.append("w", str(tmp_path / "wide"))
    assert len(system.table("w").columns) == 100
    assert ids(system, "w") == list(range(50))


def test_a_made_up_table_has_the_files_that_a_scan_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark_far.build(tmp_path, FAR, 1000, 20)
    lake = SparkLake(spark, open_lake(tmp_path))
    where = spark_far.condition(1000, 20)
    assert lake.read(f"db.{FAR}").where(where).count() == 20 * spark_far.ROWS


def test_a_star_join_finds_the_rows_of_a_part(spark: SparkSession, tmp_path: Path) -> None:
    spark_far.build(tmp_path / "lake", FAR, 100, 10, parts=True)
    spark_far.write_parts(tmp_path / "parts", 100)
    system = Icetree(spark, tmp_path)
    rows = system.open_far(str(tmp_path / "lake"))
    found = rows_of_part(rows, system.source(str(tmp_path / "parts")), spark_far.part_name(5))
    assert ids_of(found) == ids_of(rows.where(spark_far.condition(100, 10)))
    assert found.count() == 10 * spark_far.ROWS


def test_rows_are_deleted_by_a_file_of_keys(
    spark: SparkSession, sources: Path, tmp_path: Path
) -> None:
    system = loaded(Icetree(spark, tmp_path), sources)
    spark_data.write_keys(tmp_path / "keys.parquet", ROWS, seed=52)
    system.delete_keys("t", str(tmp_path / "keys.parquet"))
    assert ids(system) == [id for id in range(ROWS) if id % 100 != 52]
