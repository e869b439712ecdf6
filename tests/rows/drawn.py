"""Columns of every type and nesting, drawn with their values; and values as texts to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from icetree.rows.variant import PAIR
from tests.rows.geometries import line, point, square
from tests.rows.variants import pair

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # zones are told apart by the types
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


def nested(singles: Sequence[Column]) -> st.SearchStrategy[Column]:
    """Return columns of these types and of whatever can be made of them."""
    return st.recursive(
        st.sampled_from(singles),
        lambda inner: st.one_of(
            inner.map(_listed),
            inner.map(_mapped),
            st.lists(inner, min_size=1, max_size=3).map(_grouped),
        ),
        max_leaves=4,
    )


COLUMNS = nested(SINGLES)

#: Days, microseconds and nanoseconds that calendars of all sides have: some years around 1970.
_DAYS, _MICROS, _NANOS = 40_000, 3 * 10**15, 3 * 10**18
_NEAR: dict[str, st.SearchStrategy[Any]] = {
    "date": st.integers(-_DAYS, _DAYS),
    "timestamp": st.integers(-_MICROS, _MICROS),
    "timestamptz": st.integers(-_MICROS, _MICROS),
    "timestamp_ns": st.integers(-_NANOS, _NANOS),
    "timestamptz_ns": st.integers(-_NANOS, _NANOS),
}
#: The same types, with times that have a name.
NEAR: list[Column] = [(text, arrow, _NEAR.get(text, values)) for text, arrow, values in SINGLES]


def without(columns: Sequence[Column], *words: str) -> list[Column]:
    """Return the columns whose types do not begin with any of the words."""
    return [each for each in columns if not each[0].startswith(words)]


#: Those that have an order, so that filters compare them.
ORDERED = without(NEAR, "geo", "variant")


def spelled(type: str, value: Any) -> str:
    """Return a value as a filter in text has it."""
    zone = "+00:00" if "tz" in type else ""
    match type.partition("[")[0].partition("(")[0]:
        case "boolean":
            return str(value).lower()
        case "date":
            return f"'{_EPOCH.date() + timedelta(days=value)}'"
        case "time":
            return f"'{(_EPOCH + timedelta(microseconds=value)).time().isoformat('microseconds')}'"
        case "timestamp" | "timestamptz":
            at = _EPOCH + timedelta(microseconds=value)
            return f"'{at.isoformat('T', 'microseconds')}{zone}'"
        case "timestamp_ns" | "timestamptz_ns":
            at = _EPOCH + timedelta(microseconds=value // 1000)
            return f"'{at.isoformat('T', 'microseconds')}{value % 1000:03d}{zone}'"
        case "string":
            return "'" + value.replace("'", "''") + "'"
        case "uuid":
            return f"'{UUID(bytes=value)}'"
        case "binary" | "fixed":
            return f"X'{value.hex()}'"
        case "decimal":
            return format(value, "f")
    return repr(value)


@st.composite
def rows_of(draw: st.DrawFn, columns: Mapping[str, Column], start: int, count: int) -> pa.Table:
    """Return drawn rows with nulls among them, and ids from a number on."""
    made: dict[str, Any] = {"id": pa.array(range(start, start + count), pa.int32())}
    for name, (_, arrow, values) in columns.items():
        drawn = draw(st.lists(st.none() | values, min_size=count, max_size=count))
        made[name] = pa.array(drawn, arrow)
    return pa.table(made)


def named(columns: Sequence[Column]) -> dict[str, Column]:
    """Return columns under names of their own."""
    return {f"c{at}": each for at, each in enumerate(columns)}


def schema_of(columns: Mapping[str, Column]) -> dict[str, str]:
    """Return the schema of a table of such rows."""
    return {"id": "int", **{name: each[0] for name, each in columns.items()}}


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values in types that Python tells apart to the last digit, without field ids."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_struct(array.type):
        names = [field.name for field in array.type]
        parts = [plain(each) for each in array.flatten()]
        return pa.StructArray.from_arrays(parts, names, mask=array.is_null())
    return array


def told(array: pa.Array | pa.ChunkedArray, *, maps_in_order: bool = True) -> list[str]:
    """Return each value as a text, equal where the values are."""
    flat = plain(array)
    how = {"maps_in_order": maps_in_order}
    if pa.types.is_list(flat.type):
        return [repr(None if each is None else told(each, **how)) for each in _lists(flat)]
    if pa.types.is_map(flat.type):
        found = []
        for each in _maps(flat):
            pairs = each and list(zip(*(told(part, **how) for part in each), strict=True))
            found.append(repr(pairs if maps_in_order or pairs is None else sorted(pairs)))
        return found
    if pa.types.is_struct(flat.type):
        parts = [told(each, **how) for each in flat.flatten()]
        gone = flat.is_null().to_pylist()
        return ["None" if no else repr([part[at] for part in parts]) for at, no in enumerate(gone)]
    return [repr(each) for each in flat.to_pylist()]


def _lists(array: pa.ListArray) -> list[pa.Array | None]:
    return [
        array.slice(at, 1).flatten() if array[at].is_valid else None for at in range(len(array))
    ]


def _maps(array: pa.MapArray) -> list[tuple[pa.Array, pa.Array] | None]:
    found: list[tuple[pa.Array, pa.Array] | None] = []
    for at in range(len(array)):
        start, end = array.offsets[at].as_py(), array.offsets[at + 1].as_py()
        pair = array.keys[start:end], array.items[start:end]
        found.append(pair if array[at].is_valid else None)
    return found
