"""Procedures that take in what others wrote: files, folders, tables of Spark's own, metadata."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.errors import InvalidInput, NotFound
from tests.spark.calling import told
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(three_snapshots: SqlLake) -> SqlLake:
    """The table that is called upon."""
    return three_snapshots


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of Parquet files in two partitions."""
    folder = tmp_path / "their files"
    for name, id in (("a b", 11), ("c", 12)):
        (folder / f"name={name}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [id]}), folder / f"name={name}" / "x.parquet")
    return folder


def test_files_of_a_folder_are_added_where_they_are(sql: SqlLake, theirs: Path) -> None:
    sql("CREATE TABLE parted (id BIGINT, name STRING) PARTITIONED BY (name)")
    source = f"source_table => '`parquet`.`{theirs}`'"
    only = f"CALL system.add_files(table => 'db.parted', {source}, partition_filter => map('name', 'c'))"
    assert told(sql, only) == [{"added_files_count": 1, "changed_partition_count": None}]
    assert sql("SELECT * FROM parted") == [(12, "c")]
    for more in ("", ", dry_run => true"):
        with pytest.raises(InvalidInput, match=r"x\.parquet is in the table already"):
            sql(f"CALL system.add_files(table => 'db.parted', {source}{more})")
    assert sql("SELECT * FROM parted") == [(12, "c")]
    with pytest.raises(InvalidInput, match="no folder nam=… in its path; did you mean 'name'"):
        sql(only.replace("map('name'", "map('nam'"))
    with pytest.raises(NotFound, match="no files to add"):
        sql(only.replace("'c'", "'d'"))


def test_files_of_a_table_of_sparks_own_are_added(sql: SqlLake, theirs: Path) -> None:
    spark = sql.lake.spark
    spark.read.parquet(str(theirs)).createOrReplaceTempView("seen")
    spark.sql(
        "CREATE TABLE default.theirs (id BIGINT, name STRING) USING parquet PARTITIONED BY (name) "
        f"LOCATION '{theirs}'"
    )
    try:
        spark.sql("MSCK REPAIR TABLE default.theirs")
        sql("CREATE TABLE parted (id BIGINT, name STRING) PARTITIONED BY (name)")
        assert sql("CALL system.add_files('db.parted', 'default.theirs')") == [(2, None)]
        assert sql("SELECT * FROM parted") == [(11, "a b"), (12, "c")]
        with pytest.raises(InvalidInput, match="seen is a view"):
            sql("CALL system.add_files('db.parted', 'seen')")
    finally:
        spark.sql("DROP TABLE default.theirs")
        spark.catalog.dropTempView("seen")


def test_a_folder_and_a_table_of_sparks_own_are_taken_over(sql: SqlLake, tmp_path: Path) -> None:
    spark = sql.lake.spark
    rows = "SELECT id, concat('0', id % 3) AS part, timestamp_millis(id) AS at FROM range(6)"
    spark.sql(rows).coalesce(1).write.partitionBy("part").parquet(str(tmp_path / "theirs"))
    spark.sql(
        "CREATE TABLE default.theirs (id BIGINT, at TIMESTAMP, part STRING) USING parquet "
        f"PARTITIONED BY (part) LOCATION '{tmp_path / 'theirs'}'"
    )
    want = [
        tuple(row) for row in spark.sql(f"SELECT id, at, part FROM ({rows}) ORDER BY id").collect()
    ]
    try:
        spark.sql("MSCK REPAIR TABLE default.theirs")
        folder = f"'`parquet`.`{tmp_path / 'theirs'}`'"
        look = f"source_table => {folder}, table => 'db.seen', dry_run => true"
        [would] = told(sql, f"CALL system.snapshot({look})")
        assert not sql.lake.table_exists("db.seen")
        [told_of] = told(sql, f"CALL system.snapshot({folder}, 'db.seen')")
        assert would == told_of
        assert told_of == {"imported_files_count": 3}
        assert sql("SELECT id, part FROM seen ORDER BY id") == [(id, id % 3) for id in range(6)]
        sql("CALL system.snapshot(source_table => 'default.theirs', table => 'db.shared', "
            f"location => '{tmp_path / 'shared'}', properties => map('a', 'b'))")  # fmt: skip
        assert sql("SELECT id, at, part FROM shared ORDER BY id") == want
        assert sql.lake.table("db.shared").properties["a"] == "b"
        sql("DROP TABLE shared PURGE")
        sql.lake.create_namespace("default", exist_ok=True)
        would = "CALL system.migrate(table => 'spark_catalog.default.theirs', dry_run => true)"
        assert told(sql, would) == [{"migrated_files_count": 3}]
        assert not sql.lake.table_exists("default.theirs")
        [told_of] = told(sql, "CALL system.migrate('spark_catalog.default.theirs')")
        assert told_of == {"migrated_files_count": 3}
        assert sql("SELECT id, at, part FROM default.theirs ORDER BY id") == want
        assert sql.lake.table("default.theirs").verify(deep=True).findings == ()
        assert not spark.catalog.tableExists("spark_catalog.default.theirs")
        assert spark.table("default.theirs_BACKUP_").count() == 6
        spark.sql("CREATE TABLE default.managed USING parquet AS SELECT 1 AS id")
        with pytest.raises(InvalidInput, match="managed by Spark"):
            sql("CALL system.migrate('spark_catalog.default.managed')")
    finally:
        for name in ("theirs", "theirs_BACKUP_", "managed"):
            spark.sql(f"DROP TABLE IF EXISTS spark_catalog.default.{name}")


def test_a_table_gets_a_name_by_its_metadata(sql: SqlLake) -> None:
    table = sql.lake.table("db.t")
    at, current = table.state.metadata_location, table.metadata.current_snapshot_id
    assert told(sql, f"CALL system.register_table('db.again', '{at}')") == [
        {"current_snapshot_id": current, "total_records_count": 3, "total_data_files_count": 3}
    ]
    assert sql("SELECT count(*) FROM again") == [(3,)]
