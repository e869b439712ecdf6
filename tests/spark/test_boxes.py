"""`st_intersects(g, box(…))` on Spark: the rows of a scan in one process, and no more files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from icetree.spark.functions.calls import with_functions
from icetree.table.table import Table
from tests.effort import usually
from tests.rows.geometries import collection, line, point, square
from tests.spark.files_read import files_read
from tests.spark.reading import reading
from tests.spark.sql_lake import SqlLake

EMPTY = collection()
#: Rows of each file: a place on a plane, one on the earth.
FILES: list[list[tuple[bytes | None, bytes | None]]] = [
    [(point(1, 1), point(179, 0)), (None, None)],
    [(square(5, 5), line((178, 10), (-178, 10))), (EMPTY, EMPTY)],
    [(point(50, 50, 7), point(-179.5, 5))],
    [(point(-50, 1), point(10, 80)), (point(-51, 1), line((0, 50), (90, 50)))],
]
CONDITIONS = (
    "st_intersects(g, box(0, 0, 5.5, 5.5))",
    "st_intersects(g, box(-60, 0, -5e1, 2)) and id > 0",
    "not st_intersects(g, box(-100, -100, 20, 20))",
    "st_intersects(g, box(49, 49, 51, 51)) or id = 0",
    "st_intersects(s.g, box(49, 49, 51, 51))",
    "st_intersects(w, box(178.5, -10, -178.5, 20))",
    "st_intersects(w, box(40, 55, 50, 65))",
    "st_intersects(w, box(-180, 4, -180, 20)) and st_intersects(g, box(0, 0, 9, 9))",
    "st_intersects(g, box(1000, 1000, 1001, 1001))",
    "st_intersects(g, box(0, 0, 6.5, 60, 60, 7.5))",
    "st_intersects(g, box(0, 0, NULL, -1, 60, 60, NULL, 1))",
)


def _rows(start: int, places: list[tuple[bytes | None, bytes | None]]) -> pa.Table:
    g = pa.array([plane for plane, _ in places], pa.binary())
    return pa.table(
        {
            "id": pa.array(range(start, start + len(places)), pa.int64()),
            "g": g,
            "w": pa.array([earth for _, earth in places], pa.binary()),
            "s": pa.StructArray.from_arrays([g], names=["g"]),
        }
    )


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlLake:
    made = SqlLake(spark, tmp_path_factory.mktemp("lake"))
    _table(made, "t")
    return made


def _table(sql: SqlLake, name: str, **properties: str) -> Table:
    columns: dict[str, Any] = {
        "id": "long",
        "g": "geometry(srid:4326)",
        "w": "geography",
        "s": "struct<g: geometry>",
    }
    table = sql.lake.create_table(f"db.{name}", columns, properties=properties)
    start = 0
    for places in FILES:
        table.append(_rows(start, places))
        start += len(places)
    return table


@pytest.mark.parametrize(
    "where", usually(CONDITIONS, *CONDITIONS[2:4], *CONDITIONS[5:8], CONDITIONS[-2])
)
def test_a_box_finds_the_rows_of_a_scan_in_as_few_files(sql: SqlLake, where: str) -> None:
    scan = sql.lake.table("db.t").scan(where)
    wanted = sorted(scan.to_arrow()["id"].to_pylist())
    tasks = scan.plan().tasks.num_rows
    text = f"SELECT id FROM t WHERE {where}"
    assert [id for (id,) in sql(text)] == wanted
    assert sql.files(text) == tasks
    read = sql.lake.read("db.t", where=where)
    assert sorted(row.id for row in read.collect()) == wanted
    assert files_read(read) == tasks


def test_queries_of_every_form_leave_files_out_by_a_box(sql: SqlLake) -> None:
    inside = "st_intersects(g, box(49, 49, 51, 51))"
    of_t = "st_intersects(t.g, box(49, 49, 51, 51))"
    for text in (
        f"SELECT a.id FROM t AS a WHERE {inside}",
        f"SELECT id FROM (SELECT id, g FROM t) WHERE {inside}",
        f"WITH c AS (SELECT * FROM t) SELECT max(id) FROM c WHERE {inside} GROUP BY id",
        f"SELECT t.id FROM t JOIN (SELECT 4 AS k) ON t.id = k AND {of_t}",
        f"SELECT id FROM db.t WHERE {of_t.replace('t.g', 'db.t.g')}",
        f"SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE {inside}) AND {inside}",
    ):
        assert sql(text) == [(4,)], text
        assert sql.files(text) <= 2, text
    told = sql("SELECT id, st_intersects(g, BOX(0, 0, 9, 9)) FROM t WHERE id < 4")
    assert told == [(0, True), (1, None), (2, True), (3, False)]
    joined = f"SELECT k FROM (SELECT 7 AS k) LEFT JOIN t ON {of_t} AND t.id = 0"
    # Also where no file is left, and a frame of none stands for the table.
    for lazily in (True, False):
        with reading(sql.lake.spark, lazily=lazily):
            assert sql(joined) == [(7,)]


@contextmanager
def _hidden(sql: SqlLake, name: str, *, but: int) -> Iterator[None]:
    """Hide all files but that of a row: whoever looks into one of them fails."""
    held = sql(f"SELECT DISTINCT _file FROM {name} WHERE id != {but}")
    kept = sql(f"SELECT DISTINCT _file FROM {name} WHERE id = {but}")
    others = [Path(file.removeprefix("file:")) for (file,) in held if (file,) not in kept]
    assert others
    for each in others:
        each.rename(each.with_suffix(".hidden"))
    yield
    for each in others:
        each.with_suffix(".hidden").rename(each)


@pytest.mark.parametrize("mode", usually(["copy-on-write", "merge-on-read"], "merge-on-read"))
def test_statements_change_what_is_in_a_box_and_look_into_no_other_file(
    sql: SqlLake, mode: str
) -> None:
    name = mode.replace("-", "_")
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    _table(sql, name, **modes)
    with _hidden(sql, name, but=4):
        sql(f"UPDATE {name} SET id = 44 WHERE st_intersects(g, box(49, 49, 51, 51))")
    with _hidden(sql, name, but=0):
        sql(f"DELETE FROM {name} WHERE st_intersects(w, box(178.9, -1, -179.9, 1))")
    with _hidden(sql, name, but=5):
        sql(
            f"MERGE INTO {name} AS t USING (SELECT 5 AS k) AS s "
            "ON t.id = s.k AND st_intersects(t.g, box(-60, 0, -50, 2)) "
            "WHEN MATCHED AND NOT st_intersects(t.w, box(0, 0, 1, 1)) THEN UPDATE SET id = 55 "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"
        )
    assert [id for (id,) in sql(f"SELECT id FROM {name}")] == [1, 2, 3, 44, 55, 6]
    assert sql.lake.table(f"db.{name}").verify(deep=True).is_clean


@pytest.mark.parametrize(
    ("call", "match"),
    [
        ("st_intersects(id, box(0, 0, 1, 1))", "id.* is no geometry of a table"),
        ("st_intersects(g || g, box(0, 0, 1, 1))", "is no geometry of a table"),
        ("st_intersects(g, box(1, 0, 0, 1))", "has nothing in it"),
        ("st_intersects(w, box(0, 0, 181, 1))", "longitudes go from -180 to 180"),
        ("st_intersects(g, box(0, 1, 1))", "a box has 3 ends"),
        ("st_intersects(g, 5)", "takes a column and a box"),
        ("st_intersects(g)", "takes a column and a box"),
        ("st_intersects(g, box(id, 1, 1, 2))", "a box is of numbers"),
        ("st_intersects(g, box('a', 1, 1, 2))", "a box is of numbers"),
        ("st_intersects(g, box(NULL, 1, 1, 2))", "x and y of a box are numbers"),
        ("st_intersects(g, box(double('NaN'), 1, 1, 2))", "a number, not NaN"),
    ],
)
def test_what_has_no_place_in_a_box_is_refused_in_a_line(
    sql: SqlLake, call: str, match: str
) -> None:
    with pytest.raises(InvalidInput, match=match) as refusal:
        sql(f"SELECT {call} FROM t")
    assert "\n" not in str(refusal.value)
    with pytest.raises(InvalidInput, match=match):
        sql.lake.read("db.t", where=call)


def test_another_function_of_the_name_keeps_it(spark: SparkSession) -> None:
    mine = "SELECT st_intersects(a, b), x.st_intersects(a, box(1)), box(2)"
    spark.udf.register("st_intersects", lambda a, b: a == b, "boolean")
    try:
        assert with_functions(mine, spark) == mine
        ours = with_functions("st_intersects(a, box(0, 0, f(1), 2)) or st_intersects(a, b)", spark)
        wanted = "__icetree_st_intersects(a, __icetree_box(0, 0, f(1), 2)) or st_intersects(a, b)"
        assert ours == wanted
    finally:
        spark.sql("DROP TEMPORARY FUNCTION st_intersects")
