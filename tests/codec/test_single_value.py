"""Bounds mean what PyIceberg means by them, whatever type they were written with."""

from __future__ import annotations

import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
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

from icetree.codec.single_value import decode_bounds, decode_pair, decode_plain
from icetree.codec.single_value_bytes import encode_bounds
from icetree.errors import CorruptTable
from icetree.spec.schema.types import GEO_BOUND, bounds_type

FILE = "metadata/m.avro"


def decoded(type: IcebergType, *stored: bytes | None) -> list[Any]:
    array = decode_bounds(pa.array(stored, pa.binary()), type, file=FILE, what="a bound")
    assert array.type == bounds_type(type)
    array.validate(full=True)
    return array.to_pylist()


def raw(type: IcebergType, *stored: bytes) -> list[Any]:
    """Bounds of a temporal type as the integers that are stored."""
    array = decode_bounds(pa.array(stored, pa.binary()), type, file=FILE, what="a bound")
    storage = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
    return array.cast(storage).to_pylist()


INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (BooleanType(), st.booleans()),
        (IntegerType(), INT),
        (LongType(), LONG),
        (FloatType(), st.floats(width=32, allow_nan=False)),
        (DoubleType(), st.floats(allow_nan=False)),
        (StringType(), st.text()),
        (BinaryType(), st.binary()),
        (FixedType(5), st.binary(min_size=5, max_size=5)),
        (
            DecimalType(38, 3),
            st.integers(-(10**38) + 1, 10**38 - 1).map(
                lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -3))
            ),
        ),
        (
            DecimalType(5, 2),
            st.integers(-99999, 99999).map(
                lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -2))
            ),
        ),
    ],
    ids=str,
)
def test_a_bound_is_the_value_that_was_serialized(type: IcebergType, values: Any) -> None:
    @given(st.lists(st.none() | values, max_size=20))
    def holds(given_values: list[Any]) -> None:
        stored = [None if value is None else to_bytes(type, value) for value in given_values]
        assert decoded(type, *stored) == given_values

    holds()


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (DateType(), INT),
        (TimeType(), st.integers(0, 86_399_999_999)),
        (TimestampType(), LONG),
        (TimestamptzType(), LONG),
        (TimestampNanoType(), LONG),
    ],
    ids=str,
)
def test_a_temporal_bound_is_the_number_that_was_serialized(type: IcebergType, values: Any) -> None:
    @given(st.lists(values, max_size=20))
    def holds(given_values: list[int]) -> None:
        width = "<i" if isinstance(type, DateType) else "<q"
        assert raw(type, *(struct.pack(width, value) for value in given_values)) == given_values

    holds()


def test_a_uuid_is_its_sixteen_bytes() -> None:
    uuid = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    assert decoded(UUIDType(), to_bytes(UUIDType(), uuid)) == [uuid.bytes]


def test_bounds_written_before_a_promotion_are_read_as_the_narrower_type() -> None:
    int_bytes = struct.pack("<i", -7)
    assert decoded(LongType(), int_bytes, struct.pack("<q", 2**40)) == [-7, 2**40]
    assert decoded(DoubleType(), struct.pack("<f", 0.5), struct.pack("<d", 0.1)) == [0.5, 0.1]
    day = date(2024, 2, 29)
    day_bytes = to_bytes(DateType(), (day - date(1970, 1, 1)).days)
    assert decoded(TimestampType(), day_bytes) == [datetime(2024, 2, 29)]  # noqa: DTZ001
    assert raw(TimestampNanoType(), day_bytes) == [
        int(datetime(2024, 2, 29, tzinfo=timezone.utc).timestamp()) * 10**9
    ]
    assert decoded(DecimalType(20, 2), b"\xff\x85") == [Decimal("-1.23")]


def test_a_date_beyond_the_ends_of_its_promoted_type_is_at_the_end() -> None:
    days = [struct.pack("<i", day) for day in (-(2**31), -106_752, -106_751, 106_751, 106_752)]
    end, in_a_day = 2**63 - 1, 86_400 * 10**9
    found = [-end, -end, -106_751 * in_a_day, 106_751 * in_a_day, end]
    assert raw(TimestampNanoType(), *days) == found


