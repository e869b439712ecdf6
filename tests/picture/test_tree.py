"""What a picture says of a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from icetree.picture.model import Limits, Picture, RowArrow
from icetree.picture.tree import pick, picture
from icetree.picture.words import short_name
from icetree.spec.entry.entry import Entries, Status
from icetree.spec.schema.shape import Shape
from icetree.tree.reading import Reader
from tests.golden.drawing import SHAPE, History, Snapshot, tree
from tests.picture.examples import complex_row_delta
from tests.picture.large import MILLIONS, GeneratedReader, millions_in_leaves, millions_in_root

Make: TypeAlias = Callable[[], tuple[Entries, Reader, Shape]]


def drawn(snapshot: Snapshot, limits: Limits | None = None) -> Picture:
    return picture(snapshot.root, snapshot.reader, SHAPE, limits=limits or Limits())


def test_the_root_is_a_table_of_entries_and_statuses() -> None:
    found = drawn(complex_row_delta()).root
    assert [(row.name, row.status.name) for row in found.rows] == [
        ("DM1", "EXISTING"),
        ("DVM1", "EXISTING"),
        ("MDV1", "ADDED"),
        ("DVM2", "ADDED"),
        ("DM2", "ADDED"),
    ]
    assert found.facts == "5 entries · 3 ADDED"
    assert found.more == ()


def test_each_leaf_is_a_table_with_positions() -> None:
    found = {box.title: box for box in drawn(complex_row_delta()).leaves}
    assert list(found) == [
        "Data Manifest DM1",
        "Delete Manifest DVM1",
        "Delete Manifest DVM2",
        "Data Manifest DM2",
    ]
    rows = found["Delete Manifest DVM1"].rows
    assert [(row.position, row.name, row.note) for row in rows] == [
        (0, "DV1", "1 row of D1"),
        (1, "DV2", "1 row of D2"),
    ]


def test_an_entry_of_an_old_leaf_was_added_and_did_not_come_now() -> None:
    words = {box.name: [row.word for row in box.rows] for box in drawn(complex_row_delta()).leaves}
    assert words == {
        "DM1": ["was ADDED", "was ADDED"],
        "DVM1": ["REMOVED", "was ADDED"],
        "DVM2": ["ADDED"],
        "DM2": ["ADDED"],
    }


def test_an_entry_that_a_manifest_dv_removes_is_gone_and_others_are_not() -> None:
    (leaf,) = (box for box in drawn(complex_row_delta()).leaves if box.name == "DVM1")
    assert [row.is_gone for row in leaf.rows] == [True, False]
    assert leaf.facts == "1 of 2 deletes · 1.0 kB"


def test_arrows_say_what_applies_to_what() -> None:
    found = drawn(complex_row_delta())
    names = {box.key: box.name for box in found.boxes()}
    assert {(names[a.source], a.label, names[a.target]) for a in found.arrows} == {
        ("MDV1", "applies to DVM1", "DVM1"),
        ("DVM1", "applies to DM1", "DM1"),
        ("DVM2", "applies to DM1", "DM1"),
    }


def test_a_data_dv_in_the_root_points_to_its_file_in_the_root() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    found = drawn(history.snapshot("D1 EXISTING", "DV1 ADDED [5, 12] -> D1", "D2 ADDED"))
    assert found.row_arrows == (RowArrow(source=1, target=0),)


def test_a_manifest_dv_shows_which_positions_are_new() -> None:
    history = History()
    files = [f"D{number} ADDED" for number in range(1, 10)]
    history.snapshot("M1 ADDED", M1=files)
    history.snapshot("M1 EXISTING", "MDV1 ADDED [1, 2] diff [1, 2] -> M1")
    found = drawn(history.snapshot("M1 EXISTING", "MDV2 ADDED [1, 2, 5] diff [5] -> M1"))
    (vector,) = found.vectors
    assert [(row.name, row.status) for row in vector.rows] == [
        ("1-2", Status.EXISTING),
        ("5", Status.ADDED),
    ]


def test_a_replaced_manifest_dv_is_an_entry_without_a_box() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    history.snapshot("M1 EXISTING", "MDV1 ADDED [0] -> M1")
    found = drawn(
        history.snapshot("M1 EXISTING", "MDV1 DELETED [0] -> M1", "MDV2 ADDED [0, 1] -> M1")
    )
    assert [(row.name, row.is_gone) for row in found.root.rows] == [
        ("M1", False),
        ("MDV1", True),
        ("MDV2", False),
    ]
    assert [(box.name, [row.status for row in box.rows]) for box in found.vectors] == [
        ("MDV2", [Status.EXISTING, Status.ADDED])
    ]


def test_what_is_not_shown_is_counted() -> None:
    files = [f"D{number} ADDED" for number in range(1, 31)]
    found = drawn(tree("M1 ADDED", M1=files), Limits(leaf_rows=6))
    (leaf,) = found.leaves
    assert len(leaf.rows) == 6
    assert leaf.more == ("… 24 more data files",)


def test_leaves_without_a_box_share_one() -> None:
    names = [f"M{number}" for number in range(1, 7)]
    leaves = {name: [f"D{number} ADDED"] for number, name in enumerate(names)}
    found = drawn(tree(*(f"{name} ADDED" for name in names), **leaves), Limits(leaves=2))
    assert [box.title for box in found.leaves] == [
        "Data Manifest M1",
        "Data Manifest M2",
        "4 more data manifests",
    ]
    assert found.leaves[2].facts == "4 files · 4.0 kB"


def test_one_leaf_without_a_box_is_one_more() -> None:
    found = drawn(tree("M1 ADDED", "M2 ADDED", M1=["D1 ADDED"], M2=["D2 ADDED"]), Limits(leaves=1))
    assert [box.title for box in found.leaves] == ["Data Manifest M1", "1 more data manifest"]


def test_only_leaves_with_a_box_are_read() -> None:
    names = [f"M{number}" for number in range(1, 7)]
    leaves = {name: [f"D{number} ADDED"] for number, name in enumerate(names)}
    snapshot = tree(*(f"{name} ADDED" for name in names), **leaves)
    drawn(snapshot, Limits(leaves=2))
    assert snapshot.reader.reads == ["M1", "M2"]


def test_a_leaf_with_a_new_manifest_dv_comes_before_quiet_ones() -> None:
    history = History()
    names = [f"M{number}" for number in range(1, 7)]
    leaves = {name: [f"D{number} ADDED"] for number, name in enumerate(names)}
    history.snapshot(*(f"{name} ADDED" for name in names), **leaves)
    quiet = [f"{name} EXISTING" for name in names]
    found = drawn(history.snapshot(*quiet, "MDV1 ADDED [0] -> M5"), Limits(leaves=2))
    assert [box.name for box in found.leaves] == ["M1", "M5", "4 more data manifests"]


def test_an_empty_table_is_an_empty_root() -> None:
    found = drawn(tree())
    assert (found.root.rows, found.leaves, found.root.facts) == ((), (), "0 entries")


def test_every_kind_gets_its_turn_and_the_least_rank_goes_first() -> None:
    kind = np.array([0, 0, 0, 0, 3])
    rank = np.array([2, 2, 1, 2, 2])
    assert pick(kind, rank, 2).tolist() == [2, 4]
    assert pick(kind, rank, 3).tolist() == [0, 2, 4]
    assert pick(kind, rank, 99).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", [millions_in_leaves, millions_in_root])
def test_three_million_entries_make_a_small_picture(make: Make) -> None:
    root, reader, shape = make()
    found = picture(root, reader, shape)
    assert 14 <= sum(len(box.rows) for box in found.boxes()) < 60
    assert len(found.leaves) <= 6


def test_new_files_of_a_huge_root_come_before_old_ones() -> None:
    root, reader, shape = millions_in_root()
    found = picture(root, reader, shape).root
    assert {row.status for row in found.rows} == {Status.ADDED}
    assert found.facts == "3M entries · 1,000 ADDED"


def test_three_million_entries_are_all_accounted_for() -> None:
    root, reader, shape = millions_in_leaves()
    found = picture(root, reader, shape)
    (rest,) = (box for box in found.leaves if box.is_group)
    assert rest.title == "56 more data manifests"
    assert rest.facts.startswith("2.8M files · ")
    assert isinstance(reader, GeneratedReader)
    assert reader.entries_read == MILLIONS // 60 * 4
    (vector,) = found.vectors
    assert vector.more == ("… 4,996 more",)


def test_a_file_shows_its_partition_and_a_manifest_the_span_of_its_own() -> None:
    root, reader, shape = millions_in_leaves()
    found = picture(root, reader, shape)
    assert found.root.rows[0].partition == "2020-01-01 … 2020-01-08"
    assert found.leaves[0].rows[0].partition == "2020-01-01"


def test_a_file_name_is_cut_but_can_be_told_from_others() -> None:
    one = "data/day=1/00000-5-3f2b8c1e-8a57-4a37-9d6e-0d3f6a1b2c4d-00001.parquet"
    assert short_name(one) == "00000-5-3f2b8c1e-00001"
    assert (
        short_name("a/very-long-name-of-a-file-that-goes-on-17.parquet") == "very-long-…goes-on-17"
    )
    assert short_name("D1") == "D1"


def test_the_root_of_an_old_table_is_a_list_in_which_snapshots_tell_what_is_new() -> None:
    snapshot = tree("M1 EXISTING", M1=["D1 ADDED"])
    made_by = snapshot.root["snapshot_id"].to_pylist()[0]
    assert made_by is not None
    for list_of, word in ((made_by, "ADDED"), (made_by + 1, "was ADDED")):
        found = picture(snapshot.root, snapshot.reader, SHAPE, list_of=list_of)
        assert found.root.title == "Manifest List"
        assert [row.word for row in found.leaves[0].rows] == [word]
