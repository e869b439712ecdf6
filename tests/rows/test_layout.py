"""Partitions and stats of appended rows, against one value at a time and brute force."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.rows.schema import arrow_type, plain
from icetree.rows.transform import transformed
from icetree.rows.write.write import write_files
from icetree.spec.entry.stats import column
from icetree.spec.schema.types import bounds_type
from tests.effort import law
from tests.rows.lake import files, new_table, rows

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
MICROS = st.integers(-(10**16), 10**16)
VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    IntegerType(): INT,
    LongType(): LONG,
    DateType(): st.integers(-700_000, 2_900_000),
    TimeType(): st.integers(0, 86_399_999_999),
    TimestampType(): MICROS,
    TimestamptzType(): MICROS,
    TimestampNanoType(): st.integers(-(10**18), 10**18),
    StringType(): st.text(max_size=12),
    BinaryType(): st.binary(max_size=12),
    FixedType(5): st.binary(min_size=5, max_size=5),
    UUIDType(): st.uuids(),
    DecimalType(12, 3): st.integers(-(10**11), 10**11).map(lambda n: Decimal(n).scaleb(-3)),
}
TRANSFORMS = {
    "bucket[16]": list(VALUES),
    "bucket[1000000007]": [LongType(), StringType()],
    "truncate[10]": [LongType(), StringType(), BinaryType(), DecimalType(12, 3)],
    "truncate[3]": [IntegerType(), StringType()],
    "year": [DateType(), TimestampType(), TimestamptzType(), TimestampNanoType()],
    "month": [DateType(), TimestampType(), TimestamptzType(), TimestampNanoType()],
    "day": [DateType(), TimestampType(), TimestamptzType(), TimestampNanoType()],
    "hour": [TimestampType(), TimestamptzType(), TimestampNanoType()],
}


def as_arrow(values: list[Any], type: IcebergType) -> pa.Array:
    if isinstance(type, UUIDType):
        values = [None if value is None else value.bytes for value in values]
    if isinstance(type, DateType):
        return pa.array(values, pa.int32()).cast(pa.date32())
    return pa.array(values, arrow_type(type))


@pytest.mark.parametrize(
    ("transform", "type"),
    [(name, type) for name, types in TRANSFORMS.items() for type in types],
    ids=str,
)
@law(12)
@given(st.data())
def test_a_transform_of_a_column_is_that_of_each_value(
    transform: str, type: IcebergType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.none() | VALUES[type], max_size=8))
    parsed = parse_transform(transform)
    found = transformed(as_arrow(values, type).slice(1), parsed, type)
    result = parsed.result_type(type)
    assert found.type == bounds_type(result)
    one = parsed.transform(type)
    expected = [one(value) for value in values[1:]]
    numbers = found.cast(pa.int32()) if pa.types.is_date(found.type) else found
    if transform == "truncate[3]" and isinstance(type, IntegerType):
        # Below the least int the reference wraps, and Python does not.
        expected = [e if e is None or e >= -(2**31) else e + 2**32 for e in expected]
    if transform == "truncate[10]" and isinstance(type, LongType):
        expected = [e if e is None or e >= -(2**63) else e + 2**64 for e in expected]
    assert numbers.to_pylist() == expected


def test_every_partition_is_a_file_of_its_own_in_a_folder_that_names_it() -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("name", pa.string())]
    )
    table = new_table(schema, partition_by=["day(at)", "name", "bucket(4, id)"])
    at = dt.datetime(2026, 3, 1, tzinfo=dt.timezone.utc)
    data = pa.table(
        {"id": [1, 1, 1, 1], "at": [at, at, None, at], "name": ["a/b=c", None, "x", "a/b=c"]},
        schema,
    )
    table.append(data)
    tasks = table.scan().plan().tasks
    folders = [name.rpartition("/")[0] for name in tasks["location"].to_pylist()]
    bucket = parse_transform("bucket[4]").transform(LongType())(1)
    assert folders == [
        f"data/at_day=2026-03-01/name=a%2Fb%3Dc/id_bucket_4={bucket}",
        f"data/at_day=2026-03-01/name=null/id_bucket_4={bucket}",
        f"data/at_day=null/name=x/id_bucket_4={bucket}",
    ]
    assert tasks["record_count"].to_pylist() == [2, 1, 1]
    assert rows(table.scan().to_arrow()) == rows(data)
    assert table.scan("name is null").plan().tasks.num_rows == 1
    assert table.scan("at >= '2026-03-02T00:00:00+00:00'").plan().tasks.num_rows == 0


DOUBLES = st.none() | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.floats()
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | INT,
            "f": DOUBLES,
            "s": st.none() | st.text(max_size=30) | st.just("\U0010ffff" * 20),
            "b": st.none() | st.binary(max_size=30),
            "x": st.none() | st.fixed_dictionaries({"n": st.none() | st.decimals(-9, 9, places=2)}),
        }
    ),
    min_size=1,
    max_size=12,
)
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("x", pa.struct([("n", pa.decimal128(9, 2))])),
    ]
)
TABLE = new_table(SCHEMA, properties={"write.metadata.metrics.column.s": "truncate(4)"})


@law(15)
@given(ROWS)
def test_stats_are_those_of_the_rows(data: list[dict[str, Any]]) -> None:
    entries = write_files(
        pa.Table.from_pylist(data, SCHEMA), metadata=TABLE.metadata, store=TABLE.files.store
    )
    [entry] = entries.to_pylist()
    leaves = {
        field_id: [(row["x"] or {}).get("n") if name == "x.n" else row[name] for row in data]
        for field_id, name in table_names().items()
        if name != "x"
    }
    for field_id, values in leaves.items():
        is_float = table_names()[field_id] == "f"
        stats = {
            stat: entry.get(column(field_id, stat))
            for stat in ("lower", "upper", "tight", "values", "nulls", "nans", "max_size")
        }
        known = [v for v in values if v is not None and not (is_float and math.isnan(v))]
        assert stats["values"] == len(values)
        assert stats["nulls"] == values.count(None)
        if is_float:
            assert stats["nans"] == len(values) - values.count(None) - len(known)
        if not known:
            assert stats["lower"] is None
            assert stats["upper"] is None
            continue
        order = sorted(known, key=lambda v: (v, math.copysign(1, v)) if is_float else v)
        if stats["tight"]:
            assert repr((stats["lower"], stats["upper"])) == repr((order[0], order[-1]))
        else:
            length = 4 if isinstance(order[0], str) else 16
            assert stats["lower"] <= order[0]
            assert stats["upper"] is None or stats["upper"] >= order[-1]
            assert len(stats["lower"]) <= length
            assert len(order[0]) > length or len(order[-1]) > length
        if isinstance(known[0], str | bytes):
            sizes = [len(v.encode() if isinstance(v, str) else v) for v in known]
            assert stats["max_size"] == max(sizes)
            assert entry[column(field_id, "avg_size")] == round(sum(sizes) / len(sizes))


def table_names() -> dict[int, str]:
    shape = TABLE.metadata.shape()
    return {id: shape.names[id] for id in shape.columns if ".element" not in shape.names[id]}


def test_bytes_of_uuids_and_fixed_columns_are_bounded_bytewise() -> None:
    table = new_table(pa.schema([("u", pa.uuid()), ("f", pa.binary(2))]))
    values = [b"\xff" * 16, b"\x00" * 16]
    data = pa.table(
        {"u": pa.array(values, pa.uuid()), "f": pa.array([b"\xff\x00", b"\x00\xff"], pa.binary(2))}
    )
    [entry] = write_files(data, metadata=table.metadata, store=table.files.store).to_pylist()
    assert (entry["1:lower"], entry["1:upper"]) == (values[1], values[0])
    assert (entry["2:lower"], entry["2:upper"]) == (b"\x00\xff", b"\xff\x00")
    assert plain(data["u"].chunk(0)).type == pa.binary(16)


@pytest.mark.parametrize("type", [pa.int32(), pa.int64()], ids=str)
def test_rows_whose_truncation_wraps_around_are_found_and_never_taken_for_others(
    type: pa.DataType,
) -> None:
    least = -(2 ** (type.bit_width - 1))
    most = -least - 1
    schema = pa.schema([("n", type)])
    table = new_table(
        schema,
        partition_by=["truncate(10, n)"],
        properties={"write.metadata.metrics.column.n": "none"},
    )
    table.append(pa.table({"n": [least, least + 1, 5]}, schema))
    assert table.scan(f"n = {least}").count() == 1
    assert table.scan(f"n < {least + 8}").count() == 2
    assert table.scan(f"n > {most - 700}").count() == 0
    table.delete(f"n > {most - 700}")
    assert table.scan().count() == 3


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ([0.0], [0.0, -0.0], []),
        ([0.0, -0.0], [0.0], [-0.0]),
        ([-0.0, 0.0], [-0.0], [0.0]),
        ([math.nan, 1.0, None], [math.nan, None], [1.0]),
    ],
    ids=str,
)
def test_the_two_zeros_are_two_partitions_and_all_nans_are_one(
    type: pa.DataType, old: list[float], new: list[float], left: list[float]
) -> None:
    schema = pa.schema([("f", type), ("new", pa.bool_())])
    table = new_table(schema, partition_by=["f"])
    table.append(pa.table({"f": old, "new": [False] * len(old)}, schema))
    assert len(files(table)) == len(old)
    fresh = pa.table({"f": new, "new": [True] * len(new)}, schema)
    table.replace_partitions([*fresh.to_batches(), *fresh.to_batches()])
    expected = [{"f": each, "new": True} for each in [*new, *new]]
    expected += [{"f": each, "new": False} for each in left]
    assert rows(table.scan().to_arrow()) == sorted(map(repr, expected))
    assert len(files(table)) == len(new) + len(left)
