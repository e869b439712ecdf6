"""The pipeline's events: what people do in a shop, each a function of its number alone."""

from __future__ import annotations

from typing import Any, Final

from icetree.spark.lake import SparkLake

EVENTS: Final = "shop.events"
#: Events of the past that the table starts with, and those of one commit of the stream.
PAST: Final = 201_600
ROWS: Final = 1_000
#: Who asks for their events to be deleted.
USER: Final = 42

CREATE: Final = f"""
    CREATE TABLE {EVENTS} (
        id BIGINT NOT NULL, user_id BIGINT, kind STRING, country STRING,
        amount DECIMAL(10, 2), at TIMESTAMP)
    PARTITIONED BY (days(at))
"""

#: One every three seconds, from 2026-03-01 on.
_FIRST_MS: Final = 1_772_323_200_000
_STEP_MS: Final = 3_000
_USERS: Final = 20_000
_COUNTRIES: Final = ("DE", "FR", "IN", "JP", "NG", "PL", "US", "US", "BR", "GB")


def columns(number: str) -> list[str]:
    """Return what makes an event of its number, an expression of Spark's SQL.

    A few users do much and many do little; one event in ten is an order, which has an amount.
    """
    kind = f"CASE WHEN {_chance(number, 'kind')} < 0.1 THEN 'order' "
    kind += f"WHEN {_chance(number, 'kind')} < 0.4 THEN 'click' ELSE 'view' END"
    amount = f"CAST(5 + 200 * pow({_chance(number, 'amount')}, 3) AS DECIMAL(10, 2))"
    names = ", ".join(f"'{country}'" for country in _COUNTRIES)
    place = f"1 + pmod(xxhash64({number}, 'place'), {len(_COUNTRIES)})"
    at = f"{_FIRST_MS} + {number} * {_STEP_MS} + pmod(xxhash64({number}, 'at'), {_STEP_MS})"
    return [
        f"{number} AS id",
        f"CAST({_USERS} * pow({_chance(number, 'user')}, 2) AS BIGINT) AS user_id",
        f"{kind} AS kind",
        f"element_at(array({names}), CAST({place} AS INT)) AS country",
        f"CASE WHEN {_chance(number, 'kind')} < 0.1 THEN {amount} END AS amount",
        f"timestamp_millis({at}) AS at",
    ]


def _chance(number: str, what: str) -> str:
    """Return an expression with a value from 0 to 1, the same for the same number."""
    return f"(pmod(xxhash64({number}, '{what}'), 1000000) / 1000000.0D)"


def events(lake: SparkLake, first: int, count: int) -> Any:
    """Return the events with these numbers, as a DataFrame."""
    return lake.spark.range(first, first + count).selectExpr(*columns("id"))


def coming(lake: SparkLake, first: int, commits: int) -> Any:
    """Return a stream of events from a number on: so many micro-batches, then empty ones."""
    source = lake.spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=ROWS, numPartitions=1, advanceMillisPerBatch=1
    )
    numbers = source.load().where(f"value < {commits * ROWS}")
    return numbers.selectExpr(f"value + {first} AS number").selectExpr(*columns("number"))


def corrections(lake: SparkLake, before: int, late: int) -> Any:
    """Return orders of the last two days, some with another amount, and events that come late."""
    recent = events(lake, before - 57_600, 57_600).where("kind = 'order' AND pmod(id, 20) = 0")
    other = recent.selectExpr(
        "id", "user_id", "kind", "country", "CAST(amount * 0.9 AS DECIMAL(10, 2)) AS amount", "at"
    )
    return other.unionByName(events(lake, before, late)).where(f"user_id <> {USER}")
