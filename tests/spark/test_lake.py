"""Reading tables through Spark: values of every type, whatever became of columns, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyiceberg.expressions as ice
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Row, SparkSession

from icetree.errors import InvalidInput, NotFound
from icetree.spark import SparkLake, local
from icetree.spark.read.metadata_tables import KINDS
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.rows.lake import foreign_delete
from tests.spark.reading import rows_in


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("lake"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows as the reader that needs no Spark has them."""
    return sorted(table.scan().to_arrow().to_pylist(), key=repr)


ODD = pa.schema(
    [
        pa.field("i", pa.int32()),
        pa.field("d", pa.decimal128(20, 4)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us")),
        pa.field("zoned", pa.timestamp("us", tz="UTC")),
        pa.field("b", pa.binary()),
        pa.field("fixed", pa.binary(4)),
        pa.field("list", pa.list_(pa.int64())),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
        pa.field("s", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
    ]
)
ODD_ROW = {
    "i": 1,
    "d": Decimal("12.3400"),
    "day": dt.date(1969, 12, 31),
    "at": dt.datetime(2026, 1, 1, 1, 2, 3, 4),  # noqa: DTZ001 (without a zone is the point)
    "zoned": dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc),
    "b": b"\x00\xff",
    "fixed": b"abcd",
    "list": [1, None],
    "map": [("k", 1.5)],
    "s": {"x": 1, "y": {"z": "deep"}},
}


def test_every_type_reads_as_it_was_written_by_either_side(lake: SparkLake) -> None:
    table = lake.create_table("db.odd", ODD)
    table.append(pa.Table.from_pylist([ODD_ROW, dict.fromkeys(ODD_ROW)], schema=ODD))
    by_spark = lake.read("db.odd")
    lake.write("db.odd", by_spark).append()
    table.refresh()
    found = rows_in(lake, "db.odd")
    assert found == rows_of(table)
    assert len(found) == 4
    assert found.count(found[0]) == 2


def test_a_uuid_is_text_in_spark(lake: SparkLake) -> None:
    schema = pa.schema([pa.field("u", pa.uuid()), pa.field("n", pa.int64())])
    table = lake.create_table("db.uuids", schema)
    text = "123e4567-e89b-12d3-a456-426614174000"
    rows = lake.spark.createDataFrame([(text, 1), (None, 2)], "u string, n long")
    lake.write("db.uuids", rows).append()
    assert rows_in(lake, "db.uuids") == [{"u": text, "n": 1}, {"u": None, "n": 2}]
    assert lake.read("db.uuids", where=f"u = '{text}'").collect() == [Row(u=text, n=1)]
    lake.delete("db.uuids", "n = 2")
    assert rows_in(lake, "db.uuids") == [{"u": text, "n": 1}]
    assert table.refresh().verify(deep=True).findings == ()


def test_uuids_within_other_values_are_text_too(lake: SparkLake) -> None:
    pair = pa.struct([("u", pa.uuid()), ("n", pa.int64())])
    schema = pa.schema([("list", pa.list_(pa.uuid())), ("pair", pair)])
    table = lake.create_table("db.deep_uuids", schema)
    text = "123e4567-e89b-12d3-a456-426614174000"
    made = lake.spark.createDataFrame(
        [([text, None], (text, 1)), (None, None)],
        "list array<string>, pair struct<u string, n long>",
    )
    lake.write("db.deep_uuids", made).append()
    wanted = [
        {"list": [text, None], "pair": {"u": text, "n": 1}},
        {"list": None, "pair": None},
    ]
    assert rows_in(lake, "db.deep_uuids") == sorted(wanted, key=repr)
    assert lake.changes("db.deep_uuids").count() == 2
    assert table.refresh().verify(deep=True).findings == ()


def test_names_that_were_used_before_lose_no_row(lake: SparkLake) -> None:
    table = lake.create_table("db.swap", [("a", "long"), ("b", "long")])
    table.append(pa.table({"a": [7], "b": [8]}))
    with table.edit_schema() as edit:
        edit.rename("a", "x").rename("b", "a").rename("x", "b")
    assert lake.read("db.swap").where("a = 8 AND b = 7").collect() == [Row(b=7, a=8)]
    with table.edit_schema() as edit:
        edit.drop("a")
    with table.edit_schema() as edit:
        edit.add("a", "long", default=3)
    assert lake.read("db.swap").where("a = 3").collect() == [Row(b=7, a=3)]
    assert lake.read("db.swap").where("a = 8").collect() == []


def test_a_nan_is_above_all_numbers_to_spark_whatever_a_footer_says(lake: SparkLake) -> None:
    schema = pa.schema([("x", pa.float64()), ("s", pa.struct([("y", pa.float32())]))])
    table = lake.create_table("db.nan", schema)
    rows = [{"x": 4.0, "s": {"y": 4.0}}, {"x": float("nan"), "s": {"y": float("nan")}}]
    table.append(pa.Table.from_pylist(rows, schema=schema))
    assert lake.read("db.nan").where("x > 4").count() == 1
    assert lake.read("db.nan").where("s.y > 4").count() == 1
    assert lake.read("db.nan", "x > 4").count() == 1
    assert lake.read("db.nan", ice.GreaterThan("x", 4.0)).count() == 0  # as a scan has it
    lake.delete("db.nan", "x > 4")
    assert lake.read("db.nan").count() == 1


def test_a_literal_between_two_decimals_finds_the_rows_on_its_side(lake: SparkLake) -> None:
    lake.sql("CREATE TABLE db.cents (x DECIMAL(9, 2))")
    lake.sql("INSERT INTO db.cents VALUES (1.99), (2.00), (NULL)")
    for filter, count in (
        ("x > 1.996", 1),
        ("x >= 1.996", 1),
        ("x < 1.996", 1),
        ("x = 1.996", 0),
        ("x != 1.996", 2),
        ("x in (1.99, 1.996)", 1),
        ("x not in (1.99, 1.996)", 1),
        ("x < 1e30", 2),
    ):
        assert lake.read("db.cents", where=filter).count() == count, filter


def test_nested_fields_evolve_by_id(lake: SparkLake) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("s", pa.struct([("x", pa.int32()), ("y", pa.string())]))]
    )
    table = lake.create_table("db.nested", schema)
    table.append(pa.table({"id": [1], "s": [{"x": 1, "y": "old"}]}, schema=schema))
    with table.edit_schema() as edit:
        edit.rename("s.y", "z").widen("s.x", "long").add("s.w", "string")
    first = {"id": 1, "s": {"x": 1, "z": "old", "w": None}}
    assert rows_in(lake, "db.nested") == [first]
    with table.edit_schema() as edit:
        edit.add("s.v", "long", default=9)
    assert rows_in(lake, "db.nested") == [{"id": 1, "s": {**first["s"], "v": 9}}]  # type: ignore[dict-item]
    assert rows_in(lake, "db.nested") == rows_of(table)
    assert lake.read("db.nested").where("s.z = 'old' AND s.v = 9").count() == 1


