"""Theta sketches: the bytes of Apache DataSketches, and hashes of what Iceberg serializes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
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
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
)

from icetree.codec.murmur import murmur3
from icetree.codec.theta import NOMINAL, Sketch
from icetree.rows.serialized import Serialized, serialized

SEED = 9001


def sketch_of(*columns: pa.Array) -> Sketch:
    found = Sketch()
    for column in columns:
        values = serialized(column)
        found.add(values.content, values.starts, values.lengths)
    return found


def plain(values: Serialized) -> list[bytes]:
    ranges = zip(values.starts.tolist(), values.lengths.tolist(), strict=True)
    return [bytes(values.content[start : start + length]) for start, length in ranges]


@pytest.mark.law
@given(st.lists(st.binary(max_size=100), max_size=20))
def test_a_hash_is_that_of_murmur_for_any_bytes(values: list[bytes]) -> None:
    found = serialized(pa.array(values, pa.binary()))
    assert plain(found) == values
    hashes = murmur3(found.content, found.starts, found.lengths, seed=SEED)
    assert hashes.tolist() == [mmh3.hash64(each, SEED, True, signed=False)[0] for each in values]


@pytest.mark.parametrize(
    ("values", "type", "iceberg"),
    [
        ([True, False], pa.bool_(), BooleanType()),
        ([-1, 0, 2**31 - 1], pa.int32(), IntegerType()),
        ([-1, 0, 2**63 - 1], pa.int64(), LongType()),
        ([-0.0, 1.5], pa.float32(), FloatType()),
        ([-0.0, 1e300], pa.float64(), DoubleType()),
        ([0, -700_000], pa.date32(), DateType()),
        (["", "a", "größer"], pa.string(), StringType()),
        ([b"", b"\0\xff"], pa.binary(), BinaryType()),
    ],
)
def test_values_are_the_bytes_that_iceberg_serializes_them_to(
    values: list[Any], type: pa.DataType, iceberg: IcebergType
) -> None:
    column = pa.array([None, *values, None], type)
    told = [to_bytes(iceberg, each) for each in values]
    assert plain(serialized(column)) == told
    assert plain(serialized(column.slice(2))) == told[1:]


@pytest.mark.law
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(2**17), 2**17), max_size=20))
def test_a_decimal_takes_as_few_bytes_as_hold_it(unscaled: list[int]) -> None:
    type = DecimalType(38, 2)
    values = [Decimal(f"{each}E-2") for each in unscaled]
    found = serialized(pa.array(values, pa.decimal128(38, 2)))
    assert plain(found) == [to_bytes(type, each) for each in values]


def test_small_sketches_have_the_bytes_of_datasketches() -> None:
    """As its own library writes them."""
    assert sketch_of().encode().hex() == "01030300001ecc93"
    assert sketch_of(pa.array(["abc"])).encode().hex() == "01030300001acc9390c643ec3689ab65"
    two = "02030300001acc930200000000000000d77ca1414cf0463690c643ec3689ab65"
    assert sketch_of(pa.array(["abc", "abd", "abc", None, ""])).encode().hex() == two


def test_a_sketch_is_exact_up_to_its_size_and_tells_a_bound_after_that() -> None:
    exact = sketch_of(pa.array(range(NOMINAL)))
    assert exact.estimate == NOMINAL
    assert exact.encode()[0] == 2
    more = sketch_of(pa.array(range(100_000)))
    content = more.encode()
    assert content[0] == 3
    assert len(content) == 8 * (3 + NOMINAL)
    theta = int.from_bytes(content[16:24], "little")
    hashes = np.frombuffer(content, "<u8", offset=24)
    assert (np.diff(hashes.astype(np.int64)) > 0).all()
    assert hashes.max() < theta
    assert more.estimate == pytest.approx(NOMINAL / (theta / 2**63))
    assert more.estimate == pytest.approx(100_000, rel=0.05)


@pytest.mark.law
@given(st.lists(st.lists(st.integers(0, 20_000), max_size=50), max_size=5))
def test_in_which_order_and_parts_values_come_makes_no_difference(parts: list[list[int]]) -> None:
    columns = [pa.array(each, pa.int64()) for each in parts]
    whole = pa.array([each for part in reversed(parts) for each in part], pa.int64())
    assert sketch_of(*columns).encode() == sketch_of(whole).encode()
