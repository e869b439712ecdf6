"""Parquet files that are there already, added where they are."""

from __future__ import annotations

import copy
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice

import icetree
from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.spec.entry.metrics import COLUMN_PREFIX
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import law

NOON = datetime(2024, 1, 1, 12)  # noqa: DTZ001  # a time without a zone is what is stored
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "x": [0.5, float("nan"), -0.0]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = icetree.connect("memory://", warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    return lake


def put(tmp_path: Path, name: str, rows: pa.Table, **how: Any) -> Path:
    at = tmp_path / "theirs" / name
    at.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, at, **how)
    return at


def rows_of(table: Table, **how: Any) -> list[dict[str, Any]]:
    return sorted(table.scan(**how).to_arrow().to_pylist(), key=lambda row: row["id"])


def test_files_without_ids_are_added_by_their_names(lake: Lake, tmp_path: Path) -> None:
    at = put(tmp_path, "one.parquet", ROWS, row_group_size=2)
    before = at.read_bytes()
    table = lake.create_table("db.t", ROWS.schema)
    table.add_files(at)
    assert table.scan().to_arrow().drop_columns("x") == ROWS.drop_columns("x")
    assert at.read_bytes() == before
    assert table.inspect.files()["file_path"].to_pylist() == [f"file://{at}"]
    assert "schema.name-mapping.default" in table.properties
    assert lake.table("db.t").verify(deep=True).is_clean
    with table.edit_schema() as schema:
        schema.rename("name", "called")
    assert [row["called"] for row in rows_of(table)] == ["a", None, "c"]


def test_files_with_ids_are_added_by_them(lake: Lake) -> None:
    source = lake.create_table("db.source", ROWS.schema)
    source.append(ROWS)
    [written] = source.inspect.files()["file_path"].to_pylist()
    table = lake.create_table("db.t", ROWS.schema)
    table.add_files([written])
    assert "schema.name-mapping.default" not in table.properties
    assert [row["id"] for row in rows_of(table)] == [1, 2, 3]


def test_ids_of_another_table_are_not_taken_for_the_tables_own(lake: Lake) -> None:
    """Id 1 is another column there: rows would come back under the wrong names."""
    source = lake.create_table("db.source", pa.schema([("other", pa.int64()), ("id", pa.int64())]))
    source.append(pa.table({"other": [9], "id": [1]}))
    [written] = source.inspect.files()["file_path"].to_pylist()
    table = lake.create_table("db.t", pa.schema([("id", pa.int64()), ("other", pa.int64())]))
    with pytest.raises(InvalidInput, match="'other' under field id 1, which is id in the table"):
        table.add_files([written])
    assert table.refresh().current_snapshot is None


def test_stats_come_from_footers(lake: Lake, tmp_path: Path) -> None:
    rows = pa.table({"id": range(1000), "s": [f"{each:020}" for each in range(1000)]})
    at = put(tmp_path, "s.parquet", rows, row_group_size=100)
    table = lake.create_table("db.t", rows.schema, properties={f"{COLUMN_PREFIX}id": "full"})
    table.add_files([at])
    [bounds] = table.inspect.files()["readable_metrics"].to_pylist()
    assert (bounds["id"]["lower_bound"], bounds["id"]["upper_bound"]) == (0, 999)
    assert bounds["s"]["lower_bound"] == "0" * 16
    assert table.scan("id > 5000").plan().tasks.num_rows == 0
    assert table.scan("id = 7").count() == 1
    assert table.scan(f"s = '{7:020}'").count() == 1


def test_a_folder_is_all_the_parquet_files_in_it(lake: Lake, tmp_path: Path) -> None:
    for name in ("a.parquet", "deep/b.parquet", "_hidden/c.parquet", ".d.parquet", "notes.txt"):
        put(tmp_path, name, ROWS)
    told: list[tuple[int, int]] = []
    table = lake.create_table("db.t", ROWS.schema)
    table.add_files(f"{tmp_path}/theirs/", progress=lambda done, of: told.append((done, of)))
    assert table.scan().count() == 6
    assert told == [(1, 2), (2, 2)]
    with pytest.raises(NotFound, match="no Parquet files"):
        table.add_files(f"{tmp_path}/nothing/")


