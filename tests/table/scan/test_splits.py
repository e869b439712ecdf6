"""Scan tasks as splits: nothing is lost or read twice, and shares are of about one size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.errors import InvalidInput
from icetree.tree.plan.tasks import DELETES, TASK
from icetree.tree.splits import SPLIT, SplitSizes, splits
from tests.planted import planted
from tests.table.lake import data_file, new_table, vector


def tasks(*files: tuple[int, list[int] | None], **more: list[object]) -> pa.Table:
    """Tasks for files of (size, split offsets)."""
    columns = {
        field.name: pa.nulls(len(files), field.type)
        if field.name not in more
        else pa.array(more[field.name], field.type)
        for field in TASK
    }
    columns["file_size_in_bytes"] = pa.array([size for size, _ in files], pa.int64())
    columns["split_offsets"] = pa.array([at for _, at in files], pa.list_(pa.int64()))
    return pa.table(columns, schema=TASK)


def split(
    *files: tuple[int, list[int] | None], cost: int = 0, **how: int
) -> list[list[tuple[int, int, int]]]:
    """The ranges of each split as (task, start, length), `target_bytes` being 100."""
    sizes = SplitSizes(**{"target_bytes": 100, "open_cost_bytes": cost} | how)
    found = splits(tasks(*files), DELETES.empty_table(), sizes).to_pylist()
    grouped: list[list[tuple[int, int, int]]] = [
        [] for _ in range(1 + max(row["split"] for row in found))
    ]
    for row in found:
        grouped[row["split"]].append((row["task"], row["start"], row["length"]))
    return grouped


FILES = st.lists(
    st.integers(0, 500).flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.none()
            | st.lists(st.integers(0, max(size - 1, 0)), unique=True, max_size=12).map(sorted)
            # Some writers get them wrong.
            | st.lists(st.integers(-5, size + 5), max_size=4),
        )
    ),
    max_size=40,
)


@given(FILES, st.integers(1, 300), st.integers(0, 50), st.integers(1, 12))
def test_every_byte_of_every_file_is_in_exactly_one_split(
    files: list[tuple[int, list[int] | None]], target: int, cost: int, lookback: int
) -> None:
    sizes = SplitSizes(target_bytes=target, open_cost_bytes=cost, lookback=lookback)
    found = splits(tasks(*files), DELETES.empty_table(), sizes)
    assert found.schema == SPLIT
    ranges: dict[int, list[tuple[int, int]]] = {}
    for row in found.to_pylist():
        ranges.setdefault(row["task"], []).append((row["start"], row["length"]))
    assert ranges.keys() == set(range(len(files)))
    for task, (size, offsets) in enumerate(files):
        parts = sorted(ranges[task])
        assert all(length > 0 for _, length in parts) or parts == [(0, 0)]
        ends = [0, *(start + length for start, length in parts)]
        assert ends == [*(start for start, _ in parts), size]
        if offsets and offsets == sorted({each for each in offsets if 0 <= each < size}):
            assert {start for start, _ in parts[1:]} <= set(offsets)


@given(FILES, st.integers(1, 300), st.integers(0, 50), st.integers(1, 12))
def test_splits_are_full_but_not_too_full(
    files: list[tuple[int, list[int] | None]], target: int, cost: int, lookback: int
) -> None:
    sizes = SplitSizes(target_bytes=target, open_cost_bytes=cost, lookback=lookback)
    found = splits(tasks(*files), DELETES.empty_table(), sizes)
    number, weight = found["split"].to_numpy(), found["weight"].to_numpy()
    assert np.array_equal(np.unique(number), np.arange(number.max(initial=-1) + 1))
    total = np.bincount(number, weight)
    alone = np.bincount(number) == 1
    assert np.all((total <= target) | alone)
    # Fewer than twice as many as any packing needs.
    assert len(total) <= max(1, 2 * weight.sum() / target + 1)


def test_a_large_file_is_cut_where_its_row_groups_begin() -> None:
    assert split((250, [4, 60, 90, 130, 200])) == [
        [(0, 0, 90)],
        [(0, 130, 70)],
        [(0, 90, 40), (0, 200, 50)],
    ]


def test_a_large_file_without_split_offsets_is_cut_at_the_target() -> None:
    assert split((250, None)) == [[(0, 0, 100)], [(0, 100, 100)], [(0, 200, 50)]]


def test_split_offsets_that_make_no_sense_are_not_believed() -> None:
    for wrong in ([4, 300], [4, 90, 90], [-1, 90]):
        assert split((250, wrong)) == split((250, None))


def test_light_ranges_go_beside_heavy_ones_within_the_window() -> None:
    files = [(size, None) for size in (70, 50, 30, 50, 70, 30)]
    assert [sum(length for *_, length in each) for each in split(*files)] == [100, 100, 100]
    # One split's weight is no window: what comes later cannot fill what came before.
    assert len(split(*files, lookback=1)) == 4


def test_small_files_are_shared_out_evenly() -> None:
    # Each weighs 4, so 25 fit and six splits are needed: none of them has only what was left.
    assert [len(each) for each in split(*[(1, None)] * 129, cost=4)] == [22, 22, 22, 22, 22, 19]


def test_deletes_weigh_too() -> None:
    row = {name: [None] for name in DELETES.names} | {"file_size_in_bytes": [30]}
    deletes = pa.table(row, schema=DELETES)
    files = tasks(
        (10, None),
        (10, None),
        (10, None),
        equality_deletes=[[0], None, [0]],
        dv_location=[None, "dv", "dv"],
        dv_size_in_bytes=[None, 5, 5],
    )
    free = splits(files, deletes, SplitSizes(open_cost_bytes=0))
    assert free["weight"].to_pylist() == [40, 15, 45]
    dear = splits(files, deletes, SplitSizes(open_cost_bytes=20))
    assert dear["weight"].to_pylist() == [40, 40, 60]


def test_a_scan_takes_sizes_from_table_properties_unless_told() -> None:
    table = new_table(
        properties={"read.split.target-size": "2000", "read.split.open-file-cost": "500"}
    )
    assert table.scan().splits().num_rows == 0
    table.append_files([data_file(f"f{number}", 0, 9) for number in range(4)])
    table.row_delta([vector("dv", of="f0")])
    # Each file has 1000 bytes; one of them has 40 of a DV more.
    assert _counts(table.scan().splits()) == [1, 2, 1]
    assert _counts(table.scan().splits(target_bytes=10_000)) == [4]
    assert _counts(table.scan().splits(open_cost_bytes=2000)) == [1, 1, 1, 1]
    assert table.scan().plan().splits()["split"].to_pylist() == [0, 0, 0, 0]


def _counts(found: pa.Table) -> list[int]:
    return np.bincount(found["split"].to_numpy()).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "128", True])
def test_a_target_that_is_no_size_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="target_bytes="):
        new_table().scan().splits(target_bytes=wrong)  # type: ignore[arg-type]


def test_a_property_that_is_no_size_is_refused() -> None:
    table = planted(new_table(), {"read.split.target-size": "128 MB"})
    with pytest.raises(InvalidInput, match=r"read\.split\.target-size='128 MB'"):
        table.scan().splits()


def test_sizes_beyond_any_table_are_as_good_as_none() -> None:
    huge = SplitSizes(target_bytes=2**70, open_cost_bytes=2**70, lookback=2**70)
    found = splits(tasks((10, None), (20, [4])), DELETES.empty_table(), huge)
    assert found["length"].to_pylist() == [10, 20]
