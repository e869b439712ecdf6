"""Diffs of snapshots beyond the proposal's drawings: edges and ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.errors import CorruptTable
from icetree.spec.entry.entry import BASE_COLUMNS, Content, Entries, Entry, to_table
from icetree.tree.diff.diff import Diff, diff, net
from tests.golden.drawing import SHAPE, History, Snapshot, tree


def of(snapshot: Snapshot) -> Diff:
    return snapshot.diff()


def files(found: Diff) -> tuple[list[str], list[str]]:
    return found.added["location"].to_pylist(), found.removed["location"].to_pylist()


def test_a_flush_is_no_change_and_reads_no_leaf() -> None:
    history = History()
    history.snapshot("D1 ADDED", "D2 ADDED")
    flushed = history.snapshot("M1 EXISTING", "D3 ADDED", M1=["D1 EXISTING", "D2 EXISTING"])
    flushed.reader.reads.clear()
    assert files(of(flushed)) == (["D3"], [])
    assert flushed.reader.reads == []


def test_a_tombstone_is_the_change_of_the_snapshot_that_wrote_its_leaf_only() -> None:
    history = History()
    history.snapshot("D1 ADDED", "D2 ADDED", "D3 ADDED")
    leaf = ["D1 DELETED", "D2 EXISTING", "D3 EXISTING"]
    assert files(of(history.snapshot("M1 ADDED", M1=leaf))) == ([], ["D1"])
    later = history.snapshot("M1 EXISTING", "MDV1 ADDED [0, 1] diff [0, 1] -> M1")
    assert files(of(later)) == ([], ["D2"])


def test_an_entry_that_came_and_went_in_one_snapshot_never_was() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    both = history.snapshot(
        "M1 ADDED", "MDV1 ADDED [0, 1] -> M1", M1=["D1 EXISTING", "D2 ADDED", "D3 ADDED"]
    )
    assert files(of(both)) == (["D3"], ["D1"])


def test_a_diff_says_where_entries_are_and_how_old_they_are() -> None:
    history = History()
    history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED"])
    two = history.snapshot("D3 ADDED", "M1 EXISTING", "MDV1 ADDED [1] -> M1")
    found = of(two)
    columns = ["location", "leaf", "position", "snapshot_id", "sequence_number"]
    assert found.added.select(columns).to_pylist() == [
        dict(zip(columns, ("D3", None, None, 2, 2), strict=True))
    ]
    assert found.removed.select(columns).to_pylist() == [
        dict(zip(columns, ("D2", "M1", 1, 1, 1), strict=True))
    ]
    assert found.added.column_names == [*BASE_COLUMNS, "position", "leaf"]
    assert found.removed.schema == found.added.schema == Diff().added.schema


def test_a_file_added_twice_in_one_snapshot_is_corrupt() -> None:
    twice = tree("D1 ADDED", "M1 ADDED", M1=["D1 ADDED"])
    with pytest.raises(CorruptTable, match="root: the file D1 is added twice in one snapshot"):
        of(twice)


def test_two_new_data_dvs_on_one_file_are_corrupt_though_dvs_may_share_a_puffin_file() -> None:
    twice = tree("D1 EXISTING", "DV1 ADDED -> D1", "DV2 ADDED -> D1")
    with pytest.raises(CorruptTable, match="the data DV of D1 is added twice"):
        of(twice)
    shared = tree("DV1 ADDED -> D1", "DV1 ADDED -> D2").root
    shared = shared.set_column(
        shared.column_names.index("referenced_file"), "referenced_file", [["D1", "D2"]]
    )
    assert files(diff(shared, History().reader)) == (["DV1", "DV1"], [])


# --- ranges ------------------------------------------------------------------------------------


def test_a_range_of_nothing_changes_nothing() -> None:
    assert files(net([])) == ([], [])
    assert files(net([Diff()])) == ([], [])


def test_a_range_of_one_snapshot_is_its_diff() -> None:
    history = History()
    history.snapshot("D1 ADDED", "D2 ADDED")
    one = of(history.snapshot("D2 DELETED", "D1 EXISTING", "D3 ADDED", "E1 ADDED"))
    assert net([one]) == one


def test_a_file_that_came_and_went_vanishes_from_the_range() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    two = of(history.snapshot("D1 EXISTING", "D2 ADDED", "D3 ADDED"))
    three = of(history.snapshot("D1 DELETED", "D2 DELETED", "D3 EXISTING"))
    assert files(net([two, three])) == (["D3"], ["D1"])


def test_a_file_that_went_and_came_back_vanishes_too() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    gone = of(history.snapshot("D1 DELETED"))
    back = of(history.snapshot("D1 ADDED"))
    assert files(net([gone, back])) == ([], [])
    again = of(history.snapshot("D1 DELETED"))
    assert files(net([gone, back, again])) == ([], ["D1"])
    last = of(history.snapshot("D1 ADDED"))
    assert files(net([back, again, last])) == (["D1"], [])
    assert net([gone, back, again]).removed["snapshot_id"].to_pylist() == [2]
    assert net([back, again, last]).added["snapshot_id"].to_pylist() == [5]


def test_a_dv_replaced_twice_keeps_the_first_previous_and_the_last_new() -> None:
    history = History()
    history.snapshot("D1 ADDED", "DV1 ADDED [1] -> D1")
    two = of(history.snapshot("D1 EXISTING", "DV1 DELETED -> D1", "DV2 ADDED [1, 2] -> D1"))
    three = of(history.snapshot("D1 EXISTING", "DV2 DELETED -> D1", "DV3 ADDED [1, 2, 3] -> D1"))
    whole = net([two, three])
    assert files(whole) == (["DV3"], ["DV1"])


def test_dvs_that_share_a_puffin_file_are_told_apart_by_data_file_and_offset() -> None:
    def data_dvs(*places: tuple[str, int]) -> Entries:
        rows = [
            Entry(
                content_type=Content.POSITION_DELETES,
                location="shared.puffin",
                file_format="puffin",
                dv_offset=offset,
                referenced_file=data_file,
            )
            for data_file, offset in places
        ]
        return to_table(rows, SHAPE)

    def places(entries: Entries) -> list[tuple[str, int]]:
        columns = (entries[name].to_pylist() for name in ("referenced_file", "dv_offset"))
        return list(zip(*columns, strict=True))

    moved = net([Diff(added=data_dvs(("D1", 60)), removed=data_dvs(("D1", 4)))])
    assert (places(moved.added), places(moved.removed)) == ([("D1", 60)], [("D1", 4)])
    other = net([Diff(added=data_dvs(("D1", 4)), removed=data_dvs(("D2", 4)))])
    assert (places(other.added), places(other.removed)) == ([("D1", 4)], [("D2", 4)])


# --- laws --------------------------------------------------------------------------------------

LEAVES = {"M1": range(4), "M2": range(4, 7)}


@given(
    st.lists(st.sets(st.integers(0, 13)), max_size=4),
    st.booleans(),
)
def test_what_a_range_changed_is_what_lives_after_less_what_lived_before(
    removals: list[set[int]], has_diffs: bool
) -> None:
    """Files D0 to D6 live in two leaves, D7 to D9 in the root; each snapshot also adds one."""
    history = History()
    drawn = {leaf: [f"D{n} ADDED" for n in held] for leaf, held in LEAVES.items()}
    roots = {f"D{n}" for n in (7, 8, 9)}
    history.snapshot("M1 ADDED", "M2 ADDED", *(f"{name} ADDED" for name in sorted(roots)), **drawn)
    lived = [set(roots) | {f"D{n}" for held in LEAVES.values() for n in held}]
    gone: dict[str, list[int]] = {leaf: [] for leaf in LEAVES}
    diffs = []
    for number, picked in enumerate(removals):
        taken = {f"D{n}" for n in picked} & lived[-1]
        lines = [f"{leaf} EXISTING" for leaf in LEAVES]
        for leaf, held in LEAVES.items():
            before, new = gone[leaf], [at for at, n in enumerate(held) if f"D{n}" in taken]
            gone[leaf] = sorted([*before, *new])
            name = f"MDV{leaf[1]}{number}"
            if new and has_diffs:
                lines.append(f"{name} ADDED {gone[leaf]} diff {new} -> {leaf}")
            elif new:
                lines += [f"{name}0 DELETED {before} -> {leaf}"] if before else []
                lines.append(f"{name} ADDED {gone[leaf]} -> {leaf}")
            elif before:
                lines.append(f"{name} EXISTING {before} -> {leaf}")
        lines += [f"{f} {'DELETED' if f in taken else 'EXISTING'}" for f in sorted(roots)]
        roots = (roots - taken) | {f"D1{number}"}
        diffs.append(of(history.snapshot(*lines, f"D1{number} ADDED")))
        lived.append((lived[-1] - taken) | {f"D1{number}"})
        came, went = files(diffs[-1])
        assert sorted(came) == sorted(lived[-1] - lived[-2])
        assert sorted(went) == sorted(lived[-2] - lived[-1])
    came, went = files(net(diffs))
    assert sorted(came) == sorted(lived[-1] - lived[0])
    assert sorted(went) == sorted(lived[0] - lived[-1])
