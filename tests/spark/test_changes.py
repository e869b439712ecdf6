"""The change feed on Spark tells what the one in this process tells."""

from __future__ import annotations

import math
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    UUIDType,
)
from pyspark.sql import DataFrame, SparkSession

from icetree.errors import NotFound
from icetree.spark import SparkLake, local
from icetree.spark.changes.feed import changes
from icetree.table.table import Table
from tests.table.changing import compact, data_files, delete_equal, delete_rows, now, written

_FIELDS = (
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", StringType(), required=False),
    NestedField(3, "tags", ListType(4, LongType(), element_required=False), required=False),
    NestedField(5, "score", DoubleType(), required=False),
    NestedField(
        6, "attrs", MapType(7, StringType(), 8, LongType(), value_required=False), required=False
    ),
)
_ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.int64()))),
        pa.field("score", pa.float64()),
        pa.field("attrs", pa.map_(pa.string(), pa.int64())),
    ]
)
_names = count()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SparkLake:
    lake = local(tmp_path, spark=spark)
    lake.create_namespace("db")
    return lake


def _table(lake: SparkLake, *, identified: bool = True, **how: Any) -> Table:
    ids = [1] if identified else []
    schema = Schema(*_FIELDS, identifier_field_ids=ids)
    return lake.create_table(f"db.t{next(_names)}", schema, **how)


def _some(*rows: tuple[int, str | None]) -> pa.Table:
    found = [
        {
            "id": id,
            "v": v,
            "tags": [id, None] if id % 2 else None,
            "score": math.nan if id % 3 == 0 else id / 2,
            "attrs": [("a", id), ("b", None)] if id % 2 else None,
        }
        for id, v in rows
    ]
    return pa.Table.from_pylist(found, _ARROW)


def _told(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def _arrow(rows: DataFrame) -> pa.Table:
    return rows.toArrow()


#: Whether to tell what changes come to, and whether to tell updates.
_USUAL = ((False, True),)


def _same(lake: SparkLake, table: Table, *, forms: Any = _USUAL, **range: Any) -> None:
    """Require that both feeds tell the same, with `net` and `images` as the forms say."""
    for net, images in forms:
        here = lake.table(str(table.name)).changes(**range).to_arrow(net=net, images=images)
        there = _arrow(changes(lake, str(table.name), net=net, images=images, **range))
        assert there.column_names == here.column_names
        assert _told(there) == _told(here), f"net={net} images={images}"


def _eventful(table: Table) -> list[int]:
    """Change a table in every way there is; return its snapshots."""
    seen = []
    table.append(_some(*((id, f"v{id}") for id in range(8))))
    seen.append(now(table))
    table.append(_some(*((id, f"v{id}") for id in range(8, 12)), (1, "twice")))
    seen.append(now(table))
    delete_rows(table, [2, 9])
    seen.append(now(table))
    delete_rows(table, [3])  # a DV that takes the place of another
    seen.append(now(table))
    delete_equal(table, [4, 10], add=_some((4, "new"), (10, "v10")))  # 10 comes back as it was
    seen.append(now(table))
    delete_rows(table, [4, 5])  # beside equality deletes
    seen.append(now(table))
    rows = table.scan().to_arrow()
    lineage = table.scan(columns=[*_ARROW.names, "_row_id", "_last_updated_sequence_number"])
    kept = lineage.to_arrow()
    at = kept.column_names.index("v")
    values = [f"{v}!" if id == 6 else v for id, v in zip(*_columns(rows), strict=True)]
    updated = kept.set_column(at, "v", pa.array(values))
    table.overwrite_files(data_files(table), written(table, updated, keep_lineage=True))
    seen.append(now(table))  # copy on write: one row of many has changed
    compact(table)
    seen.append(now(table))
    table.append(_some((1, "twice"), (1, "twice")))
    delete_rows(table, [1])
    seen.append(now(table))
    return seen


def _columns(rows: pa.Table) -> tuple[list[Any], list[Any]]:
    return rows["id"].to_pylist(), rows["v"].to_pylist()


def test_an_eventful_table_has_the_same_changes_on_spark(lake: SparkLake) -> None:
    table = _table(lake)
    seen = _eventful(table)
    _same(lake, table)
    _same(lake, table, forms=[(True, True)], since=seen[1], upto=seen[5])


@pytest.mark.long
def test_an_eventful_table_has_the_same_net_changes_on_spark(lake: SparkLake) -> None:
    table = _table(lake)
    seen = _eventful(table)
    _same(lake, table, forms=[(True, True), (True, False)])
    _same(lake, table, forms=[(False, False), (True, False)], since=seen[1], upto=seen[5])


def test_without_identifier_fields_updates_are_told_by_row_id(lake: SparkLake) -> None:
    table = _table(lake, identified=False)
    seen = _eventful(table)
    _same(lake, table, since=seen[3])


@pytest.mark.long
def test_every_single_snapshot_has_the_same_changes_on_spark(lake: SparkLake) -> None:
    table = _table(lake)
    seen = _eventful(table)
    for since, upto in pairwise(seen[2:6]):
        here = lake.table(str(table.name)).changes(since, upto).to_arrow(images=True)
        assert _told(_arrow(changes(lake, str(table.name), since, upto, images=True))) == _told(
            here
        )


def test_a_schema_that_has_changed_is_that_of_all_rows(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some((1, "a"), (2, "b")))
    first = now(table)
    with table.edit_schema() as edit:
        edit.rename("v", "w")
        edit.add("n", IntegerType())
        edit.drop("tags")
    more = _some((2, "c")).drop_columns(["tags"]).rename_columns(["id", "w", "score", "attrs"])
    more = more.append_column("n", pa.array([7], pa.int32()))
    delete_equal(table, [2], add=more)
    _same(lake, table)
    _same(lake, table, since=first)


def test_a_type_that_spark_lacks_goes_through_our_own_reader(lake: SparkLake) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "key", UUIDType(), required=False),
        identifier_field_ids=[1],
    )
    table = lake.create_table("db.uuids", schema)
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), ("key", pa.binary(16))])
    rows = [{"id": id, "key": bytes([id]) * 16} for id in range(4)]
    table.append(pa.Table.from_pylist(rows, arrow))
    delete_rows(table, [1])
    delete_equal(table, [2])
    here = table.changes().to_arrow(images=True)
    there = _arrow(changes(lake, "db.uuids", images=True))
    as_text = [
        {**row, "key": None if row["key"] is None else str(row["key"])} for row in here.to_pylist()
    ]
    assert sorted(map(repr, there.to_pylist())) == sorted(map(repr, as_text))
    assert there.num_rows == 6