def test_rows_know_where_they_stand_and_what_they_are(lake: SparkLake) -> None:
    table = lake.create_table("db.lineage", [("id", "long"), ("s", "string")])
    table.append(pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]}))
    lake.update("db.lineage", {"s": "'new'"}, "id = 2")
    columns = ["id", "s", "_row_id", "_last_updated_sequence_number", "_pos", "_spec_id", "_file"]
    found = rows_in(lake, "db.lineage", columns=columns)
    assert found == sorted(table.refresh().scan(columns=columns).to_arrow().to_pylist(), key=repr)
    assert [(row["id"], row["_row_id"], row["_last_updated_sequence_number"]) for row in found] == [
        (1, 0, 1),
        (2, 1, 2),
        (3, 2, 1),
    ]


def test_equality_deletes_reach_older_rows_alone_nulls_and_nans_too(lake: SparkLake) -> None:
    table = lake.create_table("db.eq", [("k", "double"), ("n", "long")])
    nan = float("nan")
    table.append(pa.table({"k": [1.0, None, nan, 2.0], "n": [1, 2, 3, 4]}))
    gone = pa.table({"k": pa.array([1.0, None, nan], pa.float64())})
    with table.transaction() as tx:
        tx.apply(foreign_delete(table, gone))  # new ones by such numbers are refused
    table.append(pa.table({"k": [1.0, None], "n": [5, 6]}))
    lake.delete("db.eq", "n = 4")
    assert rows_in(lake, "db.eq") == [{"k": 1.0, "n": 5}, {"k": None, "n": 6}]


@pytest.mark.usefixtures("lazily")
def test_an_equality_delete_without_a_column_it_deletes_by_is_corrupt(lake: SparkLake) -> None:
    table = lake.create_table("db.lacking", [("k", "long"), ("n", "long")])
    table.append(pa.table({"k": [1, 2], "n": [1, None]}))
    with table.transaction() as tx:
        tx.apply(foreign_delete(table, pa.table({"k": [2]}), ids=[1, 2]))
    told = r"icetree\.errors\.CorruptTable: .* it deletes by n, but lacks it"
    with pytest.raises(IllegalArgumentException, match=told):
        rows_in(lake, "db.lacking")


