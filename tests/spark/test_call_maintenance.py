"""CALL: procedures of maintenance, and what they answer with."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.spark import progress
from tests.spark.calling import ids, rows, told
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(three_snapshots: SqlLake) -> SqlLake:
    """The table that is called upon."""
    return three_snapshots


def test_snapshots_are_expired_by_age_by_number_and_by_id(sql: SqlLake) -> None:
    first, second, last = ids(sql)
    plan = (
        "CALL system.expire_snapshots(table => 'db.t', snapshot_ids => array({}), dry_run => true)"
    )
    [would] = told(sql, plan.format(first))
    assert list(would) == [
        "deleted_data_files_count",
        "deleted_position_delete_files_count",
        "deleted_equality_delete_files_count",
        "deleted_manifest_files_count",
        "deleted_manifest_lists_count",
        "deleted_statistics_files_count",
    ]
    assert ids(sql) == [first, second, last]
    [done] = told(sql, plan.format(first).replace("true", "false"))
    assert done == would
    assert done["deleted_manifest_lists_count"] == 1
    assert ids(sql) == [second, last]
    sql("CALL system.expire_snapshots('db.t', TIMESTAMP '2001-01-01 00:00:00', 1, 4, true)")
    assert ids(sql) == [second, last]
    sql("ALTER TABLE t ADD COLUMN more INT")
    sql("INSERT INTO t VALUES (4, 'n4', 4)")
    assert len(sql.lake.table("db.t").metadata.schemas) == 2
    sql("""CALL system.expire_snapshots(
        table => 'db.t', older_than => current_timestamp() + INTERVAL 1 DAY, retain_last => 1,
        clean_expired_metadata => true
    )""")
    assert len(ids(sql)) == 1
    assert len(sql.lake.table("db.t").metadata.schemas) == 1
    assert rows(sql) == [1, 2, 3, 4]


def test_orphan_files_are_told_each_in_a_row_and_removed(sql: SqlLake) -> None:
    orphan = Path(sql.lake.table("db.t").location.removeprefix("file://"), "data", "left.parquet")
    orphan.write_bytes(b"nothing")
    find = "CALL system.remove_orphan_files(table => 'db.t', older_than => {}, force => true, dry_run => {})"
    soon = "current_timestamp() + INTERVAL 1 MINUTE"
    assert [Path(name).name for [name] in sql(find.format(soon, "true"))] == ["left.parquet"]
    assert sql(find.format("TIMESTAMP '2001-01-01'", "false")) == []
    assert orphan.exists()
    assert len(sql(find.format(soon, "false"))) == 1
    assert not orphan.exists()
    assert rows(sql) == [1, 2, 3]


def test_manifests_are_rewritten_by_the_columns_that_are_named(sql: SqlLake) -> None:
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "2"}
    sql.lake.table("db.t").set_properties(small)
    for number in (6, 5, 4):
        sql.lake.append("db.t", pa.table({"id": [number], "name": ["n"]}))
    call = "CALL system.rewrite_manifests(table => 'db.t', use_caching => true, sort_by => array('id'))"
    [would] = told(sql, call.replace("'id')", "'id'), dry_run => true"))
    assert list(would) == ["rewritten_manifests_count", "added_manifests_count"]
    assert told(sql, call) == [would]
    assert rows(sql) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(InvalidInput, match="nothere"):
        sql("CALL system.rewrite_manifests(table => 'db.t', sort_by => array('nothere'))")


def test_data_files_are_compacted_as_strategy_options_and_condition_say(sql: SqlLake) -> None:
    [done] = told(
        sql,
        """CALL system.rewrite_data_files(
            table => 'db.t', strategy => 'sort', sort_order => 'zorder(id, name)',
            options => map('min-input-files', '2', 'rewrite-all', 'true'), where => "name >= 'n2' AND id < 9"
        )""",
    )
    assert done.pop("rewritten_bytes_count") > 0
    assert done == {
        "rewritten_data_files_count": 2,
        "added_data_files_count": 1,
        "failed_data_files_count": 0,
        "removed_delete_files_count": 0,
    }
    assert rows(sql) == [1, 2, 3]
    would = "CALL system.rewrite_data_files('db.t', 'binpack', NULL, map('min-input-files', 2))"
    assert [row[0] for row in sql(would)] == [2]


def test_deletes_are_brought_together(sql: SqlLake) -> None:
    for first in range(10, 60, 10):
        sql.lake.append("db.t", pa.table({"id": range(first, first + 10), "name": ["n"] * 10}))
        sql.lake.table("db.t").delete(f"id = {first}")
    left = rows(sql)
    [done] = told(
        sql, "CALL system.rewrite_position_delete_files(table => 'db.t', where => 'id > 9')"
    )
    assert done.pop("rewritten_bytes_count") > 0
    assert done.pop("added_bytes_count") > 0
    assert done == {"rewritten_delete_files_count": 5, "added_delete_files_count": 1}
    assert rows(sql) == left


def test_statistics_are_computed_of_a_snapshot(sql: SqlLake) -> None:
    first = ids(sql)[0]
    [[file]] = sql(f"CALL system.compute_table_stats('db.t', {first}, array('id'))")
    [kept] = sql.lake.table("db.t").metadata.statistics
    assert kept.snapshot_id == first
    assert file.endswith(kept.statistics_path)
    sql("CREATE TABLE parted (id INT) PARTITIONED BY (id)")
    assert sql("CALL system.compute_partition_stats('db.parted')") == []
    sql("INSERT INTO parted VALUES (1), (2)")
    [[file]] = sql("CALL system.compute_partition_stats(table => 'db.parted')")
    [of] = sql.lake.table("db.parted").metadata.partition_statistics
    assert file.endswith(of.statistics_path)


def test_what_is_kept_of_a_table_is_outdated_by_a_procedure(sql: SqlLake) -> None:
    first = ids(sql)[0]
    sql("CACHE TABLE t")
    assert sql("SELECT count(*) FROM t") == [(3,)]
    sql(f"CALL system.rollback_to_snapshot('db.t', {first})")
    assert sql("SELECT count(*) FROM t") == [(1,)]


def test_optimize_tells_a_row_for_each_step_and_what_it_is_at(
    sql: SqlLake, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (4, 5, 6):
        sql.lake.append("db.t", pa.table({"id": [number], "name": ["n"]}))
    before = ids(sql)
    [would, *_] = told(sql, "CALL system.optimize(table => 'db.t', dry_run => true)")
    assert list(would) == ["verb", "reason", "cost_bytes", "left"]
    assert would["verb"] == "rewrite_data_files"
    assert ids(sql) == before
    [little, *_] = told(sql, "CALL system.optimize(table => 'db.t', max_bytes => 10)")
    assert little["left"].endswith("bytes are more than the 10 that are left")
    with caplog.at_level(logging.INFO, logger=progress.__name__):
        [done, *_] = told(sql, "CALL system.optimize('db.t')")
    assert done["left"] is None
    assert sql.lake.table("db.t").scan().plan().tasks.num_rows == 1
    assert rows(sql) == [1, 2, 3, 4, 5, 6]
    said = "CALL system.optimize: file groups rewritten: 1 of 1"
    assert said in [each.getMessage() for each in caplog.records]
