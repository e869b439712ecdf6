"""Types that Spark has otherwise, or only lately: written and read by either side, found, changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from icetree.filters.filter import parse_filter
from icetree.spark import SparkLake, local
from icetree.table.table import Table
from tests.rows.geometries import line, point, square
from tests.rows.lake import files
from tests.rows.test_variant import SHREDS
from tests.rows.variants import pair, pairs, said
from tests.spark.files_read import files_read

NANOS = pa.timestamp("ns")
COLUMNS = {
    "id": "int",
    "u": "uuid",
    "f": "fixed[3]",
    "t": "time",
    "n": "timestamp_ns",
    "z": "timestamptz_ns",
    "g": "geometry(srid:4326)",
    "w": "geography",
    "v": "variant",
    "nothing": "unknown",
    "d9": "decimal(9, 2)",
    "d38": "decimal(38, 3)",
}


def _arrow(column: str) -> pa.DataType:
    return {
        "id": pa.int32(),
        "u": pa.binary(16),
        "f": pa.binary(3),
        "t": pa.time64("us"),
        "n": NANOS,
        "z": pa.timestamp("ns", tz="UTC"),
        "g": pa.binary(),
        "w": pa.binary(),
        "nothing": pa.null(),
        "d9": pa.decimal128(9, 2),
        "d38": pa.decimal128(38, 3),
    }[column]


VALUES: dict[str, list[Any]] = {
    "id": [1, 2],
    "u": [bytes(range(16)), None],
    "f": [b"abc", None],
    "t": [86_399_999_999, None],
    "n": [-1, None],
    "z": [1_700_000_000_123_456_789, None],
    "g": [square(1, 1), None],
    "w": [line((179, 1), (-179, 1)), None],
    "nothing": [None, None],
    "d9": [125, None],
    "d38": [10**30, None],
}


def _rows() -> pa.Table:
    made = {name: pa.array(values, _arrow(name)) for name, values in VALUES.items() if name != "v"}
    made["v"] = pairs({"a": 1, "b": ["x", None]}, ...)
    return pa.table({name: made[name] for name in COLUMNS})


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("types"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def _plain(table: Table) -> list[str]:
    """Return rows as text, so that nanoseconds count."""
    found = table.scan().to_arrow()
    columns = []
    for name in found.column_names:
        column = found[name].combine_chunks()
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        values = column.to_pylist()
        columns.append([said(each) for each in values] if name == "v" else values)
    return sorted(map(repr, zip(*columns, strict=True)))


def test_every_type_is_written_and_read_by_either_side(lake: SparkLake) -> None:
    table = lake.create_table("db.every", COLUMNS)
    table.append(_rows())
    once = _plain(table)
    frame = lake.read("db.every")
    lake.write("db.every", frame).append()
    table.refresh()
    assert _plain(table) == sorted(once * 2)
    [one, _] = (
        lake.read("db.every")
        .where("id = 1")
        .selectExpr("u", "t", "n", "g", "to_json(v) AS v")
        .toArrow()
        .to_pylist()
    )
    assert one["u"] == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (str(one["t"]), one["n"]) == ("23:59:59.999999", -1)
    assert (one["g"], one["v"]) == (square(1, 1), '{"a":1,"b":["x",null]}')
    # The one that Spark wrote tells what its bytes are as the other does.
    for file in files(table):
        stored = pq.ParquetFile(file.removeprefix("file://"), arrow_extensions_enabled=False)
        told = str(stored.schema)
        assert "(Variant(1))" in told
        assert "(Geometry(crs=srid:4326))" in told


NESTED = {
    "id": "int",
    "s": "struct<u: uuid, n: timestamp_ns, v: variant, f: fixed[2]>",
    "l": "list<struct<v: variant, t: time>>",
    "m": "map<uuid, variant>",
}


def test_types_within_others_are_written_and_read_by_either_side(lake: SparkLake) -> None:
    table = lake.create_table("db.nested", NESTED)
    arrow = table.scan().arrow_schema
    id = bytes(range(16))
    full = {
        "id": 1,
        "s": {"u": id, "n": 5, "v": pair({"k": "x"}), "f": b"ab"},
        "l": [{"v": pair([1]), "t": 7}, None],
        "m": [(id, pair(None))],
    }
    storage = [(f.name, _storage(f.type)) for f in arrow]
    table.append(pa.Table.from_pylist([full, {"id": 2}], pa.schema(storage)))
    before = repr(table.scan().to_arrow().to_pylist())
    frame = lake.read("db.nested")
    lake.write("db.nested", frame).overwrite("true")
    table.refresh()
    assert repr(table.scan().to_arrow().sort_by("id").to_pylist()) == before


def _storage(type: pa.DataType) -> pa.DataType:
    """Return a type whose values Python can give as plain bytes."""
    if isinstance(type, pa.BaseExtensionType):
        return type.storage_type
    if pa.types.is_struct(type):
        return pa.struct([(each.name, _storage(each.type)) for each in type])
    if pa.types.is_map(type):
        return pa.map_(_storage(type.key_type), _storage(type.item_type))
    return pa.list_(_storage(type.value_type)) if pa.types.is_list(type) else type


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.usefixtures("lazily")
def test_conditions_on_fields_of_variants_prune_files_on_spark(lake: SparkLake) -> None:
    table = lake.create_table("db.fields", {"id": "int", "v": "variant"}, properties=SHREDS)
    for at in range(4):
        rows = lake.spark.sql(
            f'SELECT CAST(id AS INT) id, parse_json(\'{{"n": \' || id || \', "s": "k{at}"}}\') v '
            f"FROM range({10 * at}, {10 * at + 3})"
        )
        lake.write("db.fields", rows.coalesce(1)).append()
    table.refresh()
    assert table.verify(deep=True).is_clean
    for condition, wanted, count in (
        ("variant_get(v, '$.n', 'int') > 21", [22, 30, 31, 32], 2),
        ("variant_get(v, '$.s', 'string') = 'k1'", [10, 11, 12], 1),
        ("variant_get(v, '$.n', 'string') = '31'", [31], 4),
    ):
        found = lake.read("db.fields").where(condition)
        assert _ids(found) == wanted, condition
        assert files_read(found) == count, condition
    lake.sql("DELETE FROM db.fields WHERE variant_get(v, '$.n', 'int') >= 30")
    lake.sql("UPDATE db.fields SET v = parse_json('[7]') WHERE id = 0")
    table.refresh()
    found = {row["id"]: said(row["v"]) for row in table.scan().to_arrow().to_pylist()}
    assert found[0] == [7]
    assert max(found) == 22


#: How Spark is told to store fields of variants apart: as somebody says, or as the rows suggest.
SHREDDING = {
    "forced": {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.inferShreddingSchema": "false",
        "spark.sql.variant.forceShreddingSchemaForTest": "n bigint, s string, l array<int>",
    },
    "inferred": {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.inferShreddingSchema": "true",
    },
}


@pytest.mark.parametrize("how", SHREDDING)
def test_variants_that_spark_stored_apart_are_read_and_found(
    how: str, lake: SparkLake, tmp_path: Path
) -> None:
    documents = ['{"n":1,"s":"x","l":[1,"y"]}', '{"n":2,"s":"y","z":null}', '{"n":"3"}', "[4]", "5"]
    if how == "inferred":
        # Where rows have little in common, Spark stores nothing apart.
        documents = documents[:2]
    told = lake.spark.createDataFrame(list(enumerate(documents)), "id int, j string")
    with _set(lake.spark, SHREDDING[how]):
        rows = told.selectExpr("id", "parse_json(j) v")
        rows.coalesce(1).write.parquet(str(tmp_path / "theirs"))
    [file] = (tmp_path / "theirs").glob("*.parquet")
    assert "typed_value" in str(pq.ParquetFile(file, arrow_extensions_enabled=False).schema)
    table = lake.create_table(f"db.{how}", {"id": "int", "v": "variant"})
    table.add_files([str(file)])
    found = {row["id"]: said(row["v"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {id: json.loads(each) for id, each in enumerate(documents)}
    where = "variant_get(v, '$.n', 'int') = 2"
    assert table.scan(where).to_arrow()["id"].to_pylist() == [1]
    assert table.verify(deep=True).is_clean
    read = lake.read(f"db.{how}").selectExpr("id", "to_json(v) j").collect()
    assert {row.id: json.loads(row.j) for row in read} == found


@contextmanager
def _set(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Have a session set so, for a while."""
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_filters_in_our_words_find_the_same_rows_on_spark(lake: SparkLake) -> None:
    table = lake.create_table("db.ours", COLUMNS)
    rows = _rows()
    table.append(rows)
    other = rows.slice(0, 1)
    other = other.set_column(0, "id", pa.array([3], pa.int32()))
    other = other.set_column(6, "g", pa.array([point(50, 50)]))
    table.append(other)
    for where in (
        "st_intersects(g, box(0, 0, 5, 5))",
        "st_intersects(w, box(175, -5, -175, 5))",
        "variant_get(v, '$.a', 'long') = 1 and id < 3",
        "n < '1970-01-01' and id < 3",
        "t >= '23:00:00' and id < 3",
        "u = '00010203-0405-0607-0809-0a0b0c0d0e0f'",
        "d38 > 1 and n is not null",
    ):
        wanted = sorted(table.scan(where).to_arrow()["id"].to_pylist())
        assert wanted
        assert _ids(lake.read("db.ours", where=parse_filter(where))) == wanted, where


def test_sql_makes_tables_of_variants_and_times(lake: SparkLake) -> None:
    lake.sql("CREATE TABLE db.made (id INT, v VARIANT, l ARRAY<VARIANT>)")
    lake.sql("INSERT INTO db.made SELECT 1, parse_json('{\"a\": [1]}'), array(parse_json('2'))")
    lake.sql(
        "MERGE INTO db.made t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = parse_json('3')"
    )
    [row] = lake.sql("SELECT to_json(v) v, to_json(l[0]) l FROM db.made").collect()
    assert (row.v, row.l) == ("3", "2")
    told = lake.changes("db.made", images=True).selectExpr("_change_type", "to_json(v) v").collect()
    assert sorted((row._change_type, row.v) for row in told) == [
        ("INSERT", '{"a":[1]}'),
        ("UPDATE_AFTER", "3"),
        ("UPDATE_BEFORE", '{"a":[1]}'),
    ]
