"""The appendix "Change Detection Scenarios" of the proposal, scenario by scenario."""

from __future__ import annotations

from icetree.codec import bitmap
from icetree.spec.entry.entry import Status
from tests.golden.drawing import History, Snapshot
from tests.golden.row_changes import (
    added,
    leaves_read,
    removed,
)

# --- append files ------------------------------------------------------------------------------


def test_appends_to_the_root_manifest() -> None:
    history = History()
    one = history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    two = history.snapshot("M1 EXISTING", "D4 ADDED")
    three = history.snapshot("M1 EXISTING", "D4 EXISTING", "D5 ADDED")

    assert added(one) == ["D1", "D2", "D3"]
    assert added(two) == ["D4"]
    assert added(three) == ["D5"]
    assert removed(one) == removed(two) == removed(three) == []
    assert leaves_read(one) == ["M1"]
    assert leaves_read(two) == leaves_read(three) == []


def test_appends_to_the_root_manifest_using_new_data_manifests() -> None:
    history = History()
    one = history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    two = history.snapshot("M1 EXISTING", "M2 ADDED", M2=["D4 ADDED", "D5 ADDED", "D6 ADDED"])
    three = history.snapshot(
        "M2 EXISTING",
        "M3 ADDED",
        M3=["D1 EXISTING", "D2 EXISTING", "D3 EXISTING", "D7 ADDED", "D8 ADDED"],
    )

    assert added(one) == ["D1", "D2", "D3"]
    assert added(two) == ["D4", "D5", "D6"]
    assert added(three) == ["D7", "D8"]
    assert removed(one) == removed(two) == removed(three) == []
    assert leaves_read(two) == ["M2"]
    assert leaves_read(three) == ["M3"]


# --- remove files ------------------------------------------------------------------------------


def test_removing_a_file_from_the_root_manifest() -> None:
    history = History()
    one = history.snapshot("D1 EXISTING", "D2 EXISTING")
    two = history.snapshot("D1 DELETED", "D2 EXISTING")

    assert (added(one), removed(one)) == ([], [])
    assert (added(two), removed(two)) == ([], ["D1"])
    assert leaves_read(two) == []


def test_removing_a_file_from_a_leaf_manifest() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] -> M1")

    assert (added(two), removed(two)) == ([], ["D2"])
    assert leaves_read(two) == ["M1"]
    gone = two.diff().removed
    assert gone.select(["leaf", "position"]).to_pylist() == [{"leaf": "M1", "position": 1}]


def test_removing_a_file_from_a_leaf_manifest_a_regular_manifest_dv() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] -> M1")
    three = history.snapshot("M1 EXISTING", "MDV1 DELETED [1] -> M1", "MDV2 ADDED [1, 2] -> M1")
    four = history.snapshot(
        "M1 EXISTING", "MDV2 DELETED [1, 2] -> M1", "MDV3 ADDED [0, 1, 2] -> M1"
    )

    assert removed(two) == ["D2"]
    assert removed(three) == ["D3"]
    assert removed(four) == ["D1"]
    assert added(two) == added(three) == added(four) == []


def test_removing_a_file_from_a_leaf_manifest_b_a_regular_manifest_dv_and_a_diff_dv() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1")
    three = history.snapshot("M1 EXISTING", "MDV2 ADDED [1, 2] diff [2] -> M1")
    four = history.snapshot("M1 EXISTING", "MDV3 ADDED [0, 1, 2] diff [0] -> M1")

    assert removed(two) == ["D2"]
    assert removed(three) == ["D3"]
    assert removed(four) == ["D1"]
    assert added(two) == added(three) == added(four) == []


def stored_positions(snapshot: Snapshot) -> int:
    """Count the positions in every bitmap that a root stores, diffs too."""
    bitmaps = [
        each
        for column in ("dv_inline_content", "dv_added_positions")
        for each in snapshot.root[column].drop_null().to_pylist()
    ]
    return sum(len(bitmap.decode(each, file="root")) for each in bitmaps)


def option_a(before: int, removing: int) -> Snapshot:
    history = History()
    every = [f"D{number} ADDED" for number in range(before + removing)]
    old, new = list(range(before)), list(range(before + removing))
    history.snapshot("M1 ADDED", M1=every)
    history.snapshot("M1 EXISTING", f"MDV1 ADDED {old} -> M1")
    return history.snapshot("M1 EXISTING", f"MDV1 DELETED {old} -> M1", f"MDV2 ADDED {new} -> M1")


def option_b(before: int, removing: int) -> Snapshot:
    history = History()
    every = [f"D{number} ADDED" for number in range(before + removing)]
    old, new = list(range(before)), list(range(before + removing))
    history.snapshot("M1 ADDED", M1=every)
    history.snapshot("M1 EXISTING", f"MDV1 ADDED {old} diff {old} -> M1")
    return history.snapshot("M1 EXISTING", f"MDV2 ADDED {new} diff {new[before:]} -> M1")


def test_storage_size_comparison_scenario_1_of_100_before_and_10_more() -> None:
    a, b = option_a(100, 10), option_b(100, 10)
    assert stored_positions(a) == 210
    assert stored_positions(b) == 120
    assert removed(a) == removed(b) == [f"D{number}" for number in range(100, 110)]


def test_storage_size_comparison_scenario_2_of_10_before_and_100_more() -> None:
    a, b = option_a(10, 100), option_b(10, 100)
    assert stored_positions(a) == 120
    assert stored_positions(b) == 210
    assert removed(a) == removed(b) == [f"D{number}" for number in range(10, 110)]


