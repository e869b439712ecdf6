"""Entries as columns: stacking them, and telling their kinds apart."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.spec.entry import entry
from icetree.spec.entry.entry import BASE_COLUMNS, Content, Entries, Entry, Status
from icetree.spec.entry.stats import FieldStats, column
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape

SHAPE = Shape(schema=Schema(*(NestedField(id, f"c{id}", LongType()) for id in (1, 2))))


def file(name: str, *fields: int, **facts: object) -> Entries:
    stats = {id: FieldStats(values=id) for id in fields}
    return entry.to_table([Entry(location=name, stats=stats, **facts)], SHAPE)


def test_entries_are_stacked_in_order_whatever_stats_they_have() -> None:
    parts = [file("a"), file("b", 1), file("c", 1), file("d", 2, 1), file("e")]
    found = entry.concat(parts)
    assert found["location"].to_pylist() == ["a", "b", "c", "d", "e"]
    assert found[column(1, "values")].to_pylist() == [None, 1, 1, 1, None]
    assert found[column(2, "values")].to_pylist() == [None, None, None, 2, None]
    assert tuple(found.column_names[: len(BASE_COLUMNS)]) == BASE_COLUMNS


def test_few_tables_are_stacked_as_they_are() -> None:
    one = file("a", 1)
    assert entry.concat([]).schema == entry.BASE_SCHEMA
    assert entry.concat([one]) is one
    assert entry.concat([one, one.slice(0, 0)]).equals(one)


def test_columns_of_two_types_are_not_stacked() -> None:
    one = file("a", 1)
    name = column(1, "values")
    other = one.set_column(one.column_names.index(name), name, pa.array(["x"]))
    with pytest.raises(pa.ArrowTypeError):
        entry.concat([one, other])


def test_a_data_dv_is_known_by_its_data_file_and_other_files_by_their_location() -> None:
    deletes = {"content_type": Content.POSITION_DELETES, "referenced_file": "a"}
    files = entry.concat(
        [file("a"), file("v", file_format="puffin", **deletes), file("p", **deletes)]
    )
    assert entry.is_data_dv(files).to_pylist() == [False, True, False]
    assert entry.keys_of(files).to_pylist() == ["a", "a", "p"]


def test_every_entry_has_one_status_and_is_live_unless_deleted() -> None:
    files = entry.concat([file(each.name, status=each) for each in Status])
    for each in Status:
        assert entry.has_status(files, each).to_pylist() == [each is other for other in Status]
    assert entry.is_live(files).to_pylist() == [each is not Status.DELETED for each in Status]


@pytest.mark.parametrize(
    ("tops", "file"),
    [
        ({"root_manifest": "r", "manifest_list": "l"}, "r"),
        ({"manifest_list": "l"}, "l"),
        ({"manifests": ("m",)}, "snapshot 7"),
    ],
)
def test_a_snapshot_is_named_by_what_is_at_the_top_of_its_tree(
    tops: dict[str, object], file: str
) -> None:
    assert Snapshot(snapshot_id=7, timestamp_ms=1, **tops).root_file == file


@pytest.mark.parametrize("chunks", [(4,), (1, 3), (2, 0, 2)])
def test_the_entries_where_a_mask_holds_are_those_that_a_filter_gives(
    chunks: tuple[int, ...],
) -> None:
    files = entry.concat([file(name, 1) for name in "abcd"]).combine_chunks()
    for flags in product((True, False, None), repeat=4):
        mask = pa.array(flags, pa.bool_())
        starts = [sum(chunks[:at]) for at in range(len(chunks))]
        parts = [mask.slice(at, size) for at, size in zip(starts, chunks, strict=True)]
        for each in (mask, pa.chunked_array(parts)):
            assert entry.only(files, each).equals(files.filter(mask))
    assert entry.only(files, pa.array([True] * 4)) is files
