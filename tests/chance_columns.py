"""Columns of every type and nesting, by chance: their values, and how a condition spells these."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from struct import pack, unpack
from typing import Any

import pyarrow as pa

from icetree.rows.variant import PAIR
from tests.rows.drawn import spelled, told
from tests.rows.geometries import collection, line, measured, point, square
from tests.rows.variants import pair

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type in words, as Arrow takes it, and what makes a value of it that is not null."""

    type: str
    arrow: pa.DataType
    value: Callable[[random.Random], Any]

    def values(self, chance: random.Random, count: int) -> list[Any]:
        """Return some values, nulls among them."""
        return [None if chance.random() < 0.25 else self.value(chance) for _ in range(count)]


def _among(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


def _whole(bits: int) -> Callable[[random.Random], int]:
    most = 2 ** (bits - 1) - 1
    return lambda chance: chance.choice([-most - 1, most, 0, chance.randint(-9, 9)])


def _near(size: int) -> Callable[[random.Random], int]:
    """Make times that calendars of all sides have."""
    return lambda chance: chance.choice([0, -1, chance.randint(-size, size)])


def _floats(chance: random.Random) -> float:
    return chance.choice([math.nan, -0.0, 0.0, math.inf, -math.inf, chance.uniform(-9, 9)])


def _single_floats(chance: random.Random) -> float:
    found: float = unpack("<f", pack("<f", _floats(chance)))[0]
    return found


def _decimals(digits: int) -> Callable[[random.Random], Decimal]:
    def value(chance: random.Random) -> Decimal:
        number = chance.choice([0, 10**digits - 1, 1 - 10**digits, chance.randint(-999, 999)])
        return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -2))

    return value


def _bytes(least: int, most: int) -> Callable[[random.Random], bytes]:
    return lambda chance: chance.choice(
        [bytes(least), b"\xff" * most, chance.randbytes(chance.randint(least, most))]
    )


_TEXTS = _among("", "a", "it's", '\\ "\n', "ß→😀", "long text " * 4)
_PLACES = _among(
    point(1, 2),
    point(3, 4, 5),
    measured(1, 2, 9),
    line((0, 0), (179, 9)),
    square(2, 2),
    collection(),
)
_VARIANTS = _among(*map(pair, (None, True, 7, "x", {"a": 1, "b": [None]}, {"a": Decimal("1.5")})))

SINGLES = (
    Kind("boolean", pa.bool_(), _among(True, False)),
    Kind("int", pa.int32(), _whole(32)),
    Kind("long", pa.int64(), _whole(64)),
    Kind("float", pa.float32(), _single_floats),
    Kind("double", pa.float64(), _floats),
    Kind("date", pa.date32(), _near(40_000)),
    Kind(
        "time", pa.time64("us"), lambda chance: chance.choice([0, chance.randrange(86_400 * 10**6)])
    ),
    Kind("timestamp", pa.timestamp("us"), _near(3 * 10**15)),
    Kind("timestamptz", pa.timestamp("us", "UTC"), _near(3 * 10**15)),
    Kind("timestamp_ns", pa.timestamp("ns"), _near(3 * 10**18)),
    Kind("timestamptz_ns", pa.timestamp("ns", "UTC"), _near(3 * 10**18)),
    Kind("string", pa.string(), _TEXTS),
    Kind("binary", pa.binary(), _bytes(0, 5)),
    Kind("uuid", pa.binary(16), _bytes(16, 16)),
    Kind("fixed[3]", pa.binary(3), _bytes(3, 3)),
    Kind("decimal(9, 2)", pa.decimal128(9, 2), _decimals(9)),
    Kind("decimal(18, 2)", pa.decimal128(18, 2), _decimals(18)),
    Kind("decimal(38, 2)", pa.decimal128(38, 2), _decimals(38)),
    Kind("geometry(srid:3857)", pa.binary(), _PLACES),
    Kind("geography", pa.binary(), _PLACES),
    Kind("variant", PAIR, _VARIANTS),
    Kind("unknown", pa.null(), lambda _: None),
)
#: What Spark's own reader leaves to ours.
FOREIGN = ("uuid", "time", "unknown")
_UNORDERED = ("geo", "variant", "unknown", "list", "map", "struct")
#: Transforms that a column of a type can be partitioned by, such that partitions are few.
_TRANSFORMS: Mapping[str, tuple[str, ...]] = {
    "boolean": ("{}",),
    "int": ("bucket(3, {})", "truncate(10, {})"),
    "long": ("bucket(3, {})", "truncate(10, {})"),
    "date": ("bucket(2, {})",),
    "time": ("bucket(2, {})",),
    "timestamp": ("bucket(2, {})",),
    "timestamptz": ("bucket(2, {})",),
    "timestamp_ns": ("bucket(2, {})",),
    "timestamptz_ns": ("bucket(2, {})",),
    "string": ("{}", "bucket(2, {})", "truncate(2, {})"),
    "binary": ("bucket(2, {})",),
    "uuid": ("bucket(2, {})",),
    "fixed": ("bucket(2, {})",),
    "decimal": ("bucket(2, {})",),
}


