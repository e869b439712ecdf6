"""Stats of a manifest: they contain those of its entries, and never tell more than is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.spec.entry.entry import Content, Entry, Status, to_table
from icetree.spec.entry.stats import FieldStats, column
from icetree.spec.schema.shape import Shape
from icetree.tree.aggregate import aggregate
from icetree.tree.leaf import make_leaf
from tests.effort import law
from tests.laws.kinds import GEO_KINDS, KINDS, Kind, plain

pytestmark = pytest.mark.law

FIELD = 1


def shape_of(kind: Kind) -> Shape:
    return Shape(schema=Schema(NestedField(FIELD, "field", kind.type)))


def aggregated(kind: Kind, children: list[FieldStats]) -> FieldStats:
    """Return the aggregate of children as a value; bounds as `plain` tells them."""
    files = [Entry(location=str(i), stats={FIELD: each}) for i, each in enumerate(children)]
    found = aggregate(to_table(files, shape_of(kind)))
    for name, scalar in found.items():
        assert scalar.is_valid, name
    return FieldStats(**{name.partition(":")[2]: plain(scalar) for name, scalar in found.items()})


@dataclass(frozen=True, slots=True)
class Child:
    """A file: the values that it has, and the stats that it tells of them."""

    values: list[Any]
    stats: FieldStats


@st.composite
def children(draw: st.DrawFn, kind: Kind) -> Child:
    """Draw a file with values, nulls only, NaNs only or none at all; some tell less."""
    present = draw(st.lists(kind.values, max_size=4))
    nulls = draw(st.integers(0, 2))
    nans = draw(st.integers(0, 2)) if kind.is_float else 0
    tight = draw(st.sampled_from([True, False, None]))
    told = FieldStats(
        lower=min(present, key=kind.order, default=None),
        upper=max(present, key=kind.order, default=None),
        tight=tight if present else None,
        values=len(present) + nulls + nans,
        nulls=nulls,
        nans=nans if kind.is_float else None,
    )
    for untold in draw(
        st.sampled_from([(), (), (), ("lower",), ("upper",), ("values",), ("nulls",), ("nans",)])
    ):
        told = replace(told, **{untold: None})
    return Child(present, told)


def tells_no_values(stats: FieldStats) -> bool:
    if stats.values is None or stats.nulls is None:
        return False
    return stats.nulls + (stats.nans or 0) == stats.values


@pytest.mark.parametrize("name", KINDS)
def test_an_aggregate_contains_every_value_and_is_as_tight_as_its_children(name: str) -> None:
    kind = KINDS[name]

    @law(60)
    @given(st.lists(children(kind), min_size=1, max_size=4))
    def holds(files: list[Child]) -> None:
        told = [each.stats for each in files]
        found = aggregated(kind, told)
        for stat, pick in (("lower", min), ("upper", max)):
            bound = getattr(found, stat)
            bounds = [getattr(each, stat) for each in told]
            known = [each for each in bounds if each is not None]
            hidden = [
                each for each in told if getattr(each, stat) is None and not tells_no_values(each)
            ]
            if hidden or not known:
                assert bound is None, "what is unknown of a child is unknown of all"
            else:
                assert kind.order(bound) == kind.order(pick(known, key=kind.order))
        for each in (value for file in files for value in file.values):
            assert found.lower is None or kind.order(found.lower) <= kind.order(each)
            assert found.upper is None or kind.order(found.upper) >= kind.order(each)
        for stat in ("values", "nulls", "nans"):
            counts = [getattr(each, stat) for each in told]
            assert getattr(found, stat) == (None if None in counts else sum(counts))

    holds()


@given(st.lists(children(KINDS["long"]), min_size=1, max_size=4))
@law(200)
def test_bounds_are_tight_only_where_those_of_every_child_with_values_are(
    files: list[Child],
) -> None:
    told = [each.stats for each in files]
    found = aggregated(KINDS["long"], told)
    counted = [each.tight for each in told if not tells_no_values(each)]
    if found.lower is None and found.upper is None:
        assert found.tight is None
    elif False in counted:
        assert found.tight is False
    elif None in counted:
        assert found.tight is None
    else:
        assert found.tight is True


@pytest.mark.parametrize("zero", [0, 0.0, ""])
def test_bounds_of_zero_are_bounds(zero: object) -> None:
    kind = KINDS[{int: "long", float: "double", str: "string"}[type(zero)]]
    one = FieldStats(lower=zero, upper=zero, tight=True, values=1, nulls=0)
    assert aggregated(kind, [one, one]) == replace(one, values=2)


@pytest.mark.parametrize("name", ["float", "double"])
@pytest.mark.parametrize("order", [(0.0, -0.0), (-0.0, 0.0)])
def test_minus_zero_comes_before_plus_zero(name: str, order: tuple[float, float]) -> None:
    children = [FieldStats(lower=zero, upper=zero, values=1, nulls=0) for zero in order]
    found = aggregated(KINDS[name], children)
    assert (str(found.lower), str(found.upper)) == ("-0.0", "0.0")


@pytest.mark.parametrize("name", KINDS)
def test_children_without_values_hide_no_bounds(name: str) -> None:
    kind = KINDS[name]
    nulls = FieldStats(values=3, nulls=3)
    none = FieldStats(values=0, nulls=0)

    @law(5)
    @given(kind.values)
    def holds(value: object) -> None:
        known = FieldStats(lower=value, upper=value, values=1, nulls=0)
        found = aggregated(kind, [nulls, known, none])
        assert (kind.order(found.lower), kind.order(found.upper)) == (kind.order(value),) * 2
        assert (found.values, found.nulls) == (4, 3)

    holds()
    assert aggregated(kind, [nulls, none]) == FieldStats(values=3, nulls=3)


def test_nans_only_children_hide_no_bounds_where_their_nans_are_counted() -> None:
    kind = KINDS["double"]
    known = FieldStats(lower=1.0, upper=2.0, values=2, nulls=0, nans=0)
    counted = FieldStats(values=2, nulls=0, nans=2)
    assert aggregated(kind, [known, counted]).lower == 1.0
    assert aggregated(kind, [known, replace(counted, nans=None)]).lower is None


def test_a_child_without_any_stats_makes_all_of_them_unknown() -> None:
    known = FieldStats(lower=1, upper=2, tight=True, values=2, nulls=0)
    assert aggregated(KINDS["long"], [known, FieldStats()]) == FieldStats()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 50), st.integers(50, 90)), min_size=1))
@law(50)
def test_value_sizes_are_the_greatest_and_the_mean(files: list[tuple[int, int, int]]) -> None:
    told = [FieldStats(values=v, nulls=0, avg_size=a, max_size=m) for v, a, m in files]
    found = aggregated(KINDS["string"], told)
    assert found.max_size == max(m for _, _, m in files)
    values = sum(v for v, _, _ in files)
    assert found.avg_size is not None
    assert abs(found.avg_size * values - sum(v * a for v, a, _ in files)) <= max(values, 1) / 2


@pytest.mark.parametrize("name", GEO_KINDS)
def test_an_aggregate_box_contains_its_boxes(name: str) -> None:
    kind = GEO_KINDS[name]

    @law(60)
    @given(st.lists(st.tuples(kind.values, kind.values), min_size=1, max_size=4))
    def holds(corners: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        boxes = [_box(a, b) for a, b in corners]
        found = aggregated(kind, [FieldStats(lower=low, upper=up) for low, up in boxes])
        for axis in ("x", "y", "z", "m"):
            lows, ups = ([box[side][axis] for box in boxes] for side in (0, 1))
            assert found.lower[axis] == (None if None in lows else min(lows))
            assert found.upper[axis] == (None if None in ups else max(ups))

    holds()


def _box(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    pairs = {axis: [v for v in (a[axis], b[axis]) if v is not None] for axis in a}
    return (
        {axis: min(both, default=None) for axis, both in pairs.items()},
        {axis: max(both, default=None) for axis, both in pairs.items()},
    )


def test_boxes_across_the_antimeridian_are_gone_around() -> None:
    corner = {"y": 1.0, "z": None, "m": None}
    across = FieldStats(lower=corner | {"x": 170.0}, upper=corner | {"x": -170.0})
    small = FieldStats(lower=corner | {"x": 1.0}, upper=corner | {"x": 2.0})
    found = aggregated(GEO_KINDS["geography"], [across, small])
    # The way around that leaves out most: from 1 eastwards, over 180, to -170.
    assert found.lower == corner | {"x": 1.0}
    assert found.upper == corner | {"x": -170.0}


@pytest.mark.parametrize("name", [*KINDS, *GEO_KINDS])
def test_a_leafs_entry_tells_the_aggregate_of_its_entries(name: str) -> None:
    kind = KINDS.get(name) or GEO_KINDS[name]

    @law(10)
    @given(st.lists(kind.values, min_size=1, max_size=3))
    def holds(values: list[Any]) -> None:
        files = [
            Entry(
                location=str(i),
                file_size_in_bytes=1,
                stats={FIELD: FieldStats(lower=each, upper=each, values=1, nulls=0)},
            )
            for i, each in enumerate(values)
        ]
        entries = to_table(files, shape_of(kind))
        leaf = make_leaf(
            entries, Content.DATA_MANIFEST, "leaf", shape_of(kind), status=Status.ADDED
        )
        derived = aggregate(entries)
        assert column(FIELD, "values") in derived
        for stat, scalar in derived.items():
            told = leaf.entry[stat]
            assert told.type == scalar.type
            assert told[0].equals(scalar)
        assert pa.types.is_struct(kind.arrow) or column(FIELD, "lower") in derived

    holds()
