"""How plans tell the partitions of files, in the JSON of the REST protocol."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.plan.planning import NUMBERS, ask, at_most, plan

PARTITIONS = {
    "o": (pa.bool_(), True, True),
    "i": (pa.int32(), -3, -3),
    "l": (pa.int64(), 2**62, 2**62),
    "f": (pa.float32(), 0.5, 0.5),
    "d": (pa.float64(), 3.0, 3.0),
    "dec": (pa.decimal128(9, 2), Decimal("-1.50"), "-1.50"),
    "dt": (pa.date32(), dt.date(2020, 2, 29), "2020-02-29"),
    "tm": (pa.time64("us"), dt.time(1, 2, 3), "01:02:03.000000"),
    "ts": (
        pa.timestamp("us"),
        dt.datetime(1969, 1, 2, 3),  # noqa: DTZ001 (of a column without a zone)
        "1969-01-02T03:00:00.000000",
    ),
    "tz": (
        pa.timestamp("us", "UTC"),
        dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc),
        "2020-01-02T00:00:00.000000+00:00",
    ),
    "s": (pa.string(), 'a "quoted" é', 'a "quoted" é'),
    "u": (pa.uuid(), uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    "b": (pa.binary(), b"\x00\xff", "00FF"),
    "x": (pa.binary(2), b"\x00\xff", "00FF"),
    "null": (pa.string(), None, None),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_is_told_by_its_type(client: Client, lake: Lake, name: str) -> None:
    type, value, told = PARTITIONS[name]
    table = lake.create_table("db.t", pa.schema([("x", type)]), partition_by=["x"])
    table.append(pa.table({"x": pa.array([value], type)}))
    [task] = ask(client).json["file-scan-tasks"]
    assert task["data-file"]["partition"] == [told]


def test_partitions_are_told_in_the_order_of_each_spec(client: Client, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))])
    table = lake.create_table("db.t", schema, partition_by=["bucket(4, id)"])
    row = pa.table({"id": [1], "ts": [dt.datetime(2020, 3, 4, 5)]}, schema=schema)  # noqa: DTZ001
    table.append(row)
    with table.edit_spec() as edit:
        edit.remove("bucket(4, id)")
        for term in ("day(ts)", "bucket(4, id)"):
            edit.add(term)
    for term in ("month(ts)", "hour(ts)", "year(ts)"):
        with table.edit_spec() as edit:
            edit.add(term)
    table.append(row)
    tasks = ask(client).json["file-scan-tasks"]
    found = {task["data-file"]["spec-id"]: task["data-file"]["partition"] for task in tasks}
    assert sorted(found.values(), key=len) == [[0], ["2020-03-04", 0, 602, 439805, 50]]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_partition_that_json_cannot_tell_is_read_as_null_by_nobody(
    client: Client, lake: Lake, value: float, kind: pa.DataType
) -> None:
    """Java takes values of such columns from the tuple, so that it would read null."""
    schema = pa.schema([("x", kind), ("id", pa.int64())])
    table = lake.create_table("db.t", schema, partition_by=["x"])
    table.append(pa.table({"x": pa.array([None, 1.0], kind), "id": [1, 2]}))
    found = ask(client).json["file-scan-tasks"]
    assert sorted(str(task["data-file"]["partition"]) for task in found) == ["[1.0]", "[None]"]
    table.append(pa.table({"x": pa.array([value], kind), "id": [3]}))
    for body in ({}, {"filter": at_most(3)}):
        assert ask(client, **body).error == (406, "UnsupportedOperationException")
    assert len(plan(client, filter={"type": "eq", "term": "x", "value": 1.0}).file_scan_tasks) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_partition_that_json_cannot_tell_rules_no_row_out(lake: Lake, value: float) -> None:
    schema = pa.schema([("x", pa.float64()), ("id", pa.int64())])
    table = lake.create_table("db.t", schema, partition_by=["x"])
    table.append(pa.table({"x": [value, value, 1.0, 1.0], "id": [1, 2, 1, 2]}))
    client = Client(Server(lake), headers={"x-client-version": "PyIceberg 0.12.0"})
    tasks = ask(client, filter=at_most(1)).json["file-scan-tasks"]
    left = {str(task["data-file"]["partition"]): task["residual-filter"] for task in tasks}
    # A client that takes the partition for null must not judge `x` by that.
    null = {"type": "is-null", "term": "x"}
    either = {"type": "or", "left": at_most(1), "right": null}
    assert left == {"[1.0]": at_most(1), "[]": either}


def test_pyiceberg_is_told_no_partition_with_a_null_which_it_cannot_read(
    lake: Lake,
) -> None:
    table = lake.create_table("db.t", NUMBERS, partition_by=["s", "id"])
    table.append(pa.table({"id": [1, 2], "s": ["a", None]}))
    theirs = Client(Server(lake), headers={"x-client-version": "PyIceberg 0.12.0"})
    found = [task.data_file.partition for task in plan(theirs).file_scan_tasks]
    assert sorted(found, key=len) == [[], ["a", 1]]