def test_manifest_compaction_and_removing_files_from_a_leaf_manifest_a() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] -> M1")
    three = history.snapshot("M1 EXISTING", "MDV1 DELETED [1] -> M1", "MDV2 ADDED [1, 2] -> M1")
    four = history.snapshot("M2 ADDED", M2=["D1 DELETED", "D4 EXISTING"])

    assert removed(two) == ["D2"]
    assert removed(three) == ["D3"]
    assert (added(four), removed(four)) == ([], ["D1"])
    assert leaves_read(four) == ["M2"]


def test_manifest_compaction_and_removing_files_from_a_leaf_manifest_b() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1")
    three = history.snapshot("M1 EXISTING", "MDV2 ADDED [1, 2] diff [2] -> M1")
    four = history.snapshot("M2 ADDED", M2=["D1 DELETED", "D4 EXISTING"])

    assert removed(two) == ["D2"]
    assert removed(three) == ["D3"]
    assert (added(four), removed(four)) == ([], ["D1"])
    assert leaves_read(four) == ["M2"]


# --- overwrite files ---------------------------------------------------------------------------


def test_overwrite_files_in_root_manifest() -> None:
    history = History()
    one = history.snapshot("D1 ADDED")
    two = history.snapshot("D1 DELETED", "D2 ADDED")
    three = history.snapshot("D2 DELETED", "D3 ADDED")

    assert (added(one), removed(one)) == (["D1"], [])
    assert (added(two), removed(two)) == (["D2"], ["D1"])
    assert (added(three), removed(three)) == (["D3"], ["D2"])
    gone = three.diff().removed
    assert gone.select(["status", "snapshot_id", "sequence_number"]).to_pylist() == [
        {"status": Status.DELETED, "snapshot_id": 3, "sequence_number": 2}
    ]


def test_overwrite_files_in_leaf_manifest() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] -> M1", "D4 ADDED")

    assert (added(two), removed(two)) == (["D4"], ["D2"])
    assert leaves_read(two) == ["M1"]


def test_overwrite_files_in_leaf_manifest_a_regular_manifest_dv() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] -> M1", "D5 ADDED")
    three = history.snapshot(
        "M1 EXISTING",
        "MDV1 DELETED [1] -> M1",
        "D5 EXISTING",
        "MDV2 ADDED [1, 2] -> M1",
        "D6 ADDED",
    )
    four = history.snapshot(
        "M1 EXISTING",
        "MDV2 DELETED [1, 2] -> M1",
        "MDV3 ADDED [0, 1, 2] -> M1",
        "M2 ADDED",
        M2=["D5 EXISTING", "D6 EXISTING", "D7 ADDED"],
    )

    assert (added(two), removed(two)) == (["D5"], ["D2"])
    assert (added(three), removed(three)) == (["D6"], ["D3"])
    assert (added(four), removed(four)) == (["D7"], ["D1"])
    assert leaves_read(four) == ["M1", "M2"]


def test_overwrite_files_in_leaf_manifest_b_a_regular_manifest_dv_and_a_diff_dv() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1", "D5 ADDED")
    three = history.snapshot(
        "M1 EXISTING", "D5 EXISTING", "MDV2 ADDED [1, 2] diff [2] -> M1", "D6 ADDED"
    )
    four = history.snapshot(
        "M1 EXISTING",
        "MDV3 ADDED [0, 1, 2] diff [0] -> M1",
        "M2 ADDED",
        M2=["D5 EXISTING", "D6 EXISTING", "D7 ADDED"],
    )

    assert (added(two), removed(two)) == (["D5"], ["D2"])
    assert (added(three), removed(three)) == (["D6"], ["D3"])
    assert (added(four), removed(four)) == (["D7"], ["D1"])
    assert leaves_read(four) == ["M1", "M2"]


def test_manifest_compaction_and_overwriting_files_in_a_leaf_manifest_a() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] -> M1", "D5 ADDED")
    three = history.snapshot(
        "M1 EXISTING",
        "MDV1 DELETED [1] -> M1",
        "D5 EXISTING",
        "MDV2 ADDED [1, 2] -> M1",
        "D6 ADDED",
    )
    four = history.snapshot(
        "M2 ADDED", M2=["D1 DELETED", "D4 EXISTING", "D5 EXISTING", "D6 EXISTING", "D7 ADDED"]
    )

    assert (added(two), removed(two)) == (["D5"], ["D2"])
    assert (added(three), removed(three)) == (["D6"], ["D3"])
    assert (added(four), removed(four)) == (["D7"], ["D1"])
    assert leaves_read(four) == ["M2"]


def test_manifest_compaction_and_overwriting_files_in_a_leaf_manifest_b() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED", "D4 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1", "D5 ADDED")
    three = history.snapshot(
        "M1 EXISTING", "D5 EXISTING", "MDV2 ADDED [1, 2] diff [2] -> M1", "D6 ADDED"
    )
    four = history.snapshot(
        "M2 ADDED", M2=["D1 DELETED", "D4 EXISTING", "D5 EXISTING", "D6 EXISTING", "D7 ADDED"]
    )

    assert (added(two), removed(two)) == (["D5"], ["D2"])
    assert (added(three), removed(three)) == (["D6"], ["D3"])
    assert (added(four), removed(four)) == (["D7"], ["D1"])
    assert leaves_read(four) == ["M2"]
