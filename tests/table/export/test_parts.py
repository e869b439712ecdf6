"""Parts of leaves: which twins there are, which snapshots have them, and which may come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyroaring import BitMap

from icetree.errors import CorruptTable
from icetree.spec.entry.entry import with_columns
from icetree.table.export.parts import Part, Twins, parts_of
from icetree.table.export.snapshot import _tree
from tests.table.changing import LEAFY, changing_table, now, some

LEAF = "metadata/a.parquet"
#: How many positions a part has here.
PART = 2
SIZES = st.integers(1, 4 * PART)
PLACES = st.sets(st.integers(0, 4 * PART - 1))


@st.composite
def leaves(draw: st.DrawFn) -> tuple[int, list[BitMap]]:
    """Draw a leaf's size, and what is gone from it in some snapshots."""
    size = draw(SIZES)
    gone = draw(st.lists(PLACES, min_size=1, max_size=4))
    return size, [BitMap(at for at in each if at < size) for each in gone]


def twins(every: list[BitMap]) -> Twins:
    found = Twins()
    for each in every:
        found.add(LEAF, each)
    return found


@given(leaves())
def test_every_position_is_in_one_part_unless_all_around_it_is_gone(
    leaf: tuple[int, list[BitMap]],
) -> None:
    size, [gone, *_] = leaf
    for removed in (None, gone, BitMap(range(size)), BitMap(range(min(PART, size)))):
        found = list(parts_of(LEAF, size, removed))
        held = BitMap()
        for part in found:
            assert not held & BitMap(range(part.start, part.end))
            held |= BitMap(range(part.start, part.end))
        assert BitMap(range(size)) - held <= (removed or BitMap())
        assert all(BitMap(range(p.start, min(p.end, size))) - (removed or BitMap()) for p in found)


@given(leaves())
def test_a_part_is_told_by_what_is_gone_from_it_and_nothing_else(
    leaf: tuple[int, list[BitMap]],
) -> None:
    size, every = leaf
    known: dict[str, tuple[int, BitMap]] = {}
    for gone in every:
        for part in parts_of(LEAF, size, gone):
            inside = gone & BitMap(range(part.start, part.end))
            assert known.setdefault(str(part), (part.number, inside)) == (part.number, inside)
    assert len({(at, bytes(each.serialize())) for at, each in known.values()}) == len(known)


@given(leaves())
def test_a_name_tells_its_part(leaf: tuple[int, list[BitMap]]) -> None:
    size, [gone, *_] = leaf
    for part in parts_of(LEAF, size, gone):
        assert Part.told(*str(part).split("-")) == part
    for other in ("", "r", "_3", "-1", "0r"):
        assert Part.told("a", other) is None


@given(leaves(), leaves())
def test_snapshots_have_the_parts_that_their_exports_have_and_no_other(
    leaf: tuple[int, list[BitMap]], others: tuple[int, list[BitMap]]
) -> None:
    size, every = leaf
    found = twins(every)
    mine = {part for each in every for part in parts_of(LEAF, size, each)}
    gone = [BitMap(at for at in each if at < size) for each in others[1]]
    theirs = {part for each in gone for part in parts_of(LEAF, size, each)}
    assert all(part in found for part in mine)
    assert not [part for part in theirs - mine if part in found]
    assert Part(leaf="another", number=0) not in found


@given(leaves(), leaves())
def test_what_a_commit_may_come_to_is_not_let_go(
    leaf: tuple[int, list[BitMap]], others: tuple[int, list[BitMap]]
) -> None:
    """A commit removes from what a kept snapshot has; what is left may be what one that went had."""
    size, every = leaf
    going = [BitMap(at for at in each if at < size) for each in others[1]]
    kept, gone = twins(every), twins(going)
    for before in every:
        for more in going:
            for part in parts_of(LEAF, size, before | more):
                assert part not in gone or kept.may_need(part, gone)


@given(leaves(), st.data())
def test_along_a_line_of_history_what_was_made_anew_is_let_go(
    leaf: tuple[int, list[BitMap]], data: st.DataObject
) -> None:
    size, [before, *_] = leaf
    assume(len(before) < size)
    at = data.draw(st.integers(0, size - 1).filter(lambda each: each not in before))
    kept, gone = twins([before | BitMap([at])]), twins([before])
    for part in parts_of(LEAF, size, before):
        assert kept.may_need(part, gone) == (at not in range(part.start, part.end))


def test_a_leaf_with_more_entries_than_its_root_says_is_not_exported() -> None:
    """They would be in no part."""
    table = changing_table(partition_by=["v"], properties=LEAFY)
    table.append(some(*enumerate("abcde")))
    snapshot = table.metadata.snapshot(now(table))
    tree = _tree(table.metadata, table.files, snapshot, 3, "metadata/export/")
    short = replace(tree, root=with_columns(tree.root, record_count=3))
    with pytest.raises(CorruptTable, match="more entries than the root says: 3"):
        list(short.manifests({}))
