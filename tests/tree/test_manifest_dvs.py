"""Manifest DVs of a root: what they remove, and what they must not say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap, BitMap64

from icetree.codec import bitmap, puffin
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entry, Status, from_table, to_table
from icetree.tree.manifest_dvs import added_positions, read_manifest_dvs
from icetree.tree.plan.plan import plan
from tests.golden.drawing import SHAPE, DrawnReader, tree

LEAF = Entry(content_type=Content.DATA_MANIFEST, location="M1", record_count=4)


def inline(*positions: int, status: Status = Status.ADDED) -> Entry:
    return Entry(
        content_type=Content.MANIFEST_DV,
        file_format="puffin",
        status=status,
        dv_inline_content=bitmap.encode(bitmap.of(positions)),
        record_count=len(positions),
        referenced_file="M1",
    )


def found_in(*entries: Entry, reader: DrawnReader | None = None) -> dict[str, BitMap]:
    return read_manifest_dvs(to_table(entries, SHAPE), reader or DrawnReader(), root_file="R")


def changes(*entries: Entry) -> dict[str, BitMap]:
    return added_positions(to_table(entries, SHAPE), DrawnReader(), root_file="R")


def rule(*entries: Entry, reader: DrawnReader | None = None) -> str:
    with pytest.raises(CorruptTable) as caught:
        found_in(*entries, reader=reader)
    assert caught.value.file in ("R", "blobs.puffin")
    return caught.value.rule


def test_a_root_without_manifest_dvs_removes_nothing() -> None:
    assert found_in(LEAF) == {}
    assert changes(LEAF) == {}


def test_live_manifest_dvs_are_read_whatever_snapshot_wrote_them() -> None:
    other = replace(LEAF, location="M2")
    old = replace(inline(0, status=Status.EXISTING), referenced_file="M2")
    gone = inline(1, status=Status.DELETED)
    found = found_in(LEAF, other, inline(1, 2), old, gone)
    assert found == {"M1": BitMap([1, 2]), "M2": BitMap([0])}


def test_a_manifest_dv_in_puffin_is_the_same_as_one_inline() -> None:
    blob = puffin.encode_dv(BitMap64([1, 3]))
    reader = DrawnReader(blobs={"blobs.puffin": b"...." + blob})
    stored = replace(
        inline(1, 3),
        dv_inline_content=None,
        location="blobs.puffin",
        dv_offset=4,
        dv_size_in_bytes=len(blob),
    )
    assert found_in(LEAF, stored, reader=reader) == {"M1": BitMap([1, 3])}
    reader.blobs["blobs.puffin"] = b"...." + puffin.encode_dv(BitMap64([1, 1 << 40]))
    stored = replace(stored, dv_size_in_bytes=len(reader.blobs["blobs.puffin"]) - 4)
    assert rule(LEAF, stored, reader=reader) == f"position {1 << 40} does not fit in 32 bits"


def test_what_breaks_the_format_is_named() -> None:
    assert rule(LEAF, inline(0), inline(1, status=Status.EXISTING)) == (
        "leaf M1 has two manifest DVs that are EXISTING or ADDED"
    )
    assert rule(inline(0)) == "a manifest DV refers to M1, no live leaf of the root"
    assert rule(replace(LEAF, status=Status.DELETED), inline(0)) == (
        "a manifest DV refers to M1, no live leaf of the root"
    )
    assert rule(LEAF, inline(0, 4)) == "the manifest DV on leaf M1 removes position 4 of 4 entries"
    assert rule(LEAF, replace(inline(0, 1), record_count=3)) == (
        "the manifest DV on leaf M1 has 2 positions, its entry says 3"
    )
    assert rule(LEAF, replace(inline(0), referenced_file=None)) == (
        "a manifest DV refers to no leaf: referenced_file is null"
    )
    assert rule(LEAF, replace(inline(0), dv_inline_content=None)) == (
        "the manifest DV on leaf M1 has neither inline content nor a location, offset and size"
    )


def test_a_plan_lets_nothing_back_whose_leaf_is_called_otherwise() -> None:
    other = replace(LEAF, location="elsewhere/M1")
    with pytest.raises(CorruptTable, match="a manifest DV refers to M1, no live leaf"):
        plan(to_table([other, inline(0)], SHAPE), DrawnReader(), SHAPE, root_file="R")


def test_broken_bitmaps_are_corrupt_tables() -> None:
    assert "bitmap" in rule(LEAF, replace(inline(0), dv_inline_content=b"\x00"))


def with_change(entry: Entry, *positions: int) -> Entry:
    return replace(entry, dv_added_positions=bitmap.encode(bitmap.of(positions)))


def test_the_change_is_what_the_manifest_dv_says_it_is() -> None:
    assert changes(LEAF, with_change(inline(0, 1, 2), 1)) == {"M1": BitMap([1])}


def test_the_change_is_what_the_new_manifest_dv_has_more_than_the_old() -> None:
    assert changes(LEAF, inline(1, status=Status.DELETED), inline(0, 1)) == {"M1": BitMap([0])}


def test_a_first_manifest_dv_is_all_change_and_one_carried_over_is_none() -> None:
    assert changes(LEAF, inline(1, 2)) == {"M1": BitMap([1, 2])}
    assert changes(LEAF, inline(1, 2, status=Status.EXISTING)) == {}


def test_a_manifest_dv_dropped_with_its_leaf_changes_nothing() -> None:
    gone = inline(1, status=Status.DELETED)
    assert changes(gone) == {}
    assert changes(replace(LEAF, status=Status.DELETED), gone) == {}


def test_a_manifest_dv_never_gives_entries_back() -> None:
    before = inline(1, 2, status=Status.DELETED)
    with pytest.raises(CorruptTable, match="R: the manifest DV on leaf M1 gives back entries"):
        changes(LEAF, before, inline(0, 1))
    with pytest.raises(CorruptTable, match="leaf M1 has two manifest DVs that are DELETED"):
        changes(LEAF, before, before, inline(1, 2))
    with pytest.raises(CorruptTable, match="DELETED and nothing takes its place"):
        changes(LEAF, before)
    with pytest.raises(CorruptTable, match="are not all in it"):
        changes(LEAF, with_change(inline(0, 1), 2))


def test_a_drawn_tree_has_the_manifest_dvs_it_shows() -> None:
    drawn = tree("M1 ADDED", "MDV1 ADDED [0] -> M1", M1=["D1 ADDED", "D2 ADDED"])
    assert len(from_table(drawn.root)) == 2
    assert read_manifest_dvs(drawn.root, drawn.reader) == {"M1": BitMap([0])}
