"""Boxes around well-known binary: right, the same however they are found, and safe."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icetree.codec import wkb
from icetree.codec.wkb import Boxes, boxes
from icetree.spec.geo import Box, meet
from tests.effort import law
from tests.rows.geometries import collection, line, measured, point, polygon, square

NAN = math.nan
EXAMPLES: list[tuple[bytes, list[float], list[float]]] = [
    (point(1, 2), [1, 2, NAN, NAN], [1, 2, NAN, NAN]),
    (point(1, 2, order=">"), [1, 2, NAN, NAN], [1, 2, NAN, NAN]),
    (point(1, 2, 3), [1, 2, 3, NAN], [1, 2, 3, NAN]),
    (measured(1, 2, 3), [1, 2, NAN, 3], [1, 2, NAN, 3]),
    (point(1, 2, 3, 4), [1, 2, 3, 4], [1, 2, 3, 4]),
    (point(1, NAN), [1, NAN, NAN, NAN], [1, NAN, NAN, NAN]),
    (point(NAN, NAN), [NAN] * 4, [NAN] * 4),
    (line((0, 5), (3, -1)), [0, -1, NAN, NAN], [3, 5, NAN, NAN]),
    (line(), [NAN] * 4, [NAN] * 4),
    (square(2, 3), [2, 3, NAN, NAN], [3, 4, NAN, NAN]),
    (polygon(), [NAN] * 4, [NAN] * 4),
    (collection(point(9, 9), point(-9, 8), kind=4), [-9, 8, NAN, NAN], [9, 9, NAN, NAN]),
    (collection(collection(line((7, 7))), point(1, 1)), [1, 1, NAN, NAN], [7, 7, NAN, NAN]),
]
BROKEN = [
    b"",
    b"junk",
    point(1, 2)[:-1],
    point(1, 2) + b"x",
    b"\x02" + point(1, 2)[1:],
    struct.pack("<BI2d", 1, 8, 1, 2),
    struct.pack("<BII", 1, 3, 2**32 - 1),
    struct.pack("<BII", 1, 7, 2**32 - 1),
    struct.pack("<BI", 1, 0x20000001) + struct.pack("<I2d", 4326, 1, 2),
]


def _same(one: Boxes, other: Boxes) -> bool:
    return (
        np.array_equal(one.least, other.least, equal_nan=True)
        and np.array_equal(one.most, other.most, equal_nan=True)
        and bool((one.sound == other.sound).all())
    )


@pytest.mark.parametrize("few", [0, 1000])
def test_a_geometry_has_its_box(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wkb, "_FEW", few)
    found = boxes(pa.array([value for value, _, _ in EXAMPLES]))
    assert found.sound.all()
    np.testing.assert_array_equal(found.least, [least for _, least, _ in EXAMPLES])
    np.testing.assert_array_equal(found.most, [most for _, _, most in EXAMPLES])


@pytest.mark.parametrize("few", [0, 1000])
def test_what_is_no_geometry_has_no_box_and_does_no_harm(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wkb, "_FEW", few)
    found = boxes(pa.array([*BROKEN, None, point(1, 2)]))
    assert found.sound.tolist() == [*[False] * (len(BROKEN) + 1), True]
    assert found.whole() == ([1, 2, None, None], [1, 2, None, None])


def test_a_collection_may_nest_as_deep_as_it_likes() -> None:
    head = struct.pack("<BII", 1, 7, 1)
    assert boxes(pa.array([head * 50_000 + point(1, 2)])).whole() is not None
    assert boxes(pa.array([head * 50_000])).sound.tolist() == [False]


@law(60)
@given(
    st.lists(st.sampled_from([*(value for value, _, _ in EXAMPLES), *BROKEN]), min_size=1),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=4),
    st.integers(0, 80),
    st.sampled_from([None, "spherical", "karney"]),
)
def test_many_values_at_once_are_read_as_each_alone(
    values: list[bytes], changes: list[tuple[int, int]], cut: int, edges: str | None
) -> None:
    damaged = []
    for number, value in enumerate(values):
        made = bytearray(value)
        for at, byte in changes:
            if number % 2 and at < len(made):
                made[at] = byte
        damaged.append(bytes(made[:cut] if number % 3 == 2 else made))
    before = wkb._FEW
    try:
        wkb._FEW = 0  # type: ignore[misc]
        together = boxes(pa.array(damaged, pa.binary()), edges=edges)
        wkb._FEW = 1000  # type: ignore[misc]
        assert _same(together, boxes(pa.array(damaged, pa.binary()), edges=edges))
    finally:
        wkb._FEW = before  # type: ignore[misc]


ON_EARTH: list[tuple[bytes, tuple[float, float, float, float]]] = [
    (point(180, 1), (180, 1, 180, 1)),
    (line((170, 0), (-170, 0)), (170, 0, -170, 0)),
    (line((-170, 0), (170, 0)), (170, 0, -170, 0)),
    (collection(point(179, 1), point(-179, 2), kind=4), (179, 1, -179, 2)),
    (line((10, 0), (-10, 0)), (-10, 0, 10, 0)),
    # The short way from here to there is over the north.
    (line((0, 60), (90, 60)), (0, 60, 90, 67.79)),
    # What goes around a pole has it within.
    (polygon([(0, 80), (120, 80), (-120, 80), (0, 80)]), (-180, -90, 180, 90)),
    (line((0, 10), (180, 10)), (-180, -90, 180, 90)),
]


@pytest.mark.parametrize(("value", "box"), ON_EARTH)
def test_a_geography_has_its_box_on_the_earth(
    value: bytes, box: tuple[float, float, float, float]
) -> None:
    found = boxes(pa.array([value]), edges="spherical").whole()
    assert found is not None
    low, high = found
    np.testing.assert_allclose([low[0], low[1], high[0], high[1]], box, atol=0.01)  # type: ignore[arg-type]


_X = st.one_of(st.integers(-180, 180).map(float), st.floats(-180, 180))
_Y = st.one_of(st.integers(-90, 90).map(float), st.floats(-90, 90))
_PLACE = st.tuples(_X, _Y)
_VALUES = st.one_of(
    _PLACE.map(lambda each: point(*each)),
    st.lists(_PLACE, min_size=2, max_size=4).map(lambda each: line(*each)),
    st.lists(_PLACE, min_size=1, max_size=3).map(
        lambda each: collection(*(point(*one) for one in each), kind=4)
    ),
)


@law(150)
@given(st.lists(_VALUES, min_size=1, max_size=6), _X, _X, st.tuples(_Y, _Y), st.booleans())
@example([point(180.0, 0.0)], -180.0, -170.0, (0.0, 0.0), True)
def test_a_box_around_many_is_met_wherever_one_of_them_is(
    values: list[bytes], west: float, east: float, heights: tuple[float, float], earth: bool
) -> None:
    if not earth:
        west, east = min(west, east), max(west, east)
    box = Box(west=west, south=min(heights), east=east, north=max(heights))
    found = boxes(pa.array(values), edges="spherical" if earth else None)
    whole = found.whole()
    assert whole is not None
    low, high = (np.array([corner[:2]], np.float64) for corner in whole)
    if meet(found.least, found.most, box, earth=earth).any():
        assert meet(low, high, box, earth=earth).all()


def _on_the_way(one: tuple[float, float], other: tuple[float, float]) -> list[tuple[float, float]]:
    """Places on the great circle between two, by the mean of their directions."""

    def direction(place: tuple[float, float]) -> np.ndarray:
        x, y = map(math.radians, place)
        return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])

    made = []
    for share in np.linspace(0, 1, 9):
        mean = (1 - share) * direction(one) + share * direction(other)
        length = float(np.linalg.norm(mean))
        if length > 1e-6:
            x, y, z = mean / length
            made.append((math.degrees(math.atan2(y, x)), math.degrees(math.asin(z))))
    return made


@law(150)
@given(_PLACE, _PLACE, st.sampled_from(["spherical", "vincenty"]))
def test_every_place_on_an_edge_is_in_its_box(
    one: tuple[float, float], other: tuple[float, float], edges: str
) -> None:
    found = boxes(pa.array([line(one, other)]), edges=edges)
    for x, y in _on_the_way(one, other):
        near = Box(west=x, south=y - 1e-6, east=x, north=y + 1e-6)
        if abs(y) < 89.999:
            assert meet(found.least, found.most, near, earth=True).all(), (x, y)
