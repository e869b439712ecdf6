"""The demo's events: what people do in a shop, each a function of its number alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

EVENTS: Final = "shop.events"
#: Events of one commit.
ROWS: Final = 1_000
#: Who asks for their events to be deleted.
USER: Final = 42

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("user_id", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("country", pa.string()),
        pa.field("amount", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)

#: One every six seconds, from 2026-03-01 on.
_FIRST_US: Final = 1_772_323_200_000_000
_STEP_US: Final = 6_000_000
_USERS: Final = 2_000
_COUNTRIES: Final = ("DE", "FR", "IN", "JP", "NG", "PL", "US", "US", "BR", "GB")

Chances = npt.NDArray[np.float64]


def events(first: int, count: int) -> pa.Table:
    """Return the events with these numbers.

    A few users do much and many do little; one event in ten is an order, which has an amount.
    """
    ids = np.arange(first, first + count, dtype=np.int64)
    kind = _chance(ids, 1)
    cents = (500 + 20_000 * _chance(ids, 2) ** 3).astype(np.int64)
    place = (_chance(ids, 3) * len(_COUNTRIES)).astype(np.int64)
    at = _FIRST_US + ids * _STEP_US + (_chance(ids, 4) * _STEP_US).astype(np.int64)
    amount = pa.array(cents / 100).cast(pa.decimal128(10, 2))
    return pa.table(
        [
            pa.array(ids),
            pa.array((_USERS * _chance(ids, 5) ** 2).astype(np.int64)),
            pa.array(np.select([kind < 0.1, kind < 0.4], ["order", "click"], "view")),
            pa.array(np.take(_COUNTRIES, place)),
            pc.if_else(pa.array(kind < 0.1), amount, None),
            pa.array(at, pa.timestamp("us", tz="UTC")),
        ],
        schema=SCHEMA,
    )


def _chance(ids: npt.NDArray[np.int64], what: int) -> Chances:
    """Return a value from 0 to 1 for each number, the same for the same number (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = (ids.astype(np.uint64) + np.uint64(what << 40)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def corrections(before: int, late: int) -> pa.Table:
    """Return orders from before a number, some with another amount, and events that come late."""
    recent = events(before - 20_000, 20_000)
    wrong = pc.and_(
        pc.equal(recent["kind"], "order"), pc.equal(pc.bit_wise_and(recent["id"], 7), 0)
    )
    other = recent.filter(wrong)
    less = pc.multiply(other["amount"].cast(pa.float64()), 0.9)
    other = other.set_column(
        4, SCHEMA.field("amount"), pc.round(less, 2).cast(pa.decimal128(10, 2))
    )
    both = pa.concat_tables([other, events(before, late)])
    return both.filter(pc.not_equal(both["user_id"], USER)).combine_chunks()
