"""The appendix "Change Detection Scenarios" of the proposal, where rows go from files that stay."""

from __future__ import annotations

from icetree.tree.plan.row_changes import DELETE
from tests.golden.drawing import History
from tests.golden.row_changes import (
    added,
    added_rows,
    leaves_read,
    removed,
    removed_rows,
    row_changes,
)


def test_root_manifest_only_row_delta() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    two = history.snapshot("D1 EXISTING", "DV1 ADDED [5, 12] -> D1", "D2 ADDED")

    assert (added(two), removed(two)) == (["DV1", "D2"], [])
    assert added_rows(two) == ["D2"]
    assert removed_rows(two) == [("D1", "DV1", None)]
    assert [row["within_dv_cardinality"] for row in row_changes(two, DELETE)] == [2]


def test_complex_row_delta_with_modified_data_dvs_a_regular_manifest_dv() -> None:
    history = History()
    one = history.snapshot(
        "DM1 ADDED",
        "DVM1 ADDED",
        DM1=["D1 ADDED", "D2 ADDED"],
        DVM1=["DV1 ADDED -> D1", "DV2 ADDED -> D2"],
    )
    two = history.snapshot(
        "DM1 EXISTING",
        "DVM1 EXISTING",
        "MDV3 ADDED [0] -> DVM1",
        "DVM2 ADDED",
        "DM2 ADDED",
        DVM2=["DV4 ADDED -> D1"],
        DM2=["D3 ADDED"],
    )
    three = history.snapshot(
        "DM1 EXISTING",
        "DVM1 EXISTING",
        "DVM2 EXISTING",
        "DM2 EXISTING",
        "MDV3 DELETED [0] -> DVM1",
        "MDV5 ADDED [0, 1] -> DVM1",
        "DVM3 ADDED",
        DVM3=["DV7 ADDED -> D2"],
    )
    four = history.snapshot(
        "DM3 ADDED",
        "DVM4 ADDED",
        DM3=["D1 EXISTING", "D2 EXISTING", "D3 EXISTING", "D4 ADDED"],
        DVM4=["DV7 EXISTING -> D2", "DV4 DELETED -> D1", "DV8 ADDED -> D1"],
    )

    assert added_rows(one) == ["D1", "D2"]
    assert removed_rows(one) == []
    assert (added(two), removed(two)) == (["DV4", "D3"], ["DV1"])
    assert added_rows(two) == ["D3"]
    assert removed_rows(two) == [("D1", "DV4", "DV1")]
    assert leaves_read(two) == ["DVM1", "DVM2", "DM2"]
    assert (added(three), removed(three)) == (["DV7"], ["DV2"])
    assert added_rows(three) == []
    assert removed_rows(three) == [("D2", "DV7", "DV2")]
    assert leaves_read(three) == ["DVM1", "DVM3"]
    assert (added(four), removed(four)) == (["D4", "DV8"], ["DV4"])
    assert added_rows(four) == ["D4"]
    assert removed_rows(four) == [("D1", "DV8", "DV4")]
    assert leaves_read(four) == ["DM3", "DVM4"]


def test_complex_row_delta_with_modified_data_dvs_b_regular_manifest_dv_and_diff_dv() -> None:
    history = History()
    history.snapshot(
        "DM1 ADDED",
        "DVM1 ADDED",
        DM1=["D1 ADDED", "D2 ADDED"],
        DVM1=["DV1 ADDED -> D1", "DV2 ADDED -> D2"],
    )
    two = history.snapshot(
        "DM1 EXISTING",
        "DVM1 EXISTING",
        "MDV3 ADDED [0] diff [0] -> DVM1",
        "DVM2 ADDED",
        "DM2 ADDED",
        DVM2=["DV4 ADDED -> D1"],
        DM2=["D3 ADDED"],
    )
    three = history.snapshot(
        "DM1 EXISTING",
        "DVM1 EXISTING",
        "DVM2 EXISTING",
        "DM2 EXISTING",
        "MDV5 ADDED [0, 1] diff [1] -> DVM1",
        "DVM3 ADDED",
        DVM3=["DV7 ADDED -> D2"],
    )
    four = history.snapshot(
        "DVM4 ADDED",
        "DM3 ADDED",
        DVM4=["DV7 EXISTING -> D2", "DV4 DELETED -> D1", "DV8 ADDED -> D1"],
        DM3=["D1 EXISTING", "D2 EXISTING", "D3 EXISTING", "D4 ADDED"],
    )

    assert (added(two), removed(two)) == (["DV4", "D3"], ["DV1"])
    assert (added_rows(two), removed_rows(two)) == (["D3"], [("D1", "DV4", "DV1")])
    assert leaves_read(two) == ["DVM1", "DVM2", "DM2"]
    assert (added(three), removed(three)) == (["DV7"], ["DV2"])
    assert (added_rows(three), removed_rows(three)) == ([], [("D2", "DV7", "DV2")])
    assert leaves_read(three) == ["DVM1", "DVM3"]
    assert (added(four), removed(four)) == (["DV8", "D4"], ["DV4"])
    assert (added_rows(four), removed_rows(four)) == (["D4"], [("D1", "DV8", "DV4")])
    assert leaves_read(four) == ["DVM4", "DM3"]
