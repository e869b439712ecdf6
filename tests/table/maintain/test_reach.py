"""Which entries of a leaf some snapshots need."""

from __future__ import annotations

from pyroaring import BitMap

from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Content, Entry, Status, to_table
from icetree.table.maintain.reach import Reach, less_needed, named
from tests.table.changing import LEAFY, changing_table, some
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


def test_no_leaf_is_read_for_what_none_names() -> None:
    table = changing_table(properties=LEAFY)
    for id in range(3):
        table.append(some((id, "a")))
    kept, shape = Reach(), table.metadata.shape()
    kept.gather([*table.history()], table.files, shape, what="trees", tell=lambda *_: None)
    assert kept.leaves
    for leaf in kept.leaves:
        table.files.delete([leaf])
    elsewhere = TableFiles(store=table.files.store, location=table.location)
    found = named(["metadata/some-root.parquet", *kept.leaves], Content.DATA_MANIFEST)
    left = less_needed(found, kept, elsewhere.reader(shape))
    assert left["location"].to_pylist() == ["metadata/some-root.parquet"]
