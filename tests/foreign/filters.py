"""Filters as text, with keys of columns in braces, and what each means for a row of the model."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.foreign.columns import EPOCH, EPOCH_UTC, Row, dig, is_nan
from tests.foreign.layout import Schema

Holds = Callable[[Row], bool]


def _of(path: str, holds: Callable[[Any], bool]) -> Holds:
    """Return a condition of what a row has, that no null and no NaN meets."""

    def tell(row: Row) -> bool:
        value = dig(row, path)
        return value is not None and not is_nan(value) and holds(value)

    return tell


_LEAP_NOON = dt.timedelta(days=19782, hours=12)
_LEAP_DAY = dt.date(2024, 2, 29)

FILTERS: tuple[tuple[str, Holds], ...] = (
    ("{id} <= 4", lambda row: row["id"] <= 4),
    ("{id} in (2, 3, 11, 17)", lambda row: row["id"] in (2, 3, 11, 17)),
    ("{name} = 'bob'", _of("name", lambda it: it == "bob")),
    ("{name} is null", lambda row: row["name"] is None),
    ("{name} > 'a name'", _of("name", lambda it: it > "a name")),
    ("{n} >= 10 and {n} < 20", _of("n", lambda it: 10 <= it < 20)),
    ("{n} = 7 or {name} = ''", lambda row: row["n"] == 7 or row["name"] == ""),
    ("{n} is not null and {id} > 9", lambda row: row["n"] is not None and row["id"] > 9),
    ("{at} >= '2024-02-29 12:00:00'", _of("at", lambda it: it >= EPOCH + _LEAP_NOON)),
    ("{at} is null", lambda row: row["at"] is None),
    ("{price} is null", lambda row: row.get("price") is None),
    ("{price} < 0.5", _of("price", lambda it: it < 0.5)),
    ("{flag} = true", lambda row: row["flag"] is True),
    (
        "{name} = 'bob' and {n} = 7",
        lambda row: row["name"] == "bob" and row["n"] == 7,
    ),
    (
        "{n} in (0, 7, 14) and {name} in ('ada', '')",
        lambda row: row["n"] in (0, 7, 14) and row["name"] in ("ada", ""),
    ),
    ("{n} is null and {name} = 'ada'", lambda row: row["n"] is None and row["name"] == "ada"),
    ("{price} is nan", lambda row: is_nan(row.get("price"))),
    ("{n} < -20", _of("n", lambda it: it < -20)),
    ("{note} = 'y'", _of("note", lambda it: it == "y")),
)
#: Of columns that not all tables have.
MORE: tuple[tuple[str, Holds], ...] = (
    ("{s.a} = 2", _of("s.a", lambda it: it == 2)),
    ("{s.a} is null", lambda row: dig(row, "s.a") is None),
    (
        "{s.b} > 'a' and {id} > 2",
        lambda row: _of("s.b", lambda it: it > "a")(row) and row["id"] > 2,
    ),
    ("{s.c.x} = '2024-02-29'", _of("s.c.x", lambda it: it == _LEAP_DAY)),
    ("{s.c.k} >= 10", _of("s.c.k", lambda it: it >= 10)),
    ("{tz} >= '2024-02-29 12:00:00+00:00'", _of("tz", lambda it: it >= EPOCH_UTC + _LEAP_NOON)),
    ("{d} < '2024-02-29'", _of("d", lambda it: it < _LEAP_DAY)),
    ("{t} > '12:30:00'", _of("t", lambda it: it > dt.time(12, 30))),
    ("{dec} > 1.50", _of("dec", lambda it: it > Decimal("1.50"))),
    ("{dec} = -0.01", _of("dec", lambda it: it == Decimal("-0.01"))),
    ("{big} < 0.00", _of("big", lambda it: it < 0)),
    (
        "{u} = '00000000-0000-0000-0000-000000000007'",
        _of("u", lambda it: it == (7).to_bytes(16, "big")),
    ),
    ("{u} is null", lambda row: row.get("u") is None),
    ("{fix} >= X'616263'", _of("fix", lambda it: it >= b"abc")),
    ("{bin} < X'80'", _of("bin", lambda it: it < b"\x80")),
    ("{bin} is null", lambda row: row.get("bin") is None),
    ("{f} <= -0.5", _of("f", lambda it: it <= -0.5)),
)


def filters_of(schema: Schema) -> list[tuple[str, Holds]]:
    """Return every filter over columns that a schema has, by its names."""
    return [
        (text, holds)
        for where, holds in (*FILTERS, *MORE)
        if (text := schema.spelled(where)) is not None
    ]
