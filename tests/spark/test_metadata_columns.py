"""Columns beside the table's own, in statements, and columns of the table that have their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from icetree.errors import InvalidInput
from tests.spark.sql_lake import SqlLake
from tests.table.foreign_names import rename_as_others_may


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    """Make a table with the rows 0 to 3 in one file, of which 1 is gone, and 4 in another spec."""
    made = SqlLake(spark, tmp_path)
    made("CREATE TABLE t (id BIGINT, s STRING) PARTITIONED BY (truncate(1, s))")
    made("INSERT INTO t SELECT id, 'a' || id FROM range(0, 4, 1, 1)")
    made("DELETE FROM t WHERE id = 1")
    made("ALTER TABLE t ADD PARTITION FIELD bucket(4, id) AS shard")
    made("INSERT INTO t VALUES (4, 'b')")
    return made


def test_statements_see_partitions_and_rows_that_are_gone(sql: SqlLake) -> None:
    assert sql("SELECT id, _partition FROM t ORDER BY id") == [
        (0, ("a", None)),
        (2, ("a", None)),
        (3, ("a", None)),
        (4, ("b", 2)),
    ]
    assert sql("SELECT id FROM t WHERE _partition.shard = 2") == [(4,)]
    assert sql("SELECT *, _deleted FROM t WHERE id < 3 ORDER BY id") == [
        (0, "a0", False),
        (1, "a1", True),
        (2, "a2", False),
    ]
    assert sql("SELECT _deleted, count(*) FROM t GROUP BY 1") == [(False, 4), (True, 1)]
    assert sql("SELECT count(*) FROM t") == [(4,)]
    sql("CREATE TABLE plain (id INT)")
    sql("INSERT INTO plain VALUES (1)")
    assert sql("SELECT id, _partition, _deleted FROM plain") == [(1, (), False)]


@pytest.mark.parametrize(
    "where",
    [
        "_spec_id = 1",
        "_pos >= 2 AND id < 4",
        "`_ROW_ID` IN (0, 4)",
        "t._last_updated_sequence_number > 1 OR s = 'a3'",
        "_file LIKE '%parquet' AND s <> '_deleted'",
    ],
)
def test_rows_are_chosen_by_metadata_columns_that_are_not_asked_for(
    sql: SqlLake, where: str
) -> None:
    wanted = sql(f"SELECT id, s FROM t WHERE {where}")
    assert wanted
    for condition in (where, f.expr(where)):
        found = sql.lake.read("db.t", condition)
        assert found.columns == ["id", "s"]
        assert sorted(map(tuple, found.collect())) == wanted
        asked = sql.lake.read("db.t", condition, columns=["s", "_pos"])
        assert asked.columns == ["s", "_pos"]
        assert asked.count() == len(wanted)
    with pytest.raises(InvalidInput, match="_deleted"):
        sql.lake.read("db.t", "_deleted")


def test_statements_see_changes_and_marked_positions(sql: SqlLake) -> None:
    assert sql("SELECT id, s, _change_type, _change_ordinal FROM t.changes ORDER BY 4, 3, 1") == [
        (0, "a0", "INSERT", 0),
        (1, "a1", "INSERT", 0),
        (2, "a2", "INSERT", 0),
        (3, "a3", "INSERT", 0),
        (1, "a1", "DELETE", 1),
        (4, "b", "INSERT", 2),
    ]
    [first, *_] = sql("SELECT snapshot_id FROM t.snapshots ORDER BY committed_at")
    assert sql(f"SELECT count(*) FROM db.t.changes VERSION AS OF {first[0]}") == [(4,)]
    assert sql(f"SELECT count(*) FROM t.changes WHERE _commit_snapshot_id = {first[0]}") == [(4,)]
    assert sql(
        "SELECT p.pos, p.row, p.partition, p.spec_id, p.content_offset > 0 "
        "FROM t.position_deletes AS p JOIN (SELECT DISTINCT _file FROM t) ON file_path = _file"
    ) == [(1, None, ("a", None), 0, True)]
    assert sql(f"SELECT * FROM t.position_deletes VERSION AS OF {first[0]}") == []
    sql("CREATE TABLE none (id INT)")
    assert sql("SELECT * FROM none.changes") == sql("SELECT * FROM none.position_deletes") == []


def test_where_rows_are_changed_a_subquery_reads_them(sql: SqlLake) -> None:
    merge = "MERGE INTO t USING (SELECT 0 AS k) x ON t.id = x.k"
    for statement in (
        "DELETE FROM t WHERE _file IS NULL",
        "DELETE FROM t WHERE t._partition.shard = 2 AND id > 0",
        "UPDATE t SET s = 'x' WHERE _row_id = 0",
        "UPDATE t SET s = _file WHERE id = 0",
        f"{merge} AND t._pos = 0 WHEN MATCHED THEN DELETE",
        f"{merge} WHEN MATCHED AND _deleted THEN DELETE",
        "SELECT _file FROM (SELECT id FROM t)",
    ):
        with pytest.raises(InvalidInput, match=r"cannot be resolved.* by a subquery, such as id"):
            sql(statement)


def test_a_subquery_chooses_rows_to_change_by_them(sql: SqlLake) -> None:
    sql("DELETE FROM t WHERE id IN (SELECT id FROM t WHERE _pos = 0 AND _partition.shard IS NULL)")
    sql("UPDATE t SET s = 'x' WHERE id = (SELECT id FROM t WHERE _row_id = 2)")
    sql("MERGE INTO t USING (SELECT id, _spec_id FROM t) x ON t.id = x.id AND x._spec_id = 1 AND x.id > 3 "
        "WHEN MATCHED THEN UPDATE SET s = 'm'")  # fmt: skip
    assert sql("SELECT id, s FROM t") == [(2, "x"), (3, "a3"), (4, "m")]


def test_a_new_table_cannot_take_their_names(sql: SqlLake) -> None:
    with pytest.raises(InvalidInput, match="name of a metadata column"):
        sql("CREATE TABLE copy AS SELECT id, _FILE FROM t")
    with pytest.raises(InvalidInput, match="name of a metadata column"):
        sql("ALTER TABLE t ADD COLUMN _Pos INT")
    sql("CREATE TABLE copy AS SELECT id, _file AS origin FROM t")


@pytest.mark.parametrize(
    "name",
    [
        "_ROW_ID",
        pytest.param("_row_id", marks=pytest.mark.long),
        pytest.param("_last_updated_sequence_number", marks=pytest.mark.long),
        pytest.param("_pos", marks=pytest.mark.long),
    ],
)
def test_rows_stay_right_where_another_writer_took_a_name(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    sql = SqlLake(spark, tmp_path)
    sql("CREATE TABLE t (id BIGINT, kind STRING)")
    for verb in ("update", "delete", "merge"):
        sql(f"ALTER TABLE t SET TBLPROPERTIES ('write.{verb}.mode' = 'copy-on-write')")
    sql("INSERT INTO t SELECT id, 'k' || id FROM range(0, 6, 1, 1)")
    table = sql.lake.table("db.t")
    ids = dict(sql("SELECT id, _row_id FROM t"))
    rename_as_others_may(table, {"kind": name})
    sql(f"UPDATE t SET {name} = 'new' WHERE id = 1")
    sql(f"DELETE FROM t WHERE {name} = 'k2'")
    sql(
        f"MERGE INTO t USING (SELECT 3 AS k, 'm' AS v UNION SELECT 9, 'n') ON id = k "
        f"WHEN MATCHED THEN UPDATE SET {name} = v WHEN NOT MATCHED THEN INSERT (id, {name}) VALUES (k, v)"
    )
    assert sql(f"SELECT id, {name} FROM t ORDER BY id") == [
        (0, "k0"),
        (1, "new"),
        (3, "m"),
        (4, "k4"),
        (5, "k5"),
        (9, "n"),
    ]
    assert sql(f"SELECT id FROM t WHERE {name} > 'm'") == [(1,), (9,)]
    kinds = sql.lake.changes("db.t", images=True).groupBy("_change_type").count().collect()
    assert {row[0]: row[1] for row in kinds} == {
        "INSERT": 7,
        "UPDATE_BEFORE": 2,
        "UPDATE_AFTER": 2,
        "DELETE": 1,
    }
    rename_as_others_may(sql.lake.table("db.t"), {name: "kind"})
    now = dict(sql("SELECT id, _row_id FROM t"))
    assert {id: now[id] for id in (0, 1, 3, 4, 5)} == {id: ids[id] for id in (0, 1, 3, 4, 5)}
    assert not sql.lake.table("db.t").verify(deep=True).findings