@pytest.mark.parametrize("kind", sorted(KINDS - {"changes"}))
def test_what_a_table_is_made_of_reads_as_a_dataframe(lake: SparkLake, kind: str) -> None:
    if not lake.table_exists("db.made"):
        lake.write("db.made", lake.spark.range(3)).create()
    expected = getattr(lake.table("db.made").inspect, kind)()
    found = lake.read(f"db.made.{kind}")
    assert found.columns == expected.column_names
    assert found.count() == expected.num_rows


def test_earlier_snapshots_branches_and_times_read_as_they_were(lake: SparkLake) -> None:
    first = lake.write("db.then", lake.spark.range(3)).create()
    was = first.metadata.current_snapshot_id
    first.create_branch("audit")
    lake.write("db.then", lake.spark.range(10, 12)).branch("audit").append()
    lake.write("db.then", lake.spark.range(100, 101)).append()
    now = lake.table("db.then").snapshot()
    assert now is not None
    assert lake.read("db.then", at=was).count() == 3
    assert lake.read("db.then", at="audit").count() == 5
    assert lake.read("db.then", at=time_of(now.timestamp_ms)).count() == 4
    assert lake.read("db.then").count() == 4
    assert lake.read("db.then.files", at=was).agg({"record_count": "sum"}).first()[0] == 3  # type: ignore[index]
    assert lake.read("db.then.files", at=time_of(now.timestamp_ms)).count() >= 2
    with pytest.raises(InvalidInput, match=r"use \.where"):
        lake.read("db.then.files", where="record_count > 1")


@pytest.mark.parametrize(
    ("do", "error", "says"),
    [
        (lambda lake: lake.read("db.none"), NotFound, "db.none"),
        (lambda lake: lake.read("db.bad", where="nope = 1"), InvalidInput, "nope"),
        (lambda lake: lake.delete("db.bad", "nope = 1"), InvalidInput, "nope"),
        (lambda lake: lake.delete("db.bad", "id = "), InvalidInput, "Syntax error"),
        (lambda lake: lake.update("db.bad", {"nope": "1"}), InvalidInput, "nope"),
        (lambda lake: lake.update("db.bad", {}), InvalidInput, "at least one column"),
        (
            lambda lake: lake.update("db.bad", {"id": "'x' || id"}),
            InvalidInput,
            "column id is string in the data",
        ),
        (
            lambda lake: lake.merge("db.bad", lake.spark.range(1), ["id"]).run(),
            InvalidInput,
            "when_",
        ),
        (
            lambda lake: lake.write(
                "db.bad", lake.spark.range(1).selectExpr("NULL AS id")
            ).append(),
            InvalidInput,
            "column id is required, but the data has a null",
        ),
        (
            lambda lake: lake.upsert("db.bad", lake.spark.range(1)),
            InvalidInput,
            "identifier fields",
        ),
    ],
)
def test_bad_input_says_what_is_wrong_and_changes_nothing(
    lake: SparkLake, do: Any, error: type[Exception], says: str
) -> None:
    if not lake.table_exists("db.bad"):
        lake.create_table("db.bad", pa.schema([pa.field("id", pa.int64(), False)]))
        lake.write("db.bad", lake.spark.range(3)).append()
    before = lake.table("db.bad").metadata
    with pytest.raises(error, match=says) as found:
        do(lake)
    assert "\n\tat org." not in str(found.value)
    assert lake.table("db.bad").metadata == before


def test_columns_are_found_by_id_on_any_session(lake: SparkLake) -> None:
    fresh = lake.spark.newSession()
    assert fresh.conf.get("spark.sql.parquet.fieldId.read.enabled") in ("true", "false")
    fresh.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
    lake.write("db.renamed", lake.spark.range(3)).create()
    with lake.table("db.renamed").edit_schema() as edit:
        edit.rename("id", "number")
    other = SparkLake(fresh, lake)
    assert sorted(r.number for r in other.read("db.renamed").collect()) == [0, 1, 2]


def test_a_column_may_have_the_name_of_what_spark_hides(lake: SparkLake) -> None:
    rows = lake.spark.sql("SELECT id, id * 10 AS _metadata FROM range(6)")
    lake.write("db.hidden", rows).create()
    lake.delete("db.hidden", "_metadata = 20")
    lake.update("db.hidden", {"_metadata": "_metadata + 1"}, "id > 3")
    found = [row["_metadata"] for row in rows_in(lake, "db.hidden")]
    assert sorted(found) == [0, 10, 30, 41, 51]
