"""The law of rows over every type: what is written comes back, however types nest."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icetree.rows.variant import PAIR
from tests.effort import law
from tests.rows.geometries import line, point, square
from tests.rows.lake import new_table
from tests.rows.variants import pair

_PLACES = st.sampled_from([point(1, 2), point(3, 4, 5), line((0, 0), (179, 9)), square(2, 2)])
#: Each type that is not nested: in words, as Arrow takes it, and its values.
SINGLES: list[tuple[str, pa.DataType, st.SearchStrategy[Any]]] = [
    ("boolean", pa.bool_(), st.booleans()),
    ("int", pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    ("long", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    ("float", pa.float32(), st.floats(width=32, allow_nan=False)),
    ("double", pa.float64(), st.floats(allow_nan=False)),
    ("date", pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    ("time", pa.time64("us"), st.integers(0, 86_400 * 10**6 - 1)),
    ("timestamp", pa.timestamp("us"), st.integers(-(2**63) + 1, 2**63 - 1)),
    ("timestamptz", pa.timestamp("us", "UTC"), st.integers(-(2**63) + 1, 2**63 - 1)),
    ("timestamp_ns", pa.timestamp("ns"), st.integers(-(2**63) + 1, 2**63 - 1)),
    ("timestamptz_ns", pa.timestamp("ns", "UTC"), st.integers(-(2**63) + 1, 2**63 - 1)),
    ("string", pa.string(), st.text(max_size=20)),
    ("binary", pa.binary(), st.binary(max_size=20)),
    ("uuid", pa.binary(16), st.binary(min_size=16, max_size=16)),
    ("fixed[3]", pa.binary(3), st.binary(min_size=3, max_size=3)),
    ("geometry(srid:3857)", pa.binary(), _PLACES),
    ("geography", pa.binary(), _PLACES),
    (
        "variant",
        PAIR,
        st.sampled_from([None, 1, "x", {"a": 1, "b": [None]}, {"a": Decimal("1.5")}]).map(pair),
    ),
    *(
        (
            f"decimal({digits}, 2)",
            pa.decimal128(digits, 2),
            st.integers(-(10**digits) + 1, 10**digits - 1).map(
                lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -2))
            ),
        )
        for digits in (9, 18, 38)
    ),
]
Column = tuple[str, pa.DataType, "st.SearchStrategy[Any]"]


def _listed(inner: Column) -> Column:
    text, arrow, values = inner
    return f"list<{text}>", pa.list_(arrow), st.lists(st.none() | values, max_size=3)


def _mapped(inner: Column) -> Column:
    text, arrow, values = inner
    entries = st.dictionaries(st.text(max_size=2), st.none() | values, max_size=2)
    return (
        f"map<string, {text}>",
        pa.map_(pa.string(), arrow),
        entries.map(lambda each: list(each.items())),
    )


def _grouped(parts: list[Column]) -> Column:
    names = [f"m{at}" for at in range(len(parts))]
    texts = ", ".join(f"{n}: {part[0]}" for n, part in zip(names, parts, strict=True))
    arrow = pa.struct([(n, part[1]) for n, part in zip(names, parts, strict=True)])
    values = {n: st.none() | part[2] for n, part in zip(names, parts, strict=True)}
    return f"struct<{texts}>", arrow, st.fixed_dictionaries(values)


COLUMNS: st.SearchStrategy[Column] = st.recursive(
    st.sampled_from(SINGLES),
    lambda inner: st.one_of(
        inner.map(_listed),
        inner.map(_mapped),
        st.lists(inner, min_size=1, max_size=3).map(_grouped),
    ),
    max_leaves=4,
)


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values in types that Python tells apart to the last digit, without field ids."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_struct(array.type):
        names = [field.name for field in array.type]
        parts = [_plain(each) for each in array.flatten()]
        return pa.StructArray.from_arrays(parts, names, mask=array.is_null())
    return array


def _told(array: pa.Array | pa.ChunkedArray) -> list[str]:
    plain = _plain(array)
    if pa.types.is_list(plain.type):
        return [repr(None if each is None else _told(each)) for each in _lists(plain)]
    if pa.types.is_map(plain.type):
        return [
            repr(None if each is None else [_told(pa.array(part)) for part in each])
            for each in _maps(plain)
        ]
    if pa.types.is_struct(plain.type):
        parts = [_told(each) for each in plain.flatten()]
        gone = plain.is_null().to_pylist()
        return ["None" if no else repr([part[at] for part in parts]) for at, no in enumerate(gone)]
    return [repr(each) for each in plain.to_pylist()]


def _lists(array: pa.ListArray) -> list[pa.Array | None]:
    return [
        array.slice(at, 1).flatten() if array[at].is_valid else None for at in range(len(array))
    ]


def _maps(array: pa.MapArray) -> list[tuple[Any, Any] | None]:
    found: list[tuple[Any, Any] | None] = []
    for at in range(len(array)):
        start, end = array.offsets[at].as_py(), array.offsets[at + 1].as_py()
        keys, items = array.keys[start:end], array.items[start:end]
        found.append(([repr(_told(keys))], [repr(_told(items))]) if array[at].is_valid else None)
    return found


@law(12)
@given(st.data(), st.lists(COLUMNS, min_size=1, max_size=4), st.booleans())
def test_rows_of_every_type_and_nesting_come_back(
    data: st.DataObject, columns: list[Column], shreds: bool
) -> None:
    names = [f"c{at}" for at in range(len(columns))]
    schema = {"id": "int", **{n: each[0] for n, each in zip(names, columns, strict=True)}}
    properties = {"write.parquet.shred-variants": str(shreds).lower()}
    table = new_table(schema, properties=properties)
    parts = []
    for start in (0, 3):
        made: dict[str, Any] = {"id": pa.array(range(start, start + 3), pa.int32())}
        for name, (_, arrow, values) in zip(names, columns, strict=True):
            drawn = data.draw(st.lists(st.none() | values, min_size=3, max_size=3))
            made[name] = pa.array(drawn, arrow)
        parts.append(pa.table(made))
        table.append(parts[-1])
    table.delete("id in (1, 4)")
    kept = [0, 2, 3, 5]
    whole = pa.concat_tables(parts)
    found = table.scan().to_arrow().sort_by("id")
    for name in ("id", *names):
        assert _told(found[name]) == _told(whole[name].take(pa.array(kept)))
        nulls = table.scan(f"{name} is null").to_arrow()["id"].to_pylist()
        wanted = [id for id in kept if not whole[name][id].is_valid]
        assert sorted(nulls) == wanted
    assert table.verify(deep=True).is_clean
