"""Z-order: in the order of each column, and by the bits of ranks as one would write them down."""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.rows.write.zorder import ZOrder, interleaved, ordinals
from tests.effort import EFFORT

DAY = date(1970, 1, 1)
UTC = datetime(1970, 1, 1, tzinfo=timezone.utc)

KINDS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "boolean": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "int": (
        pa.int32(),
        lambda draw: draw.choice([-(2**31), -1, 0, 1, 2**31 - 1, draw.randrange(99)]),
    ),
    "long": (pa.int64(), lambda draw: draw.choice([-(2**63), 2**63 - 1, draw.randrange(-99, 99)])),
    "float": (pa.float32(), lambda draw: draw.choice([-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf])),
    "double": (
        pa.float64(),
        lambda draw: draw.choice([math.nan, -1e300, draw.uniform(-1, 1), 1e-9]),
    ),
    "date": (pa.date32(), lambda draw: DAY + timedelta(days=draw.randrange(-9_999, 9_999))),
    "time": (pa.time64("us"), lambda draw: time(draw.randrange(24), 5, 6, draw.randrange(10**6))),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda draw: UTC + timedelta(microseconds=draw.randrange(-(10**15), 10**15)),
    ),
    "small decimal": (pa.decimal128(9, 2), lambda draw: Decimal(draw.randrange(-999, 999)) / 100),
    "large decimal": (
        pa.decimal128(38, 3),
        lambda draw: Decimal(
            draw.choice([-1, 1]) * draw.randrange(10 ** draw.randrange(38))
        ).scaleb(-3),
    ),
    "string": (pa.string(), lambda draw: "".join(draw.choices("aäz", k=draw.randrange(12)))),
    "binary": (pa.binary(), lambda draw: draw.randbytes(draw.randrange(10))),
    "uuid": (pa.binary(16), lambda draw: uuid.UUID(int=draw.getrandbits(128)).bytes),
}


def _before(value: Any) -> tuple[object, ...]:
    """What values are sorted by: nulls first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, float):
        return (1, value, math.copysign(1, value))
    return (1, value.encode() if isinstance(value, str) else value)


@pytest.mark.law
@pytest.mark.parametrize("kind", KINDS)
def test_ordinals_are_in_the_order_of_the_values(kind: str) -> None:
    type, one = KINDS[kind]
    draw = random.Random(kind)
    values = sorted(
        [None if draw.random() < 0.1 else one(draw) for _ in range(300 * EFFORT)], key=_before
    )
    numbers = ordinals(pa.array([None, *values], type)[1:])
    assert (numbers[1:] >= numbers[:-1]).all()
    distinct = len({repr(each) for each in values})
    assert len(np.unique(numbers)) >= min(distinct, 2), "values are told apart"


@pytest.mark.law
@pytest.mark.parametrize("seed", range(10 * EFFORT))
def test_bits_are_interleaved_as_one_would_write_them_down(seed: int) -> None:
    draw = random.Random(seed)
    columns, bits = draw.randint(1, 5), draw.randint(1, 12)
    ranks = [[draw.getrandbits(bits) for _ in range(20)] for _ in range(columns)]
    plainly = [
        int(
            "".join(
                "".join(place) for place in zip(*(f"{each:0{bits}b}" for each in row), strict=True)
            ),
            2,
        )
        for row in zip(*ranks, strict=True)
    ]
    found = interleaved([np.array(each, np.uint64) for each in ranks], bits)
    assert found.tolist() == plainly


@pytest.mark.law
@pytest.mark.parametrize("seed", range(10 * EFFORT))
def test_a_row_that_is_less_in_every_column_comes_first(seed: int) -> None:
    draw = random.Random(seed)
    kinds = draw.sample(sorted(KINDS), draw.randint(1, 4))
    columns = []
    for kind in kinds:
        type, one = KINDS[kind]
        columns.append(pa.array([one(draw) for _ in range(60)], type))
    ordered = ZOrder.fitted([each[:40] for each in columns])
    numbers = ordered.numbers(columns)
    keys = [ordinals(each) for each in columns]
    for one in range(60):
        for other in range(60):
            if all(key[one] <= key[other] for key in keys):
                assert numbers[one] <= numbers[other]


def test_columns_count_alike_whatever_their_ranges() -> None:
    """Half of the rows by either column are told apart by the first two bits."""
    wide, narrow = np.meshgrid(np.arange(64) * 10**12, np.arange(64))
    columns = [pa.array(wide.ravel()), pa.array(narrow.ravel())]
    numbers = ZOrder.fitted(columns).numbers(columns)
    first = np.argsort(numbers, kind="stable")[: len(numbers) // 4]
    for values in (wide.ravel(), narrow.ravel()):
        assert np.ptp(values[first]) <= np.ptp(values) * 0.55


def test_what_cannot_be_in_an_order_is_refused() -> None:
    with pytest.raises(InvalidInput, match="z-order by a column of type list"):
        ordinals(pa.array([[1]]))
    with pytest.raises(InvalidInput, match="1 to 16 columns, not 17"):
        ZOrder.fitted([pa.array([1])] * 17)
