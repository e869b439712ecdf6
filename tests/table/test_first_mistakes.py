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
    lake.create_namespace("db.raw")
    lake.create_view("db.totals", "SELECT 1 AS n", "n int")
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
    "a namespace to be renamed to": (
        lambda lake, _: lake.rename_table("db.events", "dbb.e"),
        r"did you mean db\?$",
    ),
    "a namespace to be copied to": (
        lambda lake, _: lake.copy_table("db.events", "dbb.e"),
        r"did you mean db\?$",
    ),
    "a namespace to be dropped": (
        lambda lake, _: lake.drop_namespace("dbb"),
        r"did you mean db\?$",
    ),
    "a namespace to be described": (
        lambda lake, _: lake.namespace_properties("dbb"),
        r"did you mean db\?$",
    ),
    "a namespace to be changed": (
        lambda lake, _: lake.update_namespace("dbb", {"a": "1"}),
        r"did you mean db\?$",
    ),
    "a namespace in one": (lambda lake, _: lake.namespaces("dbb"), r"did you mean db\?$"),
    "a namespace within one": (lambda lake, _: lake.tables("db.raww"), r"did you mean db.raw\?$"),
    "a namespace of views": (lambda lake, _: lake.views("dbb"), r"did you mean db\?$"),
    "a namespace of a folder": (
        lambda lake, _: lake.snapshot_table("dbb.e", "/nowhere"),
        r"did you mean db\?$",
    ),
    "a view": (lambda lake, _: lake.view("db.total"), r"did you mean db.totals\?$"),
    "a view to be dropped": (lambda lake, _: lake.drop_view("db.total"), "did you mean db.totals"),
    "a view to be renamed": (
        lambda lake, _: lake.rename_view("db.total", "db.t"),
        r"did you mean db.totals\?$",
    ),
    "a namespace of a view": (
        lambda lake, _: lake.rename_view("db.totals", "dbb.totals"),
        r"namespace dbb.*did you mean db\?$",
    ),
    "no view near": (lambda lake, _: lake.view("db.xyz"), "there are db.totals$"),
    "no view at all": (lambda lake, _: lake.view("db.raw.xyz"), "namespace db.raw has no views$"),
    "a column of statistics": (
        lambda _, t: t.maintenance.compute_table_stats(columns=["idd"]),
        "did you mean 'id'",
    ),
    "a column of a source": (
        lambda _, t: (
            t.merge(pa.table({"id": [1], "att": [0]}), on=["id"]).when_matched_update_all().run()
        ),
        "has no column 'at'.*did you mean 'att'",
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
