"""What may be added to a table: new files, and DVs of data files that are there."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.entry.entry import Content, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.tree.changes import Changes, Intent, removal
from icetree.tree.policy import Policy
from tests.golden.drawing import SHAPE
from tests.memory import MemoryTable


def data(name: str, low: int | None = None, high: int | None = None) -> Entry:
    known = FieldStats(lower=low, upper=high, values=10, nulls=0)
    stats = {} if low is None else {1: known}
    return Entry(location=name, record_count=10, file_size_in_bytes=100, stats=stats)


def data_dv(of: str) -> Entry:
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"{of}.puffin",
        file_format="puffin",
        file_size_in_bytes=100,
        dv_offset=4,
        dv_size_in_bytes=40,
        record_count=1,
        referenced_file=of,
    )


def equality(name: str) -> Entry:
    return Entry(
        content_type=Content.EQUALITY_DELETES,
        location=name,
        file_size_in_bytes=100,
        record_count=1,
        equality_ids=[1],
    )


def change(*added: Entry, seen: pa.Table | None = None) -> Changes:
    more = {} if seen is None else {"seen": seen}
    return Changes(intent=Intent.ROW_DELTA, added=to_table(added, SHAPE), **more)


@pytest.fixture
def table() -> MemoryTable:
    """A table with `a` and `b` in a leaf and `c` in the root."""
    found = MemoryTable(SHAPE, policy=Policy(root_max_data_entries=1))
    found.commit(change(data("a"), data("b")))
    found.commit(change(data("c")))
    return found


def test_a_data_dv_finds_its_data_file_in_root_and_leaf(table: MemoryTable) -> None:
    table.commit(change(data_dv("a"), data_dv("c")))
    assert table.findings() == []


def test_a_data_dv_for_a_file_of_the_same_change_is_fine(table: MemoryTable) -> None:
    table.commit(change(data("d"), data_dv("d")))
    assert table.findings() == []


@pytest.mark.parametrize("name", ["nobody", "a.puffin"])
def test_a_data_dv_for_no_live_data_file_is_refused(table: MemoryTable, name: str) -> None:
    with pytest.raises(CommitConflict, match=f"{name}: a DV is to be added for it"):
        table.commit(change(data_dv(name)))


def test_a_data_dv_for_a_file_that_went_is_refused(table: MemoryTable) -> None:
    table.commit(Changes(intent=Intent.DELETE_FILES, removed=removal(["a"])))
    with pytest.raises(CommitConflict, match="a: a DV is to be added for it"):
        table.commit(change(data_dv("a")))


def test_a_hint_saves_reading_the_leaf(table: MemoryTable) -> None:
    leaf = next(name for name in table.files if "-m" in name)
    del table.files[leaf]
    table.draft(change(data_dv("a"), seen=removal(["a"], leaf=leaf, positions=[0])))
    with pytest.raises(KeyError, match=leaf):
        table.draft(change(data_dv("a")))


def test_a_hint_at_a_removed_position_does_not_count(table: MemoryTable) -> None:
    leaf = next(name for name in table.files if "-m" in name)
    table.commit(Changes(intent=Intent.DELETE_FILES, removed=removal(["a"])))
    seen = removal(["a"], leaf=leaf, positions=[0])
    with pytest.raises(CommitConflict, match="a: a DV is to be added for it"):
        table.commit(change(data_dv("a"), seen=seen))


def test_a_file_is_added_once(table: MemoryTable) -> None:
    with pytest.raises(InvalidInput, match="d is live more than once"):
        table.commit(change(data("d"), data("d")))
    with pytest.raises(InvalidInput, match="c is in the table already"):
        table.commit(change(data("c")))


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_file_that_a_leaf_tracks_is_not_added_again(table: MemoryTable, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is in the table already"):
        table.commit(change(data("d"), data(name)))
    with pytest.raises(InvalidInput, match=f"{name} is in the table already"):
        table.commit(change(data(name, 3, 5)))  # told of in another way, it is the same file


def test_a_file_that_went_from_a_leaf_may_come_back(table: MemoryTable) -> None:
    table.commit(Changes(intent=Intent.DELETE_FILES, removed=removal(["a"])))
    table.commit(change(data("a")))
    back = Changes(
        intent=Intent.OVERWRITE_FILES, added=to_table([data("b")], SHAPE), removed=removal(["b"])
    )
    table.commit(back)
    assert table.findings() == []


def test_leaves_without_room_for_a_file_are_not_read() -> None:
    table = MemoryTable(SHAPE, policy=Policy(root_max_data_entries=1))
    table.commit(change(data("a", 0, 9), data("b", 10, 19)))
    [leaf] = (name for name in table.files if "-m" in name)
    stored = table.files.pop(leaf)
    table.draft(change(data("c", 20, 29), data("d", -9, -1)))
    with pytest.raises(KeyError, match=leaf):
        table.draft(change(data("c", 20, 29), data("d", 19, 25)))
    with pytest.raises(KeyError, match=leaf):
        table.draft(change(data("untold")))
    made_for_it = replace(change(data("untold")), fresh=pa.array(["untold"]))
    table.draft(made_for_it)
    table.files[leaf] = stored
    with pytest.raises(InvalidInput, match="b is in the table already"):
        table.commit(change(data("b", 12, 19)))


def test_an_equality_delete_that_a_leaf_tracks_is_not_added_again() -> None:
    table = MemoryTable(SHAPE, policy=Policy(root_max_delete_entries=1))
    table.commit(change(data("a"), equality("e"), equality("f")))
    with pytest.raises(InvalidInput, match="e is in the table already"):
        table.commit(change(equality("e")))


def test_a_file_may_come_back_in_the_change_that_removes_it(table: MemoryTable) -> None:
    table.commit(
        Changes(
            intent=Intent.OVERWRITE_FILES,
            added=to_table([data("c")], SHAPE),
            removed=removal(["c"]),
        )
    )
    assert table.findings() == []