@pytest.mark.parametrize(
    ("column", "spec", "values", "partition"),
    [
        (pa.int64(), "p", [5, 5], 5),
        (pa.date32(), "month(p)", [date(2024, 1, 2), date(2024, 1, 30)], (2024 - 1970) * 12),
        (pa.timestamp("us"), "day(p)", [NOON, NOON], date(2024, 1, 1)),
        (pa.string(), "p", ["x" * 50, "x" * 50], "x" * 50),
        (pa.string(), "truncate(2, p)", ["abc", "abd"], "ab"),
        (pa.int64(), "bucket(4, p)", [7, 7], None),
        (pa.int64(), "p", [None, None], None),
        (pa.float64(), "p", [float("nan"), float("nan")], None),
    ],
)
def test_the_partition_of_a_file_is_told_by_what_is_in_it(
    lake: Lake, tmp_path: Path, column: pa.DataType, spec: str, values: Any, partition: Any
) -> None:
    rows = pa.table({"id": [1, 2], "p": pa.array(values, column)})
    table = lake.create_table("db.t", rows.schema, partition_by=spec)
    table.add_files([put(tmp_path, "p.parquet", rows)])
    [found] = table.inspect.partitions()["partition"].to_pylist()
    if partition is not None:
        assert [*found.values()] == [partition]
    assert table.verify(deep=True).is_clean
    assert [row["id"] for row in rows_of(table)] == [1, 2]


@pytest.mark.parametrize(
    ("column", "spec", "values"),
    [
        (pa.int64(), "p", [5, 6]),
        (pa.int64(), "p", [5, None]),
        (pa.string(), "p", ["x" * 50 + "a", "x" * 50 + "b"]),
        (pa.int64(), "bucket(4, p)", [0, 1, 2, 3, 4, 5, 6, 7]),
        (pa.float64(), "p", [5.0, float("nan")]),
        (pa.date32(), "month(p)", [date(2024, 1, 2), date(2024, 2, 1)]),
    ],
)
def test_a_file_of_several_partitions_is_refused(
    lake: Lake, tmp_path: Path, column: pa.DataType, spec: str, values: Any
) -> None:
    rows = pa.table({"id": range(len(values)), "p": pa.array(values, column)})
    table = lake.create_table("db.t", rows.schema, partition_by=spec)
    with pytest.raises(InvalidInput, match=r"p\.parquet holds rows of several partitions"):
        table.add_files([put(tmp_path, "p.parquet", rows)])
    assert table.refresh().current_snapshot is None


