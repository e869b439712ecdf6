"""Geometries and geographies: written, read, bounded by boxes and found by them."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.errors import InvalidInput
from icetree.rows.write.write import write_files
from icetree.spec.entry.stats import column
from icetree.spec.fields import GEO_AXES
from icetree.spec.schema.text import read_type
from icetree.spec.schema.types import parse_type, type_text
from icetree.table.table import Table
from tests.effort import law
from tests.rows.geometries import collection, line, measured, point, polygon, square
from tests.rows.lake import files, new_table
from tests.table.changing import LEAFY

TYPES = {
    "geometry": "geometry",
    "geometry(srid:4326)": "geometry(srid:4326)",
    "geometry( 'EPSG:3857' )": "geometry(EPSG:3857)",
    "geography": "geography",
    "geography(srid:4326, spherical)": "geography(srid:4326, spherical)",
    "geography(srid:4326,spherical)": "geography(srid:4326, spherical)",
    "geography('srid:4326', 'karney')": "geography(srid:4326, karney)",
    "geography(OGC:CRS84, Thomas)": "geography(OGC:CRS84, thomas)",
}
PLACES = [square(0, 0), square(10, 10), line((5, 5), (6, 7)), None, polygon(), point(3, 4)]


def _rows(*values: bytes | None) -> pa.Table:
    numbers = pa.array(range(len(values)), pa.int32())
    return pa.table({"id": numbers, "g": pa.array(values, pa.binary())})


def _table(type: str = "geometry", **how: Any) -> Table:
    return new_table({"id": "int", "g": type}, **how)


def _one_file_each(table: Table, *values: bytes | None) -> None:
    for number, value in enumerate(values):
        id = pa.array([number], pa.int32())
        table.append(pa.table({"id": id, "g": pa.array([value], pa.binary())}))


def _entry(table: Table, *values: bytes | None) -> dict[str, Any]:
    """Return the entry of a file of these."""
    made = write_files(_rows(*values), metadata=table.metadata, store=table.files.store)
    [entry] = made.to_pylist()
    found: dict[str, Any] = entry
    return found


def _found(table: Table, where: str) -> tuple[list[int], int]:
    """Return the ids of rows that match, and how many files were looked at."""
    scan = table.scan(where)
    return sorted(scan.to_arrow()["id"].to_pylist()), scan.plan().tasks.num_rows


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_written_as_the_specification_writes_it(text: str) -> None:
    assert type_text(read_type(text)) == TYPES[text]
    assert type_text(parse_type(TYPES[text])) == TYPES[text]
    table = _table(text)
    assert table.metadata.schemas[-1]["fields"][1]["type"] == TYPES[text]


@pytest.mark.parametrize("text", ["geometry()", "geometry(a, b)", "geography(srid:1, flat)", "geo"])
def test_a_type_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a type that Iceberg knows"):
        read_type(text)


NOTES = {
    "geometry": "Geometry(crs=)",
    "geometry(srid:4326)": "Geometry(crs=srid:4326)",
    "geography": "Geography(crs=, algorithm=spherical)",
    "geography(srid:4326, karney)": "Geography(crs=srid:4326, algorithm=karney)",
}


@pytest.mark.parametrize("type", NOTES)
def test_files_tell_readers_what_their_bytes_are(type: str) -> None:
    table = new_table({"id": "int", "g": type, "l": f"list<struct<g: {type}>>"})
    nested = pa.list_(pa.struct([("g", pa.binary())]))
    rows = _rows(point(1, 2), None)
    rows = rows.append_column("l", pa.array([[{"g": point(5, 6)}, None], None], nested))
    table.append(rows)
    [file] = files(table)
    stored = pq.ParquetFile(table.files.store.open(file))
    assert [str(stored.schema.column(at).logical_type) for at in range(3)] == [
        "None",
        NOTES[type],
        NOTES[type],
    ]
    # Bytes have an order that means nothing for them.
    group = stored.metadata.row_group(0)
    assert [group.column(at).statistics is None for at in range(3)] == [False, True, True]
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()
    assert table.verify(deep=True).is_clean


def test_a_file_has_the_box_of_its_geometries() -> None:
    entry = _entry(_table(), *PLACES)
    assert entry[column(2, "lower")] == {"x": 0, "y": 0, "z": None, "m": None}
    assert entry[column(2, "upper")] == {"x": 11, "y": 11, "z": None, "m": None}
    assert entry[column(2, "nulls")] == 1


def test_a_box_finds_the_rows_that_share_a_place_with_it_and_few_files() -> None:
    table = _table()
    _one_file_each(table, *PLACES)
    # Beside theirs, the file with the empty one alone, of which no box is told.
    assert _found(table, "st_intersects(g, box(0.5, 0.5, 4, 4.5))") == ([0, 5], 2 + 1)
    assert _found(table, "st_intersects(g, box(1, 1, 1, 1))") == ([0], 1 + 1)
    assert _found(table, "st_intersects(g, box(20, 20, 30, 30))") == ([], 0 + 1)
    # The empty one is nowhere, and of null nothing is known.
    assert _found(table, "not st_intersects(g, box(0, 0, 9, 9))") == ([1, 4], 5)
    assert _found(table, "st_intersects(g, box(9, 9, 99, 99)) or id = 0") == ([0, 1], 2 + 1)


@pytest.mark.parametrize("leafy", [False, True])
def test_a_box_across_the_antimeridian_finds_both_sides(leafy: bool) -> None:
    table = _table("geography", properties=LEAFY if leafy else {})
    places = [
        point(179, 0),
        point(-179, 0),
        line((170, 10), (-170, 10)),
        point(0, 0),
        point(180, 5),
    ]
    _one_file_each(table, *places)
    assert _found(table, "st_intersects(g, box(175, -1, -175, 1))") == ([0, 1], 2)
    assert _found(table, "st_intersects(g, box(-180, 4, -180, 20))") == ([2, 4], 2)
    assert _found(table, "st_intersects(g, box(-10, -10, 10, 10))") == ([3], 1)
    assert _found(table, "st_intersects(g, box(-180, -90, 180, 90))")[0] == [0, 1, 2, 3, 4]
    entry = _entry(_table("geography"), *places[:3])
    assert (entry[column(2, "lower")]["x"], entry[column(2, "upper")]["x"]) == (170, -170)


def test_leaves_have_boxes_that_are_pruned_too() -> None:
    table = _table("geography", properties=LEAFY)
    _one_file_each(table, *(point(x, 0) for x in (179, -179, 178, -178, 177, -177)))
    assert _found(table, "st_intersects(g, box(-10, -10, 10, 10))") == ([], 0)
    assert _found(table, "st_intersects(g, box(178.5, -10, -178.5, 10))") == ([0, 1], 2)
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("st_intersects(id, box(0, 0, 1, 1))", "takes a geometry"),
        ("st_intersects(x, box(0, 0, 1, 1))", "no column 'x'"),
        ("st_intersects(g, box(1, 0, 0, 1))", "has nothing in it"),
        ("st_intersects(g, box(0, 1, 1, 0))", "has nothing in it"),
        ("st_intersects(g, box(0, 1, 1))", "a box has 3 ends"),
        ("st_intersects(g, box(0, 0, 0, 1, 1))", "a box has 5 ends"),
        (
            "st_intersects(g, box(0, 0, 5, 1, 1, 4))",
            "has nothing in it: give the least corner first",
        ),
        ("st_intersects(g, box(0, 0, null, 1, 1, 4))", "both ends of an axis"),
        ("st_intersects(g, box(0, null, 1, null))", "x and y of a box are numbers"),
        ("st_intersects(g, 5)", "expected a box"),
        ("st_intersects(g, box(a, 1, 1, 2))", "expected a number"),
    ],
)
def test_a_box_that_makes_no_sense_is_refused(where: str, why: str) -> None:
    table = _table()
    table.append(_rows(point(1, 1)))
    with pytest.raises(InvalidInput, match=why):
        table.scan(where).to_arrow()


def test_a_box_with_z_or_m_finds_what_has_them() -> None:
    table = _table()
    places = [point(1, 1), point(1, 1, 5), measured(1, 1, 7), line((0, 0, 3, 1), (2, 2, 9, 2))]
    _one_file_each(table, *places, collection(point(1, 1), point(2, 2, 50)))
    assert _found(table, "st_intersects(g, box(0, 0, 9, 9))") == ([0, 1, 2, 3, 4], 5)
    # Of a file without a z it is not told that its geometries have none.
    assert _found(table, "st_intersects(g, box(0, 0, 4, 9, 9, 6))") == ([1, 3], 2 + 2)
    assert _found(table, "st_intersects(g, box(0, 0, 50, 9, 9, 50))") == ([4], 1 + 2)
    assert _found(table, "st_intersects(g, box(0, 0, null, 1, 9, 9, null, 3))") == ([3], 1 + 3)
    assert _found(table, "st_intersects(g, box(0, 0, 3, 1, 9, 9, 3, 1))") == ([3], 1 + 1)
    # What has no z is nowhere in a box that has.
    assert _found(table, "not st_intersects(g, box(0, 0, 0, 9, 9, 9))")[0] == [0, 2, 4]


def test_a_file_tells_z_and_m_of_those_geometries_that_have_them() -> None:
    entry = _entry(_table(), point(1, 1), point(2, 2, 5), None, point(3, 3, -5), measured(4, 4, 1))
    assert entry[column(2, "lower")] == {"x": 1, "y": 1, "z": -5, "m": 1}
    assert entry[column(2, "upper")] == {"x": 4, "y": 4, "z": 5, "m": 1}
    # Without an x it has no place, whatever its z is.
    entry = _entry(_table("geography"), point(math.nan, 1, 99), point(2, 2, 5))
    assert (entry[column(2, "upper")]["x"], entry[column(2, "lower")]["z"]) == (2, 5)


def test_a_leaf_tells_a_z_only_where_all_its_files_do() -> None:
    table = _table(properties=LEAFY)
    _one_file_each(table, *(point(x, 0, x) for x in range(6)))
    assert _found(table, "st_intersects(g, box(0, 0, 2, 9, 9, 3))") == ([2, 3], 2)
    assert _found(table, "st_intersects(g, box(0, 0, 7, 9, 9, 8))") == ([], 0)
    # One leaf of many files.
    table = _table(properties={"write.root.max-data-entries": "5"})
    _one_file_each(table, *(point(x, 0) if x % 2 else point(x, 0, x) for x in range(6)))
    assert table.scan().plan().metrics.data_leaves_read == 1
    assert _found(table, "st_intersects(g, box(0, 0, 7, 9, 9, 8))") == ([], 3)


def test_deep_verification_finds_a_z_outside_its_box() -> None:
    table, beyond = _table(), _table()
    table.append(_rows(point(1, 2, 3), point(1, 2)))
    beyond.append(_rows(point(1, 2, 4), point(1, 2)))
    [file], [far] = files(table), files(beyond)
    assert table.verify(deep=True).is_clean
    table.files.store.delete([file])
    table.files.store.write_new(file, beyond.files.store.read(far))
    [told] = [each.rule for each in table.verify(deep=True).findings if "box of g" in each.rule]
    assert told == "box of g is (1 2 3, 1 2 3), but it has (1 2 4, 1 2 4)"


_N = st.sampled_from([-170.0, -5.0, 0.0, 0.5, 3.0, 175.0])
_AXIS = st.one_of(st.none(), st.tuples(_N, _N).map(sorted))


@st.composite
def _places(draw: st.DrawFn) -> tuple[bytes, list[list[float | None]]]:
    """Draw a line or a point, and its places with None where there is no z or m."""
    has_z, has_m = draw(st.booleans()), draw(st.booleans())
    places = []
    for _ in range(draw(st.integers(1, 3))):
        x, y, z, m = (draw(_N) for _ in GEO_AXES)
        places.append([x, y / 2, z if has_z else None, m if has_m else None])
    kind = 2 + 1000 * has_z + 2000 * has_m
    plain = [[each for each in place if each is not None] for place in places]
    made = struct.pack("<BII", 1, kind, len(places))
    return made + b"".join(struct.pack(f"<{len(each)}d", *each) for each in plain), places


def _meets(places: list[list[float | None]], ends: list[Any]) -> bool:
    """Tell by the definition, on a plane, whether the box around places shares one with a box."""
    for axis, wanted in enumerate(ends):
        values = [each for place in places if (each := place[axis]) is not None]
        if wanted is not None and not (
            values and min(values) <= wanted[1] and max(values) >= wanted[0]
        ):
            return False
    return True


@law(25)
@given(
    st.lists(st.lists(_places(), min_size=1, max_size=3), min_size=1, max_size=4),
    st.tuples(_AXIS.filter(bool), _AXIS.filter(bool), _AXIS, _AXIS),
    st.booleans(),
)
def test_a_box_of_any_axes_finds_the_rows_of_a_plain_model_and_skips_files(
    held: list[list[tuple[bytes, list[list[float | None]]]]], ends: tuple[Any, ...], leafy: bool
) -> None:
    table = _table(properties=LEAFY if leafy else {})
    start = 0
    for each in held:
        ids = pa.array(range(start, start + len(each)), pa.int32())
        table.append(pa.table({"id": ids, "g": pa.array([value for value, _ in each])}))
        start += len(each)
    corners = [f"{'null' if each is None else each[end]}" for end in (0, 1) for each in ends]
    everything = [places for each in held for _, places in each]
    wanted = [id for id, places in enumerate(everything) if _meets(places, list(ends))]
    found, looked_at = _found(table, f"st_intersects(g, box({', '.join(corners)}))")
    assert found == wanted
    # A file is left out where the box around all of it is told to be elsewhere.
    needed = [
        each
        for each in held
        if _meets(
            together := [place for _, places in each for place in places],
            [
                e if any(place[a] is not None for place in together) else None
                for a, e in enumerate(ends)
            ],
        )
    ]
    assert looked_at == len(needed)
    others, _ = _found(table, f"not st_intersects(g, box({', '.join(corners)}))")
    assert others == [id for id in range(start) if id not in wanted]
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("value", [b"", b"POINT (1 2)", point(1, 2)[:-1], point(1, 2) + b"\0"])
def test_bytes_that_are_no_geometry_are_refused_and_nothing_is_written(value: bytes) -> None:
    table = _table()
    with pytest.raises(InvalidInput, match=r"column g has values that are no well-known binary"):
        table.append(_rows(point(1, 2), value))
    assert not list(table.files.store.list(f"{table.location}/data"))


def test_a_file_of_others_with_broken_geometries_is_read_and_they_are_nowhere() -> None:
    table = _table()
    table.append(_rows(point(1, 2), point(3, 4), None))
    [file] = files(table)
    ids = [pa.field("id", pa.int32()), pa.field("g", pa.binary())]
    schema = pa.schema(
        [f.with_metadata({"PARQUET:field_id": str(i + 1)}) for i, f in enumerate(ids)]
    )
    out = pa.BufferOutputStream()
    pq.write_table(_rows(point(1, 2), b"junk", None).cast(schema), out)
    table.files.store.delete([file])
    table.files.store.write_new(file, out.getvalue().to_pybytes())
    assert table.scan().to_arrow()["g"].to_pylist() == [point(1, 2), b"junk", None]
    assert _found(table, "st_intersects(g, box(-9, -9, 9, 9))")[0] == [0]
    assert _found(table, "not st_intersects(g, box(-9, -9, 9, 9))")[0] == []


def test_deep_verification_finds_a_geometry_outside_its_box() -> None:
    table = _table("geography")
    table.append(_rows(point(1, 2), point(179, 4)))
    small = _table("geography")
    small.append(_rows(point(1, 2), point(5, 4)))
    [file], [other] = files(table), files(small)
    content = small.files.store.read(other)
    table.files.store.delete([file])
    table.files.store.write_new(file, content)
    assert not [each for each in table.verify(deep=True).findings if "box of g" in each.rule]
    small.files.store.delete([other])
    beyond = _table("geography")
    beyond.append(_rows(point(1, 2), point(-170, 4)))
    [far] = files(beyond)
    small.files.store.write_new(other, beyond.files.store.read(far))
    assert [each.rule for each in small.verify(deep=True).findings if "box of g" in each.rule]


def test_geometries_are_deleted_and_changed_by_their_boxes() -> None:
    table = _table()
    table.append(_rows(*PLACES))
    table.delete("st_intersects(g, box(0, 0, 4, 4.5))")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    table.update({"id": "99"}, where="st_intersects(g, box(9, 9, 10, 10))")
    assert 99 in table.scan().to_arrow()["id"].to_pylist()


def test_a_geometry_is_no_partition_no_sort_key_and_has_no_default() -> None:
    with pytest.raises(InvalidInput, match="which no transform takes"):
        _table(partition_by=["g"])
    with pytest.raises(InvalidInput, match="which no transform takes"):
        _table(order_by=["g"])
    table = _table()
    with pytest.raises(InvalidInput, match="no default but null"), table.edit_schema() as edit:
        edit.add("h", "geometry", default=point(1, 2))


def test_a_collection_of_everything_comes_back() -> None:
    table = _table()
    value = collection(collection(square(0, 0), kind=6), collection(line((1, 1), (2, 2)), kind=5))
    table.append(_rows(value))
    assert table.scan().to_arrow()["g"].to_pylist() == [value]
    assert _found(table, "st_intersects(g, box(2, 2, 3, 3))") == ([0], 1)
