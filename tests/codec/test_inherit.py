"""What a leaf's entries take over from the leaf's own entry."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema

from icetree.codec.inherit import Inherited, inherit, require_tracking
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entries, Entry, Status, concat, to_table
from icetree.spec.schema.shape import Shape

LEAF = Inherited(snapshot_id=7, sequence_number=5, first_row_id=1000)
SHAPE = Shape(schema=Schema())


def table(*entries: Entry) -> Entries:
    return to_table(entries, SHAPE)


def inherited(name: str, *entries: Entry, leaf: Inherited = LEAF) -> list[Any]:
    found: list[Any] = inherit(table(*entries), leaf)[name].to_pylist()
    return found


def test_every_entry_without_a_snapshot_id_takes_the_leafs() -> None:
    entries = [Entry(status=status) for status in Status]
    assert inherited("snapshot_id", *entries, Entry(snapshot_id=3)) == [7, 7, 7, 3]


@pytest.mark.parametrize("name", ["sequence_number", "file_sequence_number"])
def test_only_added_entries_inherit_sequence_numbers(name: str) -> None:
    entries = [Entry(status=status) for status in (Status.EXISTING, Status.ADDED, Status.DELETED)]
    assert inherited(name, *entries, Entry(**{name: 2})) == [None, 5, None, 2]


def test_every_entry_of_a_v1_leaf_has_sequence_number_zero() -> None:
    leaf = Inherited(snapshot_id=7, sequence_number=0)
    assert inherited("sequence_number", Entry(status=Status.EXISTING), leaf=leaf) == [0]


def test_row_ids_follow_the_worked_example_of_the_specification() -> None:
    # Row lineage example of the v3 specification: manifest `added1`.
    entries = (
        Entry(location="data1", status=Status.EXISTING, record_count=25, first_row_id=800),
        Entry(location="data2", status=Status.ADDED, record_count=50),
        Entry(location="data3", status=Status.ADDED, record_count=50),
    )
    assert inherited("first_row_id", *entries) == [800, 1000, 1050]


def test_existing_files_without_row_ids_get_them_too() -> None:
    entries = (Entry(status=Status.EXISTING, record_count=5), Entry(record_count=5))
    assert inherited("first_row_id", *entries) == [1000, 1005]


def test_deleted_entries_and_delete_files_take_no_row_ids_and_use_up_none() -> None:
    entries = (
        Entry(status=Status.DELETED, record_count=5),
        Entry(content_type=Content.POSITION_DELETES, record_count=5),
        Entry(record_count=5),
    )
    assert inherited("first_row_id", *entries) == [None, None, 1000]


def test_without_a_first_row_id_of_the_leaf_row_ids_stay_as_they_are() -> None:
    leaf = Inherited(snapshot_id=7, sequence_number=5)
    assert inherited("first_row_id", Entry(), Entry(first_row_id=3), leaf=leaf) == [None, 3]


@given(
    st.lists(
        st.tuples(st.sampled_from(list(Status)), st.integers(0, 99), st.none() | st.just(5)),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_row_ids_are_handed_out_in_order_without_gaps(
    files: list[tuple[Status, int, int | None]], cut: int
) -> None:
    entries = [Entry(status=s, record_count=n, first_row_id=own) for s, n, own in files]
    expected, following = [], 1000
    for status, rows, own in files:
        if own is None and status != Status.DELETED:
            expected.append(following)
            following += rows
        else:
            expected.append(own)
    chunked = concat([table(*entries[:cut]), table(*entries[cut:])])
    assert inherit(chunked, LEAF)["first_row_id"].to_pylist() == expected


def test_columns_that_were_not_read_stay_absent() -> None:
    narrow = table(Entry(), Entry()).select(["location", "status", "sequence_number"])
    found = inherit(narrow, LEAF)
    assert found.column_names == narrow.column_names
    assert found["sequence_number"].to_pylist() == [5, 5]


def test_no_entries_inherit_nothing() -> None:
    assert inherit(table(), LEAF).schema == table().schema


def test_an_existing_entry_without_a_sequence_number_is_refused() -> None:
    entries = inherit(table(Entry(status=Status.EXISTING, snapshot_id=1)), LEAF)
    with pytest.raises(CorruptTable, match=r"m.avro: an entry has no sequence_number"):
        require_tracking(entries, file="m.avro")
    require_tracking(entries, file="m.avro", names=("snapshot_id",))
    whole = inherit(table(Entry()), LEAF)
    assert isinstance(whole, pa.Table)
    require_tracking(whole, file="m.avro")
