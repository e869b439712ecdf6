"""Rows as frames of Polars and views of DuckDB; frames as rows."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from icetree.table.table import Table
from tests.rows.lake import new_table, rows

COLUMNS = (
    "id long not null, s string, d decimal(9,2), day date, ts timestamp, tz timestamptz, "
    "tm time, u uuid, b binary, f fixed[4], tags list<string>, m map<string,long>, "
    "st struct<a: long, b: string>, g double, flag boolean"
)
NOON = dt.datetime(2026, 1, 2, 12, 30)  # noqa: DTZ001 (of a column without a zone)
ROW: dict[str, Any] = {
    "id": 1,
    "s": "x",
    "d": Decimal("1.25"),
    "day": dt.date(2026, 1, 2),
    "ts": NOON,
    "tz": NOON.replace(tzinfo=dt.timezone.utc),
    "tm": dt.time(1, 2, 3),
    "u": uuid.UUID(int=5),
    "b": b"ab",
    "f": b"abcd",
    "tags": ["a", None],
    "m": {"k": 1},
    "st": {"a": 1, "b": "c"},
    "g": 1.5,
    "flag": True,
}


@pytest.fixture
def table() -> Table:
    """A row with a value of every kind, and one of nulls."""
    made = new_table(COLUMNS)
    full = {**ROW, "u": ROW["u"].bytes, "m": [("k", 1)]}
    made.append(pa.Table.from_pylist([full, {"id": 2}], schema=made.scan().arrow_schema))
    return made


def test_polars_gets_every_type(table: Table) -> None:
    frame = table.scan().to_polars()
    assert frame.columns == list(ROW)
    first, second = frame.drop("u", "m").rows(named=True)
    assert first == {name: value for name, value in ROW.items() if name not in ("u", "m")}
    assert {name for name, value in second.items() if value is not None} == {"id"}
    assert frame["u"].to_list() == [ROW["u"].bytes, None]


def test_polars_gets_the_rows_and_columns_asked_for(table: Table) -> None:
    assert table.scan("id = 2", columns=["id", "_pos"]).to_polars().rows() == [(2, 1)]
    assert table.scan("id = 3").to_polars().shape == (0, len(ROW))


def test_a_polars_frame_is_rows_to_write() -> None:
    table = new_table("country string, n long, tags list<string>", partition_by="country")
    frame = pl.DataFrame({"country": ["DE", "FR"], "n": [1, 2], "tags": [["a"], []]})
    table.append(frame)
    table.replace_partitions(frame.head(1).with_columns(n=7))
    wanted = frame.with_columns(n=pl.Series([7, 2])).to_arrow()
    assert rows(table.scan().to_arrow()) == rows(wanted)


def test_duckdb_gets_every_type(table: Table) -> None:
    found = table.scan().to_duckdb().execute("select * exclude tz from scan order by id")
    names = [column[0] for column in found.description]
    first, second = found.fetchall()
    assert dict(zip(names, first, strict=True)) == {
        name: value for name, value in ROW.items() if name != "tz"
    }
    assert second == (2, *[None] * (len(names) - 1))


def test_duckdb_joins_scans_in_a_connection_of_the_caller(table: Table) -> None:
    with duckdb.connect() as connection:
        table.scan(columns=["id", "tz"]).to_duckdb("left_side", connection=connection)
        table.scan("id = 1", columns=["id"]).to_duckdb("right_side", connection=connection)
        query = "select epoch_ms(tz) from left_side join right_side using (id)"
        assert connection.execute(query).fetchall() == [(ROW["tz"].timestamp() * 1000,)]


def test_a_scan_is_a_stream_of_arrow_that_engines_read_as_it_is(table: Table) -> None:
    plain = table.scan(columns=["id", "s", "st", "tags"])
    wanted = rows(plain.to_arrow())
    assert rows(pa.table(plain)) == wanted
    assert rows(pa.table(plain)) == wanted  # each time anew
    assert rows(pl.DataFrame(plain).to_arrow()) == wanted
    scan = plain
    assert rows(duckdb.sql("from scan order by id").to_arrow_table()) == wanted
    assert scan.to_pandas()["id"].tolist() == [1, 2]


def test_changes_and_appended_rows_are_streams_too(table: Table) -> None:
    table.update({"s": "'y'"}, "id = 1")
    appends = table.scan_appends()
    assert rows(pa.table(appends)) == rows(appends.to_arrow())
    assert appends.to_polars()["id"].to_list() == [1, 2]
    changes = table.changes()
    assert rows(pa.table(changes)) == rows(changes.to_arrow())
    assert duckdb.sql("select count(*) from changes").fetchall() == [(4,)]
    assert changes.to_pandas()["_change_type"].tolist().count("INSERT") == 3


def test_a_scan_explains_itself(table: Table) -> None:
    assert table.scan("id > 5").explain().groups == table.explain("id > 5").groups
    first = table.metadata.current_snapshot_id
    table.delete("id = 1")
    told = table.scan("id > 5", at=first).explain(row_groups=True)
    assert told.groups["objects"].to_pylist() == [1]


def test_rows_come_from_whatever_exports_arrow() -> None:
    made = new_table([("id", "long"), ("s", "string")])
    frame = pl.DataFrame({"id": [1, 2], "s": ["a", "b"]})
    made.append(frame)
    made.append(frame.to_pandas().assign(id=[3, 4]))
    made.append(duckdb.sql("select 5::bigint as id, 'e' as s"))
    made.append(made.scan("id = 5"))
    assert sorted(made.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 5]
    made.delete("id = 5")
    made.upsert(frame.with_columns(s=pl.lit("new")), on=["id"])
    made.upsert(duckdb.sql("select 4::bigint as id, 'd' as s"), on=["id"])
    made.merge(frame.to_pandas(), on=["id"]).when_matched_update({"s": "upper(source.s)"}).run()
    found = made.scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3, 4], "s": ["A", "B", "a", "d"]}