def test_columns_are_those_asked_for_and_compared(lake: SparkLake) -> None:
    table = _table(lake)
    table.append(_some((1, "a"), (2, "b")))
    delete_equal(table, [1], add=_some((1, "changed")))
    name = str(table.name)
    for columns in (["v"], ["_row_id", "v", "id"]):
        here = table.changes().to_arrow(images=True, columns=columns)
        there = _arrow(changes(lake, name, columns=columns, images=True))
        assert there.column_names == here.column_names
        assert _told(there) == _told(here)
    with pytest.raises(NotFound, match="no column"):
        changes(lake, name, columns=["nothing"])


def test_a_range_without_changes_has_no_rows(lake: SparkLake) -> None:
    table = _table(lake)
    assert changes(lake, str(table.name)).count() == 0
    table.append(_some((1, "a")))
    before = now(table)
    compact(table)
    found = changes(lake, str(table.name), before)
    assert found.count() == 0
    assert found.columns == [
        *_ARROW.names,
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    ]


def test_a_partitioned_table_in_leaves_has_the_same_changes_on_spark(lake: SparkLake) -> None:
    table = _table(
        lake,
        partition_by=["bucket(2, id)"],
        properties={"write.root.max-data-entries": "1", "write.root.max-delete-entries": "1"},
    )
    table.append(_some(*((id, "x") for id in range(6))))
    delete_rows(table, [0, 5])
    table.delete_files(data_files(table)[:1])
    _same(lake, table, forms=[(False, False)])


def test_an_equality_delete_that_two_commits_have_to_do_with_is_told_once(lake: SparkLake) -> None:
    table = _table(lake, properties={"write.update.mode": "copy-on-write"})
    table.append(_some((1, "old"), (2, "old")))
    table.append(_some((5, "old"), (6, "old")))
    delete_equal(table, [1, 5], add=_some((1, "new"), (5, "new")))
    since = now(table)
    lake.update(str(table.name), {"v": "'x'"}, "id % 10 = 2")
    lake.update(str(table.name), {"v": "'y'"}, "id % 10 = 6")
    _same(lake, table, since=since, forms=((False, True), (True, True)))
