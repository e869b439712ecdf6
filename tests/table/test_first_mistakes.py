"""What somebody mistypes or misunderstands at first is refused with a word of what helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icetree
from icetree.errors import IcetreeError
from icetree.table.lake import Lake
from icetree.table.table import Table

COLUMNS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = icetree.connect("sqlite:///:memory:", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.events", COLUMNS)
    table.append(pa.table({"id": [1], "at": [0]}, schema=COLUMNS))
    table.append(pa.table({"id": [2], "at": [0]}, schema=COLUMNS), branch=None)
    return lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table("db.events")


MISTAKES: dict[str, tuple[Callable[[Lake, Table], object], str]] = {
    "rows as a dict": (lambda _, t: t.append({"id": [2]}), "not as a dict: pyarrow.table makes"),
    "rows as dicts": (lambda _, t: t.append([{"id": 2}]), "pyarrow.Table.from_pylist makes some"),
    "a time before all": (
        lambda _, t: t.scan(at="1999-01-01").to_arrow(),
        "nothing as early as 1999-01-01T00:00:00Z: the table is younger",
    ),
    "a time that is none": (
        lambda _, t: t.scan("at > '2020-13-01'").to_arrow(),
        "'at' is timestamptz: it cannot be compared with '2020-13-01'$",
    ),
    "a type": (lambda _, t: t.edit_schema().__enter__().add("s", "strin"), "did you mean 'string'"),
    "a transform": (
        lambda lake, _: lake.create_table("db.t", COLUMNS, partition_by="buckett(4, id)"),
        "did you mean 'bucket'",
    ),
    "a function": (lambda _, t: t.scan("truncat(4, id) = 1").to_arrow(), "did you mean 'truncate'"),
    "a table to be renamed": (
        lambda lake, _: lake.rename_table("db.event", "db.e"),
        "did you mean db.events",
    ),
    "a table to be copied": (
        lambda lake, _: lake.copy_table("db.event", "db.e"),
        "did you mean db.events",
    ),
    "a column of metadata": (lambda _, t: t.scan(columns=["_fil"]), "did you mean '_file'"),
    "bytes for columns": (lambda _, t: t.scan(columns=b"id"), "columns: 105 is no text"),
    "no id to publish": (lambda _, t: t.publish(None), "wap_id=None: give a text"),
    "no paths": (lambda _, t: t.add_files(None), "paths=None: give the paths"),
    "no mapping": (lambda _, t: t.update("id = 2"), "set='id = 2': give a mapping"),
    "no name of a column": (lambda _, t: t.update({1: 2}), "set=1: give a text"),
    "no number of objects": (
        lambda _, t: t.explain("id > 0", objects=1.5),
        "objects=1.5: allowed are whole numbers of 0 or more",
    ),
    "no name of a property": (lambda *_: icetree.connect(properties={1: 2}), "1 is no property"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_what_helps(lake: Lake, table: Table, name: str) -> None:
    make, says = MISTAKES[name]
    with pytest.raises(IcetreeError, match=says):
        make(lake, table)


def test_a_version_may_be_a_number_of_numpys(table: Table) -> None:
    assert table.export(format_version=np.int64(2)).format_version == 2