def is_among(kind: Kind, *types: str) -> bool:
    """Tell whether a type begins as one of these, or has one of these in it."""
    return any(word in kind.type for word in types)


def nested(chance: random.Random, singles: Sequence[Kind], depth: int = 2) -> Kind:
    """Return a list, a map or a struct of types, which may nest themselves."""

    def inner() -> Kind:
        deeper = depth > 1 and chance.random() < 0.4
        return nested(chance, singles, depth - 1) if deeper else chance.choice(singles)

    how, one = chance.choice(["list", "map", "struct"]), inner()
    if how == "list":
        return Kind(
            f"list<{one.type}>", pa.list_(one.arrow), lambda c: one.values(c, c.randrange(4))
        )
    if how == "map":
        return Kind(
            f"map<string, {one.type}>",
            pa.map_(pa.string(), one.arrow),
            lambda c: list(zip(("k", "l"), one.values(c, c.randrange(3)), strict=False)),
        )
    members = {f"m{at}": each for at, each in enumerate([one, inner()])}
    return Kind(
        f"struct<{', '.join(f'{name}: {each.type}' for name, each in members.items())}>",
        pa.struct([(name, each.arrow) for name, each in members.items()]),
        lambda c: {name: each.values(c, 1)[0] for name, each in members.items()},
    )


def is_ordered(kind: Kind) -> bool:
    """Tell whether conditions compare values, and rows can be sorted by them."""
    return not kind.type.startswith(_UNORDERED)


def partitions(name: str, kind: Kind) -> list[str]:
    """Return what a table can be partitioned by, of a column."""
    found = _TRANSFORMS.get(kind.type.partition("[")[0].partition("(")[0], ())
    return [each.format(name) for each in found]


def default_of(kind: Kind, chance: random.Random) -> Any:
    """Return a default as a schema takes it, and the value that it means; None for neither."""
    if kind.type.startswith(_UNORDERED) or chance.random() < 0.3:
        return None, None
    value = kind.value(chance)
    if isinstance(value, float) and not math.isfinite(value):
        return None, None
    text = spelled(kind.type, value)
    plain = isinstance(value, bool | float | str | Decimal) or kind.type in ("int", "long")
    if plain or kind.type.startswith(("binary", "fixed")):
        return value, value
    return text.strip("'"), value


def spelled_for_spark(kind: Kind, value: Any) -> str:
    """Return a value as Spark's SQL has it, in the type that it has there."""
    text = spelled(kind.type, value)
    match kind.type.partition("[")[0].partition("(")[0]:
        case "date":
            return f"DATE {text}"
        case "time":
            return f"TIME {text}"
        case "timestamp":
            return f"TIMESTAMP_NTZ {text}"
        case "timestamptz":
            return f"TIMESTAMP {text}"
        case "timestamp_ns" | "timestamptz_ns" | "long":
            # The least has a sign that is not the literal's.
            return f"CAST('{value}' AS BIGINT)"
        case "int":
            return f"CAST('{value}' AS INT)"
        case "float" | "double" as type:
            return f"CAST('{value!r}' AS {type})"
        case "decimal":
            return f"CAST('{text}' AS {kind.type})"
        case "string":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return text


def as_told(found: pa.Table, names: Collection[str]) -> list[Row]:
    """Return rows of which some columns are texts, equal where the values are."""
    if not len(found):
        return []
    plain = [name for name in found.column_names if name not in names]
    rows: list[Row] = found.select(plain).to_pylist() if plain else [{} for _ in range(len(found))]
    for name in (each for each in found.column_names if each in names):
        for row, text in zip(rows, told(found[name]), strict=True):
            row[name] = text
    return rows
