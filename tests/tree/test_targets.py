"""What may be added to a table: new files, and DVs of data files that are there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.entry import Content, Entry, to_table
from icetree.tree.changes import Changes, Intent, removal
from icetree.tree.policy import Policy
from tests.golden.drawing import SHAPE
from tests.memory import MemoryTable


def data(name: str) -> Entry:
    return Entry(location=name, record_count=10, file_size_in_bytes=100)


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


def test_a_file_may_come_back_in_the_change_that_removes_it(table: MemoryTable) -> None:
    table.commit(
        Changes(
            intent=Intent.OVERWRITE_FILES,
            added=to_table([data("c")], SHAPE),
            removed=removal(["c"]),
        )
    )
    assert table.findings() == []
