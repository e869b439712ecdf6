"""Reading parts of a leaf gives the same entries as reading all of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks import data
from icetree.codec import manifest
from icetree.codec.inherit import Inherited
from icetree.codec.manifest.stored import WORTH_IT
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.spec.entry.entry import DATA, POSITION, Entries, Status, with_columns

SHAPE = data.shape_of(3)
SIZE = 3 * LEAF_ROW_GROUP + 100
TRACKING = Inherited(snapshot_id=7, sequence_number=5, first_row_id=1_000_000)
SUBSETS = [list(some) for size in range(5) for some in combinations(range(4), size)]


def leaf_entries() -> Entries:
    """Return entries of three kinds: with row ids of their own, without, and DELETED."""
    files = data.new_files(np.arange(SIZE), SHAPE)
    turn = pa.array(np.arange(SIZE) % 3)
    old, gone = pc.equal(turn, 1), pc.equal(turn, 2)
    null, five = pa.scalar(None, pa.int64()), pa.scalar(5, pa.int64())
    age = pc.if_else(pc.or_(old, gone), five, null)
    status = pc.if_else(gone, int(Status.DELETED), pc.if_else(old, 0, int(Status.ADDED)))
    return with_columns(
        files,
        status=status.cast(pa.int32()),
        sequence_number=age,
        file_sequence_number=age,
        first_row_id=pc.if_else(old, pa.array(np.arange(SIZE)), null),
    )


@pytest.fixture(scope="module")
def content() -> bytes:
    made = manifest.encode(leaf_entries(), DATA, SHAPE)
    # A leaf that is met for the first time is read without its statistics.
    for _ in range(WORTH_IT):
        read(made, [0])
    return made


def read(content: bytes, groups: list[int] | None, columns: set[str] | None = None) -> Entries:
    def keep(stats: pa.Table) -> pa.BooleanArray:
        if stats.num_rows != 4:  # entries, not row groups: all of them
            return pa.repeat(pa.scalar(True), stats.num_rows)
        return pa.array([at in groups for at in range(4)])

    return manifest.decode(
        content,
        DATA,
        SHAPE,
        file="leaf",
        tracking=TRACKING,
        columns=columns,
        keep=None if groups is None else keep,
    )


def ordinals(groups: list[int]) -> pa.Array:
    rows = np.arange(SIZE)
    return pa.array(rows[np.isin(rows // LEAF_ROW_GROUP, groups)])


@pytest.mark.parametrize("groups", SUBSETS)
def test_row_groups_read_alone_are_those_of_the_whole(content: bytes, groups: list[int]) -> None:
    whole = read(content, None)
    assert read(content, groups).equals(whole.take(ordinals(groups)))


@pytest.mark.parametrize(
    "columns",
    [
        {"first_row_id", POSITION},
        {"location", "status", "first_row_id", "1:lower", POSITION},
        {"content_type", "status", "record_count", "first_row_id", POSITION},
        {"location", "status", "sequence_number", "2:upper"},
    ],
)
@pytest.mark.parametrize("groups", [None, [], [0], [2], [0, 1], [1, 3], [0, 1, 2, 3]])
def test_columns_read_alone_are_those_of_the_whole(
    content: bytes, groups: list[int] | None, columns: set[str]
) -> None:
    some = read(content, groups, columns)
    whole = read(content, None)
    if groups is not None:
        whole = whole.take(ordinals(groups))
    assert set(some.column_names) == columns | {POSITION}
    for name in some.column_names:
        assert some[name].equals(whole[name]), name


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple])
def test_columns_may_be_named_in_any_collection(content: bytes, kind: type) -> None:
    columns = kind(["status", "location"])
    found = manifest.decode(
        content, DATA, SHAPE, file="leaf", tracking=TRACKING, columns=columns, keep=None
    )
    assert set(found.column_names) == {"status", "location", POSITION}


def test_a_reader_is_told_the_bounds_of_each_row_group(content: bytes) -> None:
    told: list[pa.Table] = []

    def keep(stats: pa.Table) -> pa.BooleanArray:
        told.append(stats)
        return pa.repeat(pa.scalar(False), stats.num_rows)

    columns = {"location", "1:lower", "1:upper"}
    manifest.decode(
        content, DATA, SHAPE, file="leaf", tracking=TRACKING, columns=columns, keep=keep
    )
    [stats] = told
    firsts = [at * LEAF_ROW_GROUP for at in range(4)]
    lasts = [*(first - 1 for first in firsts[1:]), SIZE - 1]
    assert stats.to_pydict() == {
        "record_count": [LEAF_ROW_GROUP] * 3 + [100],
        "1:lower": [first * data.SLOT for first in firsts],
        "1:upper": [last * data.SLOT + data.SLOT - 1 for last in lasts],
    }
