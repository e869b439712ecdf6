"""Bounds of a column whose type changed: widened where the format allows it, else refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, NestedField

from icetree.codec import manifest
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import DATA, Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.shape import Shape
from tests.effort import law
from tests.laws.kinds import GEO_KINDS, KINDS, Kind
from tests.laws.same import require_same

pytestmark = pytest.mark.law

ALL = KINDS | GEO_KINDS

PROMOTIONS = [
    ("int", "long"),
    ("float", "double"),
    ("date", "timestamp"),
    ("date", "timestamp_ns"),
]


def promoted(old: Kind, new: Kind, entries: list[FieldStats]) -> Entries:
    before, after = (Shape(schema=Schema(NestedField(1, "f", kind.type))) for kind in (old, new))
    files = [
        Entry(location=str(i), file_size_in_bytes=1, stats={1: each})
        for i, each in enumerate(entries)
    ]
    stored = manifest.encode(to_table(files, before), DATA, before)
    return manifest.decode(stored, DATA, after, file="the leaf")


@pytest.mark.parametrize(("old", "new"), PROMOTIONS)
def test_bounds_are_widened_with_their_column(old: str, new: str) -> None:
    # Every timestamp_ns lies between 1677 and 2262.
    values = st.integers(-100_000, 100_000) if old == "date" else KINDS[old].values

    @law(30)
    @given(st.lists(values, min_size=1, max_size=3))
    def holds(values: list[Any]) -> None:
        found = promoted(KINDS[old], KINDS[new], [FieldStats(lower=v, upper=v) for v in values])
        unit = {"timestamp": 86_400_000_000, "timestamp_ns": 86_400_000_000_000}.get(new, 1)
        expected = pa.array([value * unit for value in values], KINDS[new].arrow)
        require_same(found.select(["1:lower"]), pa.table({"1:lower": expected}))

    holds()


@given(st.lists(KINDS["decimal(9, 2)"].values, min_size=1))
@law(30)
def test_decimal_bounds_are_widened_within_their_scale(values: list[Any]) -> None:
    wide = replace(KINDS["decimal(9, 2)"], type=DecimalType(20, 2))
    told = [FieldStats(lower=v, upper=v) for v in values]
    found = promoted(KINDS["decimal(9, 2)"], wide, told)
    assert found["1:upper"].to_pylist() == values
    with pytest.raises(CorruptTable, match=r"the leaf: column 1:lower has type decimal"):
        promoted(KINDS["decimal(9, 2)"], KINDS["decimal(38, 10)"], told)


_WIDENINGS = {*PROMOTIONS, ("geometry", "geography"), ("geography", "geometry")}


@pytest.mark.parametrize(
    ("old", "new"),
    [pair for pair in permutations(ALL, 2) if pair not in _WIDENINGS],
)
def test_no_other_change_of_type_is_taken_for_one(old: str, new: str) -> None:
    value = {"x": 1.0, "y": 1.0, "z": None, "m": None} if old in GEO_KINDS else _ONE[old]
    with pytest.raises(CorruptTable, match=r"the leaf: column 1:lower has type"):
        promoted(ALL[old], ALL[new], [FieldStats(lower=value, upper=value)])


_ONE: dict[str, Any] = dict.fromkeys(KINDS, 1) | {
    "boolean": True,
    "string": "1",
    "uuid": b"1" * 16,
    "fixed(7)": b"1" * 7,
    "binary": b"1",
}
