"""Statements that make, change, describe and drop tables and namespaces."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from pyspark.sql import SparkSession

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from icetree.table.table import Table
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> SqlLake:
    return SqlLake(spark, tmp_path)


@pytest.fixture
def plain(sql: SqlLake) -> SqlLake:
    """A table without rows."""
    sql("CREATE TABLE t (id BIGINT NOT NULL, s STRING, ts TIMESTAMP, st STRUCT<a: INT, b: STRING>)")
    return sql


def table(sql: SqlLake, name: str = "db.t") -> Table:
    return sql.lake.table(name)


# --- CREATE, REPLACE, DROP ---------------------------------------------------------------------


def test_create_table_takes_types_nullability_defaults_and_comments(sql: SqlLake) -> None:
    sql(
        "CREATE TABLE db.t (id BIGINT NOT NULL COMMENT 'the key', n SMALLINT DEFAULT 1 + 1, "
        "c DECIMAL(10, 2) DEFAULT 3.14, s VARCHAR(9) DEFAULT 'it\\'s', b BINARY, "
        "z TIMESTAMP DEFAULT timestamp'2024-01-01T00:00:00Z', w TIMESTAMP_NTZ, "
        "l ARRAY<INT>, m MAP<STRING, BIGINT>, st STRUCT<a: INT NOT NULL COMMENT 'in'>) "
        "USING iceberg COMMENT 'rows' TBLPROPERTIES ('k' = 'v')"
    )
    made = table(sql)
    found = {field.name: field for field in made.schema.fields}
    assert found["id"].required
    assert found["id"].doc == "the key"
    assert [type(field.field_type) for field in found.values()] == [
        *(LongType, IntegerType, DecimalType, StringType, BinaryType, TimestamptzType),
        *(TimestampType, ListType, MapType, StructType),
    ]
    assert found["n"].write_default == 2
    assert found["c"].write_default == Decimal("3.14")
    assert found["s"].write_default == "it's"
    moment = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert found["z"].write_default in (moment, int(moment.timestamp() * 1_000_000))
    within = made.schema.find_field("st.a")
    assert within.required
    assert within.doc == "in"
    assert made.properties == {"k": "v", "comment": "rows"}


def test_create_table_takes_partitions_and_a_place(sql: SqlLake, tmp_path: Path) -> None:
    place = str(tmp_path / "elsewhere")
    sql(
        "CREATE TABLE t (id BIGINT, ts TIMESTAMP, s STRING, st STRUCT<q: INT>) "
        f"PARTITIONED BY (bucket(4, id), days(ts), truncate(2, s), st.q) LOCATION '{place}'"
    )
    assert table(sql).location == place
    assert [row[1] for row in sql("DESCRIBE t") if row[0].startswith("Part ")] == [
        *("bucket(4, id)", "days(ts)", "truncate(2, s)", "st.q"),
    ]


def test_a_name_that_is_taken_is_refused_unless_told(plain: SqlLake) -> None:
    plain("CREATE TABLE IF NOT EXISTS t (other INT)")
    plain("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS other")
    assert "other" not in table(plain).schema.column_names
    for text in ("CREATE TABLE t (other INT)", "CREATE TABLE t AS SELECT 1 AS other"):
        with pytest.raises(AlreadyExists, match="exists"):
            plain(text)


def test_a_query_becomes_a_table_or_takes_its_place(sql: SqlLake) -> None:
    sql("CREATE TABLE t PARTITIONED BY (p) AS WITH w AS (SELECT 1 AS p) SELECT p, 'x' AS s FROM w")
    assert sql("SELECT * FROM t") == [(1, "x")]
    sql("CREATE OR REPLACE TABLE t AS SELECT p + 1 AS q FROM t")
    assert sql("SELECT * FROM t") == [(2,)]
    assert len(sql("SELECT * FROM t.snapshots")) == 2
    sql("REPLACE TABLE t (z INT)")
    assert sql("SELECT * FROM t") == []
    sql("CREATE OR REPLACE TABLE new (z INT)")
    assert sql("SHOW COLUMNS IN new") == [("z",)]
    with pytest.raises(NotFound, match="CREATE OR REPLACE"):
        sql("REPLACE TABLE nope (z INT)")


def test_dropped_and_renamed_tables_are_gone(plain: SqlLake) -> None:
    plain("ALTER TABLE t RENAME TO u")
    assert plain("SHOW TABLES") == [("db", "u", False)]
    place = Path(plain.lake.table("db.u").location)
    plain("CREATE TABLE v LIKE u")
    plain("DROP TABLE u")
    assert [each for each in place.rglob("*") if each.is_file()] != []
    place = Path(plain.lake.table("db.v").location)
    plain("DROP TABLE v PURGE")
    assert [each for each in place.rglob("*") if each.is_file()] == []
    plain("DROP TABLE IF EXISTS u PURGE")
    with pytest.raises(NotFound, match="no table u"):
        plain("DROP TABLE u")


def test_another_format_is_sparks_own(sql: SqlLake, tmp_path: Path) -> None:
    sql(f"CREATE TABLE sparks_own (a INT) USING parquet LOCATION '{tmp_path}/own'")
    try:
        sql("CREATE TABLE t AS SELECT 5 AS a")
        sql("INSERT INTO sparks_own SELECT a FROM t WHERE a = 5")
        assert sql("SELECT * FROM sparks_own") == [(5,)]
        assert sql("SHOW TABLES") == [("db", "t", False)]
    finally:
        sql("DROP TABLE sparks_own")


# --- ALTER -------------------------------------------------------------------------------------


def test_columns_are_added_changed_and_dropped(plain: SqlLake) -> None:
    plain("ALTER TABLE t ADD COLUMNS (n INT COMMENT 'new' AFTER ID, ST.c STRING FIRST)")
    plain("ALTER TABLE t ADD COLUMN d INT DEFAULT 7")
    plain("ALTER TABLE t ALTER COLUMN d SET DEFAULT 8")
    plain("ALTER TABLE t ALTER COLUMN st.a TYPE BIGINT")
    plain("ALTER TABLE t ALTER COLUMN id DROP NOT NULL")
    plain("ALTER TABLE t ALTER COLUMN s COMMENT 'words'")
    plain("ALTER TABLE t ALTER COLUMN ts FIRST")
    plain("ALTER TABLE t RENAME COLUMN st.b TO bb")
    plain("ALTER TABLE t DROP COLUMN S")
    plain("ALTER TABLE t DROP COLUMN IF EXISTS nope")
    schema = table(plain).schema
    assert [field.name for field in schema.fields] == ["ts", "id", "n", "st", "d"]
    assert [field.name for field in schema.find_field("st").field_type.fields] == ["c", "a", "bb"]  # type: ignore[attr-defined,union-attr]
    assert isinstance(schema.find_field("st.a").field_type, LongType)
    assert not schema.find_field("id").required
    assert schema.find_field("n").doc == "new"
    added = schema.find_field("d")
    assert (added.initial_default, added.write_default) == (7, 8)
    plain("ALTER TABLE t ALTER COLUMN d DROP DEFAULT")
    assert table(plain).schema.find_field("d").write_default is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ALTER TABLE t ADD COLUMN id INT", "id"),
        ("ALTER TABLE t DROP COLUMN nope", "nope"),
        ("ALTER TABLE t ALTER COLUMN s TYPE INT", "cannot change from string to int"),
        ("ALTER TABLE t ALTER COLUMN s SET NOT NULL", "optional"),
        ("ALTER TABLE t ALTER COLUMN nope SET DEFAULT 1", "nope"),
        ("ALTER TABLE t ADD COLUMN v VARIANT DEFAULT parse_json('1')", "no default but null"),
        ("ALTER TABLE t UNSET TBLPROPERTIES ('nope')", "nope"),
        ("ALTER TABLE t ADD PARTITION FIELD nope(id)", "nope"),
        ("ALTER TABLE t CREATE BRANCH", "expected a name"),
        ("ALTER TABLE t WRITE ORDERED id", "expected ORDERED BY"),
        ("ALTER TABLE t CREATE TAG x RETAIN 3 WEEKS", "DAYS, HOURS or MINUTES"),
        ("CREATE TABLE u (a INTERVAL DAY)", "interval day is no type"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    plain: SqlLake, text: str, told: str
) -> None:
    before = table(plain).metadata
    with pytest.raises((InvalidInput, Unsupported), match=told):
        plain(text)
    assert table(plain).metadata == before


def test_properties_are_set_and_unset(plain: SqlLake) -> None:
    plain("ALTER TABLE t SET TBLPROPERTIES ('a' = '1', 'b.c' = '2')")
    plain("ALTER TABLE t UNSET TBLPROPERTIES ('a')")
    plain("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a')")
    plain("COMMENT ON TABLE t IS 'said'")
    assert plain("SHOW TBLPROPERTIES t") == [("b.c", "2"), ("comment", "said")]
    assert plain("SHOW TBLPROPERTIES t ('b.c')") == [("b.c", "2")]


def test_partition_fields_come_and_go(plain: SqlLake) -> None:
    def fields() -> list[str]:
        return [row[1] for row in plain("DESCRIBE t") if row[0].startswith("Part ")]

    plain("ALTER TABLE t ADD PARTITION FIELD bucket(8, id) AS shard")
    plain("ALTER TABLE db.t ADD PARTITION FIELD days(ts)")
    assert fields() == ["bucket(8, id)", "days(ts)"]
    plain("ALTER TABLE t REPLACE PARTITION FIELD days(ts) WITH hours(ts)")
    plain("ALTER TABLE t DROP PARTITION FIELD shard")
    assert fields() == ["hours(ts)"]


def test_the_order_of_writing_is_chosen(plain: SqlLake) -> None:
    def order() -> tuple[list[str], str | None]:
        metadata = table(plain).metadata
        [keys] = [
            each.fields
            for each in metadata.sort_orders
            if each.order_id == metadata.default_sort_order_id
        ]
        said = [f"{key.source_id} {key.direction} {key.null_order}" for key in keys]
        return said, metadata.properties.get("write.distribution-mode")

    plain("ALTER TABLE t WRITE ORDERED BY id DESC NULLS LAST, s")
    assert order() == (["1 desc nulls-last", "2 asc nulls-first"], "range")
    plain("ALTER TABLE t WRITE LOCALLY ORDERED BY (s)")
    assert order() == (["2 asc nulls-first"], "range")
    plain("ALTER TABLE t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id")
    assert order() == (["1 asc nulls-first"], "hash")
    plain("ALTER TABLE t WRITE UNORDERED")
    assert order() == ([], "none")


def test_identifier_fields_are_chosen(plain: SqlLake) -> None:
    plain("ALTER TABLE t SET IDENTIFIER FIELDS ID")
    assert table(plain).schema.identifier_field_names() == {"id"}
    with pytest.raises(InvalidInput, match="'s' is no identifier"):
        plain("ALTER TABLE t DROP IDENTIFIER FIELDS s")
    plain("ALTER TABLE t DROP IDENTIFIER FIELDS id")
    assert table(plain).schema.identifier_field_names() == set()


def test_branches_and_tags_come_move_and_go(plain: SqlLake) -> None:
    plain("INSERT INTO t (id) VALUES (1)")
    first = table(plain).metadata.current_snapshot_id
    plain("INSERT INTO t (id) VALUES (2)")
    second = table(plain).metadata.current_snapshot_id
    plain(f"ALTER TABLE t CREATE TAG one AS OF VERSION {first} RETAIN 3 DAYS")
    plain("ALTER TABLE t CREATE BRANCH side WITH SNAPSHOT RETENTION 2 SNAPSHOTS 5 HOURS")
    plain("ALTER TABLE t CREATE BRANCH IF NOT EXISTS side")
    refs = table(plain).refs
    assert (refs["one"].snapshot_id, refs["one"].max_ref_age_ms) == (first, 3 * 86_400_000)
    assert (refs["side"].snapshot_id, refs["side"].min_snapshots_to_keep) == (second, 2)
    assert refs["side"].max_snapshot_age_ms == 5 * 3_600_000
    plain(f"ALTER TABLE t CREATE OR REPLACE BRANCH side AS OF VERSION {first} RETAIN 9 MINUTES")
    plain("ALTER TABLE t REPLACE TAG one")
    refs = table(plain).refs
    assert (refs["side"].snapshot_id, refs["side"].max_ref_age_ms) == (first, 9 * 60_000)
    assert refs["one"].snapshot_id == second
    with pytest.raises(AlreadyExists, match="side"):
        plain("ALTER TABLE t CREATE BRANCH side")
    plain("ALTER TABLE t DROP BRANCH side")
    plain("ALTER TABLE t DROP TAG one")
    plain("ALTER TABLE t DROP TAG IF EXISTS one")
    with pytest.raises(NotFound, match="one"):
        plain("ALTER TABLE t DROP TAG one")
    assert set(table(plain).refs) == {"main"}


# --- SHOW, DESCRIBE, namespaces ----------------------------------------------------------------


def test_a_shown_statement_makes_the_same_table(sql: SqlLake) -> None:
    sql(
        "CREATE TABLE t (Id BIGINT NOT NULL COMMENT 'it\\'s', s STRING DEFAULT 'a', "
        "st STRUCT<Q: INT>) PARTITIONED BY (truncate(2, s)) COMMENT 'c' TBLPROPERTIES ('k' = 'v')"
    )
    [[text]] = sql("SHOW CREATE TABLE t")
    before = table(sql)
    sql("DROP TABLE t")
    sql(text.replace("/warehouse/db/t'", "/warehouse/db/again'"))
    after = table(sql)
    assert after.schema == before.schema
    assert after.properties == before.properties
    assert after.metadata.partitioning == before.metadata.partitioning


def test_describe_tells_columns_partitions_and_with_extended_the_rest(plain: SqlLake) -> None:
    assert plain("DESCRIBE t id") == [
        ("col_name", "id"),
        ("comment", None),
        ("data_type", "bigint"),
    ]
    assert ("st", "struct<a:int,b:string>", None) in plain("DESCRIBE TABLE db.t")
    told = {row[0]: row[1] for row in plain("DESCRIBE EXTENDED t")}
    assert told["Name"] == "db.t"
    assert told["_file"] == "string"


def test_namespaces_are_made_used_and_dropped(sql: SqlLake) -> None:
    sql("CREATE NAMESPACE IF NOT EXISTS db")
    with pytest.raises(AlreadyExists, match="db"):
        sql("CREATE DATABASE db")
    sql("CREATE SCHEMA other WITH PROPERTIES ('k' = 'v')")
    assert sql("SHOW NAMESPACES") == [("db",), ("other",)]
    assert sql("SHOW DATABASES LIKE 'o*'") == [("other",)]
    assert sql("DESCRIBE NAMESPACE other") == [("Namespace Name", "other"), ("k", "v")]
    sql("USE other")
    sql("CREATE TABLE t (a INT)")
    sql("CREATE TABLE u (a INT)")
    assert sql("SHOW TABLES LIKE 'u|x*'") == [("other", "u", False)]
    assert sql("SHOW TABLES IN db") == []
    assert sql("SHOW CURRENT NAMESPACE") == [("icetree", "other")]
    with pytest.raises(InvalidInput, match="not empty"):
        sql("DROP NAMESPACE other")
    sql("CREATE NAMESPACE other.below")
    sql("CREATE NAMESPACE other.below.deep")
    sql("CREATE TABLE other.below.deep.t (a INT)")
    sql("CREATE VIEW other.below.v AS SELECT 1 AS a")
    sql("USE other.below")
    sql("DROP NAMESPACE other CASCADE")
    assert sql("SHOW NAMESPACES") == [("db",)]
    sql("DROP NAMESPACE IF EXISTS other")
    with pytest.raises(NotFound, match="other"):
        sql("USE other")
    with pytest.raises(InvalidInput, match="USE db"):
        sql("CREATE TABLE t (a INT)")
