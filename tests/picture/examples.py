"""Drawn trees that several tests look at."""

from __future__ import annotations

from tests.golden.drawing import History, Snapshot, tree


def complex_row_delta() -> Snapshot:
    """Return the second snapshot of the proposal's complex row delta."""
    history = History()
    history.snapshot(
        "DM1 ADDED",
        "DVM1 ADDED -> DM1",
        DM1=["D1 ADDED", "D2 ADDED"],
        DVM1=["DV1 ADDED [5] -> D1", "DV2 ADDED [3] -> D2"],
    )
    return history.snapshot(
        "DM1 EXISTING",
        "DVM1 EXISTING -> DM1",
        "MDV3 ADDED [0] diff [0] -> DVM1",
        "DVM2 ADDED -> DM1",
        "DM2 ADDED",
        DVM2=["DV4 ADDED [5, 6] -> D1"],
        DM2=["D3 ADDED"],
    )


def everything() -> Snapshot:
    """Return a tree with all that can be drawn at once, and more leaves than get a box."""
    history = History()
    leaves = {f"M{number}": [f"D{number}{digit} ADDED" for digit in range(9)] for number in (1, 2)}
    leaves |= {f"M{number}": [f"D{number}0 ADDED"] for number in range(3, 8)}
    history.snapshot("D1 ADDED", *(f"{name} ADDED" for name in leaves), **leaves)
    history.snapshot(
        "D1 EXISTING",
        *(f"{name} EXISTING" for name in leaves),
        "DVM1 ADDED -> M1",
        "DVM2 ADDED",
        "E1 ADDED",
        "D2 ADDED",
        DVM1=["DV11 ADDED -> D11", "DV12 ADDED -> D12"],
        DVM2=["DV21 ADDED -> D21", "E9 ADDED"],
    )
    return history.snapshot(
        "D1 EXISTING",
        *(f"{name} EXISTING" for name in leaves),
        "DVM1 EXISTING -> M1",
        "DVM2 EXISTING",
        "E1 EXISTING",
        "D2 DELETED",
        "DV1 ADDED -> D1",
        "MDV1 ADDED [3, 4] -> M1",
        "MDV2 ADDED [0] -> DVM1",
        "MDV3 ADDED [1] -> DVM2",
    )


EXAMPLES = {
    "empty": tree,
    "one file": lambda: tree("D1 ADDED"),
    "three entries": lambda: tree("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"]),
    "complex row delta": complex_row_delta,
    "everything": everything,
}
