"""Laws of row groups of leaves: what they tell is true, and skipping some loses nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec import manifest
from icetree.codec.manifest import stored as codec
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    DATA,
    POSITION,
    Entry,
    concat,
    to_table,
)
from icetree.spec.entry.stats import FieldStats
from tests.effort import law
from tests.laws.kinds import KINDS
from tests.laws.leaves import EVERY_TYPE, FIELD_OF, LEAF, ONE_LONG, long_leaf, two_of_a_name
from tests.laws.same import require_same


@pytest.fixture
def leaves_worth_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the whole footer looked at when a leaf is met for the first time."""
    monkeypatch.setattr(codec, "WORTH_IT", 1)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3, 5])
def test_skipped_row_groups_lose_nothing_that_was_to_be_kept(groups: int, narrow: bool) -> None:
    entries = long_leaf(groups, ONE_LONG)
    size = entries.num_rows
    stored = manifest.encode(entries, DATA, ONE_LONG)
    whole = manifest.decode(stored, DATA, ONE_LONG, file="m", tracking=LEAF)
    columns = set(whole.column_names) - {"key_metadata"} if narrow else None
    fewest = size

    @law(25)
    @given(st.integers(0, size), st.integers(0, size // 3))
    def holds(start: int, length: int) -> None:
        nonlocal fewest

        def overlaps(bounds: pa.Table) -> pa.BooleanArray:
            hit = pc.and_(
                pc.less_equal(bounds["1:lower"], start + length),
                pc.greater_equal(bounds["1:upper"], start),
            )
            return pc.fill_null(hit, True).combine_chunks()

        found = manifest.decode(
            stored, DATA, ONE_LONG, file="m", tracking=LEAF, keep=overlaps, columns=columns
        )
        positions = found[POSITION].combine_chunks()
        wanted = np.flatnonzero(overlaps(whole).to_numpy(zero_copy_only=False))
        assert np.isin(wanted, positions.to_numpy()).all()
        require_same(found, whole.select(found.column_names).take(positions))
        fewest = min(fewest, len(positions))

    holds()
    assert fewest < size or groups == 1


@pytest.mark.usefixtures("leaves_worth_a_look")
def test_row_groups_tell_the_bounds_of_the_right_one_of_two_fields_of_a_name() -> None:
    shape = two_of_a_name()
    one = long_leaf(2, shape)
    entries = one.append_column("6:lower", pa.repeat("z", one.num_rows)).append_column(
        "2:lower", pc.negate(one["1:lower"])
    )
    seen: list[pa.Table] = []

    def keep(bounds: pa.Table) -> pa.BooleanArray:
        seen.append(bounds)
        return pa.array([True] * bounds.num_rows)

    stored = manifest.encode(entries, DATA, shape)
    manifest.decode(stored, DATA, shape, file="m", tracking=LEAF, keep=keep)
    first, last = LEAF_ROW_GROUP, one.num_rows - 1
    assert seen[0].select(["1:lower", "2:lower", "6:lower"]).to_pylist() == [
        {"1:lower": 0, "2:lower": 1 - first, "6:lower": "z"},
        {"1:lower": first, "2:lower": -last, "6:lower": "z"},
    ]


@pytest.mark.usefixtures("leaves_worth_a_look")
def test_row_groups_tell_bounds_of_every_type() -> None:
    @law(3)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        parts = []
        for _ in range(2):
            told = {
                FIELD_OF[name]: FieldStats(lower=(value := data.draw(kind.values)), upper=value)
                for name, kind in KINDS.items()
            }
            one = to_table([Entry(location="x", file_size_in_bytes=1, stats=told)], EVERY_TYPE)
            parts.append(one.take(pa.array(np.zeros(LEAF_ROW_GROUP, dtype=np.int64))))
        entries = concat(parts)
        names = pa.array(np.arange(entries.num_rows)).cast(pa.string())
        entries = entries.set_column(entries.column_names.index("location"), "location", names)
        seen: list[pa.Table] = []

        def keep(bounds: pa.Table) -> pa.BooleanArray:
            seen.append(bounds)
            return pa.array([True] * bounds.num_rows)

        stored = manifest.encode(entries, DATA, EVERY_TYPE)
        manifest.decode(stored, DATA, EVERY_TYPE, file="m", tracking=LEAF, keep=keep)
        expected = concat([part.slice(0, 1) for part in parts])
        for name in KINDS:
            for stat in ("lower", "upper"):
                column = stats.column(FIELD_OF[name], stat)
                if column in seen[0].column_names:
                    # A row group may not know a bound, but what it tells must be true; a zero
                    # may have either sign.
                    told = seen[0][column].combine_chunks()
                    right = pc.equal(told, expected[column].combine_chunks())
                    assert False not in right.to_pylist(), name
        assert {stats.column(FIELD_OF[name], "lower") for name in KINDS} <= set(
            seen[0].column_names
        )

    holds()
