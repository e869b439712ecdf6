"""What filters compare columns with: values that the tables have, and some beside them."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.effort import EFFORT
from tests.peers.filters import Pools

#: The tables that `java_tables` writes. Those of the usual run have every kind of delete among them:
#: files of positions and vectors, equality deletes everywhere and in a partition.
ALL_JAVA_TABLES = (
    "db.v2",
    "db.v2_equality",
    "db.v3",
    "db.v3_evolved",
    "db.v3_upgraded",
)
JAVA_TABLES = ALL_JAVA_TABLES if EFFORT > 1 else ("db.v3_evolved", "db.v3_upgraded")
#: The tables whose rows are told too, of every kind that Java writes.
JAVA_ZOO = (
    *ALL_JAVA_TABLES,
    "zoo.transforms",
    "zoo.v1",
    "zoo.types",
    "zoo.branches",
    "zoo.formats",
    "zoo.rewritten",
    "zoo.many",
    "zoo.thousands",
)

_EPOCH = datetime(1969, 12, 28)  # noqa: DTZ001 (of a column without a zone)
_YEAR = datetime(2024, 1, 1, tzinfo=timezone.utc)

COLUMNS: Pools = {
    "id": [-1, 0, 7, 44, 59, 60, 100, 150, 161, 200, 250, 1_000_000_000_000],
    "n": [-5, 0, 1, 5, 8, 13, 21, 33, 49, 50, 120, 5000],
    "country": ["DE", "FR", "US", "A", "FRA", "Z"],
    "price": [-1000.5, -20.0, 0.0, 2.25, 5.0, 17.5, 30.25, 42.0, 1e9],
    "amount": [
        Decimal("-100.00"),
        Decimal("0.50"),
        Decimal("25.00"),
        Decimal("99.99"),
        Decimal("150.00"),
        Decimal("400.00"),
    ],
    "d": [date(2023, 6, 1), *(date(2024, 1, 1) + timedelta(days) for days in (0, 2, 4, 7, 9, 13))],
    "ts": [
        _YEAR + timedelta(hours=hours) for hours in (-1, 0, 24, 25, 180, 300, 480, 481, 600, 9000)
    ],
    "tsn": [_EPOCH + timedelta(hours=hours) for hours in (-1, 0, 24, 95, 96, 97, 160, 200, 9000)],
    "flag": [True, False],
    "place.city": ["town-000", "town-003", "town-007", "town-010", "town-015", "town-02", "x"],
    "place.zip": [-1, 0, 33, 120, 300, 450, 600, 9999],
}


def pools(table: str) -> Pools:
    """Return the values to filter a table by."""
    found = dict(COLUMNS)
    if table in ("zoo.many", "zoo.thousands"):
        # Others are null in nearly all of its rows.
        first = 1000 if table == "zoo.many" else 0
        found["id"] = [
            -1,
            0,
            3,
            *(first + more for more in (0, 1, 44, 100, 199)),
            1_000_000_000_000,
        ]
        found = {name: found[name] for name in ("id", "n", "country", "price")}
    if table.endswith("_evolved"):
        found["cost"] = found.pop("price")
        found["extra"] = ["e1", "e20", "e33", "f"]
    return found


def row(id: int) -> dict[str, Any]:
    """Return a row with nulls and NaNs here and there, each column in an order of its own."""
    return {
        "id": id,
        "n": None if id % 17 == 0 else id % 50,
        "country": None if id % 23 == 0 else ("DE", "FR", "US")[id % 3],
        "price": math.nan if id % 40 < 4 else None if id % 11 == 0 else id / 4 - 20,
        "amount": None if id % 13 == 0 else Decimal(id * 125 - 10_000).scaleb(-2),
        "d": date(2024, 1, 1) + timedelta(id // 20),
        "ts": _YEAR + timedelta(hours=3 * id),
        "tsn": _EPOCH + timedelta(hours=id),
        "flag": None if id % 19 == 0 else id < 100,
        "place": None
        if id % 29 == 0
        else {"city": f"town-{id // 8:03}", "zip": None if id % 7 == 0 else id * 3},
    }