def test_the_partition_of_a_column_that_files_lack_is_in_their_paths(
    lake: Lake, tmp_path: Path
) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
    table = lake.create_table("db.t", schema, partition_by=["country", "day"])
    files = [
        put(tmp_path, f"country={where}/day={day}/x.parquet", pa.table({"id": [number]}))
        for number, (where, day) in enumerate(
            [("DE", "2024-01-01"), ("a%2Fb", "2024-01-02"), ("__HIVE_DEFAULT_PARTITION__", "null")]
        )
    ]
    table.add_files(files)
    assert rows_of(table) == [
        {"id": 0, "country": "DE", "day": date(2024, 1, 1)},
        {"id": 1, "country": "a/b", "day": date(2024, 1, 2)},
        {"id": 2, "country": None, "day": None},
    ]
    assert table.scan("country = 'DE'").plan().tasks.num_rows == 1
    with pytest.raises(InvalidInput, match="no folder country=… in its path"):
        table.add_files([put(tmp_path, "bare.parquet", pa.table({"id": [1]}))])
    odd = put(tmp_path, "country=DE/day=soon/x.parquet", pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="'soon' in its path is no date"):
        table.add_files([odd])


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (pa.table({"id": ["text"]}), "column id is string, which cannot be read as long"),
        (pa.table({"id": [1], "nme": ["x"]}), "'nme' that the table has not.*did you mean 'name'"),
        (
            pa.table({"id": pa.array([None], pa.int64())}),
            "'id' is required, and the file has nulls",
        ),
        (pa.table({"name": ["x"]}), "id"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    lake: Lake, tmp_path: Path, rows: pa.Table, says: str
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = lake.create_table("db.t", schema)
    with pytest.raises(InvalidInput, match=says):
        table.add_files([put(tmp_path, "odd.parquet", rows)])
    assert table.refresh().current_snapshot is None


@pytest.mark.parametrize(
    ("type", "fits", "misfits"),
    [
        ("timestamp", pa.array([1000], pa.timestamp("ns")), pa.array([1001], pa.timestamp("ns"))),
        ("timestamp_ns", pa.array([1], pa.timestamp("us")), pa.array([2**60], pa.timestamp("us"))),
        ("long", pa.array([5], pa.uint64()), pa.array([2**63], pa.uint64())),
        ("int", pa.array([5], pa.uint32()), pa.array([2**31], pa.uint32())),
        ("int", pa.array([5], pa.int64()), pa.array([2**31], pa.int64())),
        ("time", pa.array([1000], pa.time64("ns")), pa.array([1001], pa.time64("ns"))),
        ("float", pa.array([0.5], pa.float16()), pa.array([0.1])),
        ("string", pa.array([b"ok"]), pa.array([b"\xff"])),
        (
            "list<timestamp>",
            pa.array([[1000]], pa.list_(pa.timestamp("ns"))),
            pa.array([[1001]], pa.list_(pa.timestamp("ns"))),
        ),
    ],
    ids=str,
)
def test_a_file_that_is_added_can_be_read(
    lake: Lake, tmp_path: Path, type: str, fits: pa.Array, misfits: pa.Array
) -> None:
    table = lake.create_table("db.t", [("id", "long"), ("v", type)])
    with pytest.raises(InvalidInput, match="cannot be added: column v"):
        table.add_files([put(tmp_path, "misfits.parquet", pa.table({"id": [1], "v": misfits}))])
    # What is refused by its type alone is refused here too; all else is read.
    with suppress(InvalidInput):
        table.add_files([put(tmp_path, "fits.parquet", pa.table({"id": [2], "v": fits}))])
    assert table.refresh().scan().count() == len(table.scan().to_arrow())


def test_a_column_without_a_type_takes_no_values_of_a_file(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", [("id", "long"), ("v", "unknown")])
    nulls = pa.table({"id": [1, 2], "v": pa.array([None, None], pa.string())})
    table.add_files([put(tmp_path, "nulls.parquet", nulls)])
    values = pa.table({"id": [3], "v": ["lost"]})
    for name in ("values.parquet", "deep/values.parquet"):
        with pytest.raises(InvalidInput, match="column 'v' has no type yet"):
            table.add_files([put(tmp_path, name, values)])
    with table.edit_schema() as schema:
        schema.widen("v", "string")
    table.add_files([put(tmp_path, "values.parquet", values)])
    assert [row["v"] for row in rows_of(table)] == [None, None, "lost"]


def test_a_file_that_is_not_there_is_told_as_such_and_not_as_expired(
    lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", ROWS.schema)
    with pytest.raises(NotFound, match=r"nowhere.parquet is not there: give the path"):
        table.add_files([str(tmp_path / "nowhere.parquet")])


def test_a_file_is_in_a_table_once(lake: Lake, tmp_path: Path) -> None:
    at = put(tmp_path, "one.parquet", ROWS)
    table = lake.create_table("db.t", ROWS.schema)
    with pytest.raises(InvalidInput, match="twice"):
        table.add_files([at, f"file://{at}"])
    table.add_files([at])
    with pytest.raises((InvalidInput, AlreadyExists), match="in the table already"):
        table.add_files([at])
    assert table.refresh().scan().count() == 3


def test_what_is_no_parquet_file_is_refused(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", ROWS.schema)
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    for path, error, says in (
        (tmp_path / "text.parquet", InvalidInput, "text.parquet cannot be added"),
        (tmp_path / "gone.parquet", NotFound, "gone.parquet"),
        (7, InvalidInput, "give files"),
        ([], InvalidInput, "no file to add"),
    ):
        with pytest.raises(error, match=says):
            table.add_files([path] if not isinstance(path, list) else path)  # type: ignore[list-item]


def test_a_confined_table_takes_files_of_its_own_folder_alone(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", ROWS.schema, properties={"write.files.confined": "true"})
    with pytest.raises(InvalidInput, match="outside"):
        table.add_files([put(tmp_path, "one.parquet", ROWS)])
    inside = Path(table.location) / "data" / "mine.parquet"
    inside.parent.mkdir(parents=True)
    pq.write_table(ROWS, inside)
    table.add_files([inside])
    assert table.inspect.files()["file_path"].to_pylist() == [str(inside)]


NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)
FLOATS = st.none() | st.floats(width=32)
TEXTS = st.none() | st.text(max_size=20)


@law(25)
@given(
    st.lists(st.tuples(NUMBERS, FLOATS, TEXTS), min_size=1, max_size=30),
    st.integers(1, 10),
    st.data(),
)
def test_no_row_of_a_file_is_pruned_away(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int | None, float | None, str | None]],
    group: int,
    choose: st.DataObject,
) -> None:
    """Whatever the bounds in a footer say: a row that matches by itself is found by a scan."""
    tmp_path = tmp_path_factory.mktemp("law")
    numbers, floats, texts = zip(*rows, strict=True)
    made = pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "n": pa.array(numbers, pa.int32()),
            "x": pa.array(floats, pa.float32()),
            "s": pa.array(texts, pa.string()),
        }
    )
    lake = icetree.connect("memory://", warehouse=str(tmp_path))
    lake.create_namespace("db")
    wide = pa.schema(
        [("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64()), ("s", pa.string())]
    )
    table = lake.create_table("db.t", wide)
    table.add_files([put(tmp_path, "law.parquet", made, row_group_size=group)])
    at = choose.draw(st.integers(0, len(rows) - 1))
    number, real, text = rows[at]
    asked: list[ice.BooleanExpression] = [
        ice.IsNull("n") if number is None else ice.EqualTo("n", number),
        ice.IsNull("s") if text is None else ice.EqualTo("s", text),
    ]
    if real is None:
        asked.append(ice.IsNull("x"))
    elif np.isnan(real):
        asked.append(ice.IsNaN("x"))
    else:
        asked.append(ice.LessThanOrEqual("x", float(real)))
    for where in asked:
        assert at in table.scan(where).to_arrow()["id"].to_pylist()


def test_what_only_the_path_says_is_never_read_as_null(lake: Lake, tmp_path: Path) -> None:
    """A table that is not partitioned by the column has no place to keep the value."""
    at = put(tmp_path, "country=DE/one.parquet", pa.table({"id": [1]}))
    columns = pa.schema([("id", pa.int64()), ("country", pa.string())])
    table = lake.create_table("db.t", columns)
    with pytest.raises(InvalidInput, match=r"country=DE.*partitioned by 'country'"):
        table.add_files(at)
    assert table.refresh().current_snapshot is None
    # A column that the file has is read from there, whatever the path says.
    full = pa.table({"id": [1], "country": ["FR"]})
    table.add_files(put(tmp_path, "country=DE/two.parquet", full))
    assert rows_of(table) == full.to_pylist()


def test_a_dry_run_looks_and_refuses_as_ever_and_changes_nothing(
    lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", ROWS.schema)
    at = put(tmp_path, "one.parquet", ROWS)
    before = table.state, {*tmp_path.rglob("*")}
    would = table.add_files(at, dry_run=True)
    assert would.files.added == 1
    assert (table.refresh().state, {*tmp_path.rglob("*")}) == before
    # Somebody else adds it, which the handle has not seen yet.
    stale = copy.copy(table)
    assert table.add_files(at).files == would.files
    with pytest.raises(InvalidInput, match="is in the table already"):
        stale.add_files(at, dry_run=True)
    with pytest.raises(NotFound, match="no branch 'x'"):
        table.add_files(at, dry_run=True, branch="x")
    assert table.refresh().scan().count() == 3
