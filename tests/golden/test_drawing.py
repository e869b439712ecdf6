"""The notation that golden tests are written in says what it means, both ways."""

from __future__ import annotations

import pytest

from icetree.spec.entry.entry import ROOT, Entry, to_table
from icetree.spec.rules.entry import require
from icetree.tree.reading import leaves_in
from tests.golden.drawing import SHAPE, History, tree

LINES = (
    "M1 EXISTING",
    "MDV1 ADDED [0, 2] diff [2] -> M1",
    "DVM1 ADDED -> M1",
    "D4 ADDED",
    "D5 DELETED",
    "DV1 ADDED [5, 12] -> D4",
    "E1 ADDED",
)


def draw_all() -> tuple[History, list[str]]:
    history = History()
    history.snapshot("M1 ADDED", "D5 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    two = history.snapshot(*LINES, DVM1=["DV2 ADDED -> D2"])
    return history, history.draw(two.root)


def test_what_is_drawn_reads_back_as_the_same_lines() -> None:
    history, drawn = draw_all()
    assert drawn == list(LINES)
    assert history.draw_leaf("M1") == ["D1 ADDED", "D2 ADDED", "D3 ADDED"]
    assert history.draw_leaf("DVM1") == ["DV2 ADDED -> D2"]


def test_drawn_entries_keep_the_rules_of_the_format() -> None:
    history = History()
    history.snapshot("M1 ADDED", "D5 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])
    two = history.snapshot(*LINES, DVM1=["DV2 ADDED -> D2"])
    require(two.root, ROOT, file="drawn")


def test_drawn_leaves_hand_their_tracking_down() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED"])
    two = history.snapshot("D3 ADDED", "M2 ADDED", M2=["D1 EXISTING", "D2 ADDED"])
    (leaf,) = leaves_in(two.root)
    columns = ["snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"]
    rows = two.reader.leaf(leaf, columns=columns).to_pydict()
    assert rows == {
        "snapshot_id": [1, 2],
        "sequence_number": [1, 2],
        "file_sequence_number": [1, 2],
        "first_row_id": [0, 200],
    }


def test_leaves_and_manifest_dvs_not_drawn_before_get_the_next_free_name() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED"])
    made = Entry(content_type=3, location="metadata/5f3a.parquet", status=0)
    assert history.draw(to_table([made, made], SHAPE)) == ["M2 EXISTING", "M2 EXISTING"]


def test_a_line_outside_the_notation_is_refused() -> None:
    with pytest.raises(ValueError, match="not a drawn entry: 'D1 GONE'"):
        tree("D1 GONE")
