"""Which entries of a leaf some snapshots need."""

from __future__ import annotations

from pyroaring import BitMap

from icetree.spec.entry import Entry, Status, to_table
from icetree.table.maintain.reach import Reach
from tests.table.lake import new_table

ENTRIES = to_table(
    [
        Entry(location="live", status=Status.EXISTING),
        Entry(location="tombstone", status=Status.DELETED),
        Entry(location="marked", status=Status.ADDED),
    ],
    new_table().metadata.shape(),
)


def test_a_tombstone_is_needed_by_the_snapshot_whose_change_it_is() -> None:
    """Another writer may flush it: its file is what the commit that added the leaf removed."""
    later = Reach(unneeded={"leaf": BitMap([2])})
    assert later.needs("leaf", ENTRIES).to_pylist() == [True, False, False]
    its_own = Reach(unneeded={"leaf": BitMap([2])}, fresh={"leaf"})
    assert its_own.needs("leaf", ENTRIES).to_pylist() == [True, True, False]