@pytest.mark.parametrize(
    ("type", "stored"),
    [
        (IntegerType(), b"\0" * 8),
        (LongType(), b"\0" * 5),
        (DoubleType(), b""),
        (TimestamptzType(), b"\0" * 4),
        (BooleanType(), b""),
        (UUIDType(), b"\0" * 15),
        (FixedType(3), b"\0" * 4),
        (StringType(), b"\xff\xfe"),
        (DecimalType(38, 0), b""),
        (DecimalType(38, 0), b"\1" * 17),
        (DecimalType(3, 0), b"\x03\xe8"),
        (GeometryType(), b"\0" * 8),
    ],
    ids=str,
)
def test_bytes_that_no_value_of_the_type_has_are_refused_by_name(
    type: IcebergType, stored: bytes
) -> None:
    with pytest.raises(
        CorruptTable, match=r"metadata/m.avro: a bound is not a serialized"
    ) as found:
        decoded(type, stored)
    assert found.value.file == FILE


def test_truncated_bounds_of_a_fixed_type_are_filled_with_zeros() -> None:
    assert decoded(FixedType(4), b"ab", b"abcd") == [b"ab\0\0", b"abcd"]


def test_where_one_bound_is_nan_neither_is_relied_on() -> None:
    def doubles(*values: float | None) -> pa.Array:
        packed = [None if value is None else struct.pack("<d", value) for value in values]
        return pa.array(packed, pa.binary())

    nan = float("nan")
    lower, upper = decode_pair(
        doubles(nan, 1.0, 1.0, None), doubles(9.0, nan, 2.0, 3.0), DoubleType(), file=FILE, what="x"
    )
    assert lower.to_pylist() == [None, None, 1.0, None]
    assert upper.to_pylist() == [None, None, 2.0, 3.0]


def test_a_point_has_two_to_four_coordinates() -> None:
    nan = float("nan")
    stored = [struct.pack(f"<{len(p)}d", *p) for p in ((1, 2), (1, 2, 3), (1, 2, nan, 4), (nan, 2))]
    read = [
        {"x": 1, "y": 2, "z": None, "m": None},
        {"x": 1, "y": 2, "z": 3, "m": None},
        {"x": 1, "y": 2, "z": None, "m": 4},
        None,
    ]
    assert decoded(GeometryType(), *stored) == read
    assert encode_bounds(pa.array(read, GEO_BOUND), GeometryType()).to_pylist() == [
        *stored[:3],
        None,
    ]


@pytest.mark.parametrize(
    ("type", "avro", "values", "expected"),
    [
        (IntegerType(), "int", [3, None], [3, None]),
        (LongType(), "int", [3, None], [3, None]),
        (DateType(), "int", [-1], [date(1969, 12, 31)]),
        (TimestampType(), "int", [1], [datetime(1970, 1, 2)]),  # noqa: DTZ001
        (TimestampType(), "long", [1_000_000], [datetime(1970, 1, 1, 0, 0, 1)]),  # noqa: DTZ001
        (DoubleType(), "float", [0.5], [0.5]),
        (DecimalType(9, 2), "fixed", [b"\xff\xff\xff\x85", None], [Decimal("-1.23"), None]),
        (UUIDType(), "fixed", [b"0123456789abcdef"], [b"0123456789abcdef"]),
        (StringType(), "string", ["é"], ["é"]),
        (BooleanType(), "boolean", [True], [True]),
    ],
)
def test_a_partition_value_is_read_as_the_type_of_today(
    type: IcebergType, avro: str, values: list[Any], expected: list[Any]
) -> None:
    array = decode_plain(values, avro, type, file=FILE, what="a partition field")
    assert array.type == bounds_type(type)
    assert array.to_pylist() == expected


@pytest.mark.parametrize(
    ("type", "avro", "value"),
    [
        (IntegerType(), "string", "3"),
        (IntegerType(), "long", 2**40),
        (StringType(), "int", 3),
        (DoubleType(), "long", 3),
        (TimestamptzType(), "bytes", b"x"),
        (UUIDType(), "fixed", b"short"),
        (DecimalType(3, 0), "bytes", b"\x03\xe8"),
    ],
)
def test_a_partition_value_of_another_type_is_refused(
    type: IcebergType, avro: str, value: Any
) -> None:
    with pytest.raises(CorruptTable, match=r"metadata/m.avro: a partition field is not a"):
        decode_plain([value], avro, type, file=FILE, what="a partition field")
