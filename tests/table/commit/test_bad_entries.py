"""Entries that a caller hands in and that cannot be: a sentence for the caller, and no change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput
from icetree.spec.entry.entry import Content, Entry, Status, only, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.store.memory import MemoryStore
from icetree.table.commit import validate
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.lake import data_file, new_table, place, vector

#: (what is handed in, a word of the sentence), told what is good.
DATA: list[tuple[dict[str, Any], str]] = [
    ({"location": None}, "location"),
    ({"location": ""}, "empty"),
    ({"location": 7}, "location"),
    ({"location": b"\xff"}, "location"),
    ({"file_format": "csv"}, "file_format"),
    ({"file_format": None}, "file_format"),
    ({"record_count": None}, "record_count"),
    ({"record_count": -1}, "record_count"),
    ({"record_count": "ten"}, "record_count"),
    ({"record_count": 2**63}, "record_count"),
    ({"file_size_in_bytes": None}, "file_size_in_bytes"),
    ({"file_size_in_bytes": -1}, "file_size_in_bytes"),
    ({"content_type": None}, "content_type"),
    ({"content_type": 9}, "content_type"),
    ({"content_type": Content.DATA_MANIFEST}, "content_type"),
    ({"content_type": Content.MANIFEST_DV}, "content_type"),
    ({"status": Status.DELETED}, "status"),
    ({"status": 7}, "status"),
    ({"partition_spec_id": None}, "partition spec"),
    ({"partition_spec_id": 5}, "partition spec"),
    ({"sort_order_id": "x"}, "sort_order_id"),
    ({"equality_ids": [1]}, "equality_ids"),
    ({"split_offsets": [9, 4]}, "split_offsets"),
    ({"split_offsets": [4, 4]}, "split_offsets"),
    ({"split_offsets": 4}, "split_offsets"),
    ({"dv_offset": 4}, "dv_offset"),
    ({"dv_inline_content": b"x"}, "dv_inline_content"),
    ({"referenced_file": place("a")}, "referenced_file"),
    ({"added_files_count": 1}, "added_files_count"),
    ({"min_sequence_number": 1}, "min_sequence_number"),
    ({"first_row_id": -1}, "first_row_id"),
    ({"sequence_number": -1}, "sequence_number"),
    ({"stats": {1: FieldStats(lower=9, upper=1)}}, "lower bound above upper"),
    ({"stats": {1: FieldStats(lower="a", upper="b")}}, "bounds"),
    ({"stats": {1: FieldStats(values=3, nulls=4)}}, "more nulls than values"),
    ({"stats": {1: FieldStats(values=-3)}}, "negative"),
    ({"stats": {77: FieldStats(values=3)}}, "77"),
    ({"stats": {1: 7}}, "stats"),
    ({"stats": None}, "stats"),
]
VECTORS: list[tuple[dict[str, Any], str]] = [
    ({"referenced_file": None}, "referenced_file"),
    ({"file_format": "parquet"}, "puffin"),
    ({"dv_offset": None}, "dv_offset"),
    ({"dv_size_in_bytes": None}, "dv_size_in_bytes"),
    ({"dv_offset": -4}, "dv_offset"),
    ({"dv_size_in_bytes": -4}, "dv_size_in_bytes"),
    ({"dv_inline_content": b"x"}, "dv_inline_content"),
    ({"dv_added_positions": b"x"}, "dv_added_positions"),
    ({"first_row_id": 3}, "first_row_id"),
]

DOORS: dict[str, Callable[[Table, list[Entry]], object]] = {
    "append_files": lambda table, files: table.append_files(files),
    "row_delta": lambda table, files: table.row_delta(files),
    "overwrite_files": lambda table, files: table.overwrite_files([place("a")], files),
    "overwrite": lambda table, files: table.overwrite("n >= 0", files),
    "replace_partitions": lambda table, files: table.replace_partitions(files),
    "rewrite": lambda table, files: table.rewrite([place("a")], files),
}


@pytest.fixture(scope="module")
def table() -> Table:
    made = new_table()
    made.append_files([data_file("a")])
    return made


@pytest.mark.parametrize("door", DOORS)
def test_a_bad_entry_is_refused_at_every_door(table: Table, door: str) -> None:
    before = table.refresh().state
    for change, word in DATA:
        with pytest.raises(InvalidInput) as refused:
            DOORS[door](table, [replace(data_file("x"), **change)])
        assert word in str(refused.value), (change, refused.value)
        assert "\n" not in str(refused.value)
        with pytest.raises(InvalidInput):
            DOORS[door](table, [data_file("y"), replace(data_file("x"), **change)])
    assert table.refresh().state == before


def test_a_bad_deletion_vector_is_refused(table: Table) -> None:
    before = table.refresh().state
    for change, word in VECTORS:
        with pytest.raises(InvalidInput) as refused:
            table.row_delta([replace(vector("v", "a"), **change)])
        assert word in str(refused.value), (change, refused.value)
    assert table.refresh().state == before


@pytest.mark.parametrize(
    "change",
    [
        {"record_count": pa.array(["ten"])},
        {"location": pa.array([7])},
        {"split_offsets": pa.array([4])},
        {"1:lower": pa.array(["x"])},
        {"1:values": pa.array(["x"])},
        {"1:values": pa.array([-4])},
        {"unheard": pa.array([1])},
        {"status": pa.array([2], pa.int32())},
    ],
    ids=lambda change: str(*change),
)
def test_a_bad_column_is_refused_at_every_door(table: Table, change: dict[str, pa.Array]) -> None:
    good = to_table([data_file("x")], table.metadata.shape())
    before = table.refresh().state
    for name, column in change.items():
        at = good.schema.get_field_index(name)
        bad = good.append_column(name, column) if at < 0 else good.set_column(at, name, column)
        for enter in DOORS.values():
            with pytest.raises(InvalidInput, match=name.partition(":")[0]):
                enter(table, bad)
    assert table.refresh().state == before


def test_columns_of_wider_types_are_taken_as_they_mean() -> None:
    made = new_table()
    good = to_table([data_file("x")], made.metadata.shape())
    for name, type in (
        ("location", pa.large_string()),
        ("file_format", pa.dictionary(pa.int8(), pa.string())),
        ("record_count", pa.int32()),
    ):
        at = good.schema.get_field_index(name)
        good = good.set_column(at, name, good[name].cast(type))
    made.append_files(good)
    assert made.inspect.files()["record_count"].to_pylist() == [10]


def test_two_entries_of_one_file_are_refused_at_every_door(table: Table) -> None:
    before = table.refresh().state
    for enter in DOORS.values():
        with pytest.raises(InvalidInput, match=r"data/x\.parquet"):
            enter(table, [data_file("x"), data_file("x")])
    with pytest.raises(InvalidInput, match=r"data/a\.parquet"):
        table.row_delta([vector("v", "a"), vector("w", "a")])
    assert table.refresh().state == before


def test_a_commit_looks_at_its_files_once_however_many_columns_are_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    looks = []
    for count in (2, 20):
        columns = pa.schema([pa.field(f"c{at}", pa.int64(), nullable=False) for at in range(count)])
        table = lake.create_table(f"db.t{count}", columns)
        looked: list[pa.Table] = []

        def watched(entries: pa.Table, which: object, looked: list[pa.Table] = looked) -> pa.Table:
            looked.append(entries)
            return only(entries, which)

        monkeypatch.setattr(validate, "only", watched)
        table.append(pa.table({name: [1] for name in columns.names}, columns))
        looks.append(len(looked))
    assert looks[0] == looks[1] > 0
