"""The law of types with Iceberg Java: it reads what we export, and we read what it makes of that."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from decimal import Context
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import icetree
from icetree.spec.schema.types import type_text
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import law
from tests.java import IcebergJava, iceberg_java
from tests.java_copy import CopyingJava
from tests.rows.drawn import (
    NEAR,
    Column,
    named,
    nested,
    plain,
    rows_of,
    schema_of,
    spelled,
    told,
    without,
)

KEPT = [0, 2, 3, 5]
#: The one decimal of 38 digits that falls into a partition of 39, which there is not.
_BEYOND = -(10**38 - 1)


def _partitioned(column: Column) -> Column:
    text, arrow, values = column
    if text != "decimal(38, 2)":
        return column
    return text, arrow, values.filter(lambda value: int(value.scaleb(2, _EXACT)) != _BEYOND)


_EXACT = Context(prec=40)
#: Java has no reader for places yet.
_READ = [_partitioned(each) for each in without(NEAR, "geo")]
#: How tables are partitioned: by columns of `_READ`, each in a way that its type takes. Not by fixed
#: ones, of which Java 1.11 reads no manifest but its own (`test_types` shows it).
_PARTS = {
    "uuid": "bucket(3, {})",
    "time": "{}",
    "timestamp_ns": "day({})",
    "timestamptz_ns": "hour({})",
    "timestamptz": "month({})",
    "decimal(38, 2)": "truncate(2, {})",
    "binary": "truncate(2, {})",
    "boolean": "{}",
}


@pytest.fixture(scope="module")
def java() -> Iterator[IcebergJava]:
    with iceberg_java() as java:
        yield java


@pytest.fixture(scope="module")
def copying(java: IcebergJava) -> CopyingJava:
    return CopyingJava(java)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    place = tmp_path_factory.mktemp("drawn")
    address = f"sqlite:///{place}/catalog.db"
    with icetree.connect(address, warehouse=str(place / "lake")) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.mark.parametrize("format", ["parquet", "avro", "orc"])
@law(2, usual=1, shrinks=False)
@given(data=st.data())
def test_rows_of_every_type_and_nesting_go_to_java_and_come_back(
    java: IcebergJava,
    copying: CopyingJava,
    lake: Lake,
    data: st.DataObject,
    format: str,
) -> None:
    there = _told_in(format)
    columns = named([*there, *data.draw(st.lists(nested(there), min_size=4, max_size=4))])
    parts = [data.draw(rows_of(columns, start, 3)) for start in (0, 3)]
    wanted = pa.concat_tables(parts).take(pa.array(KEPT))
    # The simplest example is of nulls alone.
    assume(not any(wanted[name].null_count == len(KEPT) for name in columns))
    for name in ("db.ours", "db.theirs"):
        lake.drop_table(name, missing_ok=True)
    spec = [_PARTS[type].format(name) for name, (type, _, _) in columns.items() if type in _PARTS]
    written = {"write.format.default": format}
    ours = lake.create_table("db.ours", schema_of(columns), partition_by=spec, properties=written)
    for part in parts:
        ours.append(part)
    ours.delete("id in (1, 4)")
    exported = ours.export()
    folder = Path(tempfile.mkdtemp(dir=Path(ours.location).parent)) / "t"
    made = copying.copied(java.table(exported.metadata_location), str(folder), format)
    theirs = lake.register_table("db.theirs", made)
    # Of ORC, Java reads maps in an order of its own.
    how = {"maps_in_order": format != "orc"}
    _require_same(theirs, wanted, **how)
    theirs.upgrade()
    _require_same(theirs, wanted, **how)
    assert _partitions(theirs) == _partitions(ours)
    for name in columns:
        nulls = theirs.scan(f"{name} is null", columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted(nulls) == [
            id for id, each in zip(KEPT, wanted[name], strict=True) if not each.is_valid
        ]
    _require_found(theirs, columns, wanted)
    theirs.append(parts[0].slice(1, 1))
    theirs.delete("id in (0, 1)")
    _require_same(theirs, wanted.slice(1), **how)
    assert theirs.verify(deep=True).is_clean


def _told_in(format: str) -> list[Column]:
    """Return the columns that files of a format hold, with the values that Java tells in them."""
    if format == "parquet":
        return _READ
    rest = without(_READ, "variant")
    return [_beside_the_last_second(each) for each in rest] if format == "orc" else rest


def _beside_the_last_second(column: Column) -> Column:
    """Return a column of times without those that ORC Java tells a second late, to itself as well.

    Its writer stores them as it stores times of the second after; of those that Arrow stores, Java reads all but
    the last millisecond a second early.
    """
    text, arrow, values = column
    if not pa.types.is_timestamp(arrow):
        return column
    units = 10**3 if arrow.unit == "us" else 10**6
    return text, arrow, values.filter(lambda time: not -999 * units <= time < 0)


def _require_same(table: Table, wanted: pa.Table, **how: bool) -> None:
    found = table.scan().to_arrow().sort_by("id")
    for name in wanted.column_names:
        same = told(found[name], **how) == told(wanted[name], **how)
        assert same, (name, table.schema.find_field(name))


def _require_found(table: Table, columns: Mapping[str, Column], wanted: pa.Table) -> None:
    """Require that a filter finds every time, whatever bounds Java wrote."""
    for name, (type, arrow, _) in columns.items():
        if pa.types.is_timestamp(arrow):
            for id, time in zip(KEPT, plain(wanted[name]).to_pylist(), strict=True):
                if time is not None:
                    found = table.scan(f"{name} = {spelled(type, time)}", columns=["id"])
                    assert id in found.to_arrow()["id"].to_pylist(), (type, time)


def _partitions(table: Table) -> list[str]:
    found = table.inspect.partitions()
    return sorted(told(found["partition"]))


def test_a_table_of_every_type_that_java_makes_is_opened_and_written_to(
    copying: CopyingJava, lake: Lake
) -> None:
    """Places among them, which Java cannot write, and a column without a type."""
    columns = {"id": "int", **{f"c{at}": each[0] for at, each in enumerate(NEAR)}, "n": "unknown"}
    like = lake.create_table("db.like", columns)
    [document] = [each for each in like.metadata.schemas if each["schema-id"] == 0]
    folder = Path(like.location).with_name("java-empty")
    table = lake.register_table("db.made", copying.empty(json.dumps(document), str(folder)))
    assert [type_text(field.field_type) for field in table.schema.fields] == list(columns.values())
    table.upgrade()
    place = next(at for at, each in enumerate(NEAR) if each[0] == "geography")
    table.append(pa.table({"id": pa.array([1], pa.int32()), f"c{place}": [None]}))
    assert table.scan(f"c{place} is null").count() == 1
