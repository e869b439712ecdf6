"""Files with real rows, their stats, and predicates judged row by row: what pruning must obey."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st
from pyiceberg import expressions as ice
from pyiceberg.expressions import literals as lit
from pyiceberg.schema import Schema
from pyiceberg.transforms import UnknownTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.spec.entry.entry import Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import has_nans

F32 = float(np.float32(0.1))
TEXTS = ["", "a", "ab", "abc", "abd", "b", "é", "\U0001f600", "\uffff"]
DAY = 86_400_000_000

#: Column -> (type, values that rows may have, literals that predicates may have).
COLUMNS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "i": (IntegerType(), [8 - 2**31, -11, -1, 0, 1, 5, 12, 2**31 - 1], [-(2**40), 0, 2, 5, 2**40]),
    "l": (LongType(), [8 - 2**63, -11, -1, 0, 9, 10, 2**63 - 1], [-10, 0, 9, 2**70]),
    "f": (
        FloatType(),
        [-math.inf, -1.5, -0.0, 0.0, F32, 2.0, math.inf, math.nan],
        [-1e300, -0.0, 0.0, 0.1, F32, 2.0, 1e300],
    ),
    "d": (DoubleType(), [-math.inf, -1.5, -0.0, 0.0, 0.1, math.inf, math.nan], [-0.0, 0.1, 3.0]),
    "dec": (
        DecimalType(9, 2),
        [Decimal(text) for text in ("-10.05", "-0.01", "0.00", "0.05", "1.23", "99.99")],
        [Decimal("0.10"), Decimal("-10.00")],
    ),
    "dt": (DateType(), [-800, -1, 0, 1, 30, 31, 400], [-31, 59]),
    "tm": (TimeType(), [0, 1, 3_600_000_000, DAY - 1], [2]),
    "ts": (TimestampType(), [-DAY - 1, -1, 0, 1, DAY - 1, DAY, 40 * DAY], [2 * DAY, -DAY]),
    "tz": (TimestamptzType(), [-DAY, -1, 0, 1, DAY // 24, DAY], [DAY // 24 - 1]),
    "ns": (TimestampNanoType(), [-1, 0, 1, 999, DAY * 1000, DAY * 1000 + 1], [1000]),
    "s": (StringType(), TEXTS, ["a", "aba", "ac", "z", ""]),
    "u": (UUIDType(), [bytes([0] * 15 + [n]) for n in (0, 7)] + [b"\xff" * 16, b"\x7f" * 16], []),
    "x": (FixedType(2), [b"\x00\x00", b"\x00\x01", b"\x7f\xff", b"\x80\x00", b"\xff\xff"], []),
    "b": (BinaryType(), [b"", b"\x00", b"a", b"ab", b"\xff", b"\xff\x01"], [b"a\x00", b"\x80"]),
    "o": (BooleanType(), [True, False], []),
}
NAMES = list(COLUMNS)
# What PyIceberg's literals and evaluators can do: no nanoseconds, no UUID bounds.
PEER_NAMES = [name for name in NAMES if name not in ("f", "ns", "u", "x", "b", "tm")]
IDS = {name: at for at, name in enumerate(NAMES, start=1)}

_OVER = [
    ("i", "bucket[4]"),
    ("i", "truncate[10]"),
    ("l", "truncate[10]"),
    ("dec", "truncate[10]"),
    ("dec", "bucket[3]"),
    ("dt", "month"),
    ("dt", "year"),
    ("ts", "day"),
    ("ts", "hour"),
    ("tz", "hour"),
    ("tz", "month"),
    ("ns", "day"),
    ("s", "truncate[2]"),
    ("s", "bucket[3]"),
    ("b", "truncate[1]"),
    ("u", "bucket[3]"),
    ("s", "soundex"),
    ("i", "void"),
]
EXPRESSIONS = {
    101 + at: Expression(
        expr_id=101 + at, source_ids=(IDS[name],), transform=transform, name=f"e{101 + at}"
    )
    for at, (name, transform) in enumerate(_OVER)
}
SHAPE = Shape(
    schema=Schema(*(NestedField(IDS[name], name, COLUMNS[name][0]) for name in NAMES)),
    expressions=EXPRESSIONS,
)

Row = Mapping[str, Any]


def literal(name: str, value: Any) -> lit.Literal[Any]:
    kind = type(COLUMNS[name][0])
    makers: dict[type, Callable[[Any], lit.Literal[Any]]] = {
        DateType: lit.DateLiteral,
        TimeType: lit.TimeLiteral,
        TimestampType: lit.TimestampLiteral,
        TimestamptzType: lit.TimestampLiteral,
        UUIDType: lit.UUIDLiteral,
    }
    return makers.get(kind, lit.literal)(value)


def full_stats(field_id: int, values: list[Any]) -> FieldStats:
    """Return all that can be known of a field with these values."""
    nans = [value for value in values if isinstance(value, float) and math.isnan(value)]
    real = [value for value in values if value is not None and value == value]
    return FieldStats(
        lower=min(real, default=None),
        upper=max(real, default=None),
        values=len(values),
        nulls=sum(value is None for value in values),
        nans=len(nans) if has_nans(SHAPE.types[field_id]) else None,
    )


def columns_of(rows: list[Row], names: list[str]) -> dict[int, list[Any]]:
    """Return the values of each column and each expression over it, by field id."""
    found = {IDS[name]: [row[name] for row in rows] for name in names}
    for id, expression in EXPRESSIONS.items():
        if expression.source_ids[0] in found and id in SHAPE.types:
            source, transform = expression.source_ids[0], transform_of(expression)
            if isinstance(transform, UnknownTransform):
                continue
            apply = transform.transform(SHAPE.types[source])
            found[id] = [apply(value) for value in found[source]]
    return found


def stats_of(rows: list[Row], names: list[str]) -> dict[int, FieldStats]:
    return {id: full_stats(id, values) for id, values in columns_of(rows, names).items()}


def blurred(stats: FieldStats, how: frozenset[str]) -> FieldStats:
    """Return the stats as a worse writer gives them: parts missing, text bounds cut short."""
    for stat in how & {"lower", "upper", "values", "nulls", "nans"}:
        stats = replace(stats, **{stat: None})
    if "nan bounds" in how and isinstance(stats.lower, float):
        stats = replace(stats, lower=math.nan, upper=math.nan)
    if "cut" in how and isinstance(stats.lower, str):
        stats = replace(stats, lower=stats.lower[:1])
    if "cut" in how and isinstance(stats.upper, str) and len(stats.upper) > 1:
        stats = replace(stats, upper=chr(ord(stats.upper[0]) + 1))
    return stats


BLURS = st.sets(
    st.sampled_from(["lower", "upper", "values", "nulls", "nans", "cut", "nan bounds"]), max_size=3
).map(frozenset)


@st.composite
def files(draw: st.DrawFn, names: list[str]) -> list[list[Row]]:
    # Few distinct values a file, so that files of one value, or of none, are common.
    def rows() -> list[Row]:
        pools = {
            name: draw(st.lists(st.sampled_from([*COLUMNS[name][1], None]), min_size=1, max_size=3))
            for name in names
        }
        size = draw(st.integers(0, 4))
        return [
            {name: pool[draw(st.integers(0, len(pool) - 1))] for name, pool in pools.items()}
            for _ in range(size)
        ]

    return [rows() for _ in range(draw(st.integers(1, 4)))]


_COMPARE = [ice.LessThan, ice.LessThanOrEqual, ice.GreaterThan, ice.GreaterThanOrEqual]
_PREFIX = [ice.StartsWith, ice.NotStartsWith]


def atoms(name: str) -> st.SearchStrategy[ice.BooleanExpression]:
    type_, values, more = COLUMNS[name]
    given = [literal(name, value) for value in [*values, *more] if value == value]
    one = st.sampled_from(given)
    kinds = [*_COMPARE, ice.EqualTo, ice.NotEqualTo]
    if isinstance(type_, StringType | BinaryType | FixedType):
        kinds += _PREFIX
    unary = [ice.IsNull, ice.NotNull]
    if has_nans(type_):
        unary += [ice.IsNaN, ice.NotNaN]
    several = st.lists(one, min_size=2, max_size=4)
    return st.one_of(
        st.builds(lambda kind, value: kind(name, value), st.sampled_from(kinds), one),
        st.builds(
            lambda kind, some: kind(name, some), st.sampled_from([ice.In, ice.NotIn]), several
        ),
        st.builds(lambda kind: kind(name), st.sampled_from(unary)),
    )


def predicates(names: list[str]) -> st.SearchStrategy[ice.BooleanExpression]:
    leaf = st.sampled_from(names).flatmap(atoms)
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(ice.And, inner, inner),
            st.builds(ice.Or, inner, inner),
            st.builds(ice.Not, inner),
        ),
        max_leaves=4,
    )


#: How engines differ: does a null satisfy `!=`, and is a literal rounded to a float column's type?
READINGS = [(sql, rounded) for sql in (False, True) for rounded in (False, True)]


def holds(predicate: ice.BooleanExpression, row: Row, *, sql: bool, rounded: bool) -> bool:
    """Judge one row by a predicate without `not`."""
    match predicate:
        case ice.AlwaysTrue():
            return True
        case ice.And() | ice.Or():
            both = (predicate.left, predicate.right)
            judged = [holds(part, row, sql=sql, rounded=rounded) for part in both]
            return all(judged) if isinstance(predicate, ice.And) else any(judged)
    name = predicate.term.name
    value = row[name]
    if isinstance(predicate, ice.UnaryPredicate):
        return _UNARY[type(predicate)](value)
    if value is None:
        negative = isinstance(predicate, ice.NotEqualTo | ice.NotIn | ice.NotStartsWith)
        return negative and not sql
    if isinstance(predicate, ice.SetPredicate):
        given = [_plain(each, rounded and name == "f") for each in predicate.literals]
        return any(value == each for each in given) == isinstance(predicate, ice.In)
    return _BINARY[type(predicate)](value, _plain(predicate.literal, rounded and name == "f"))


def _plain(given: lit.Literal[Any], rounded: bool) -> Any:
    if not rounded:
        return given.value
    with np.errstate(over="ignore"):
        return float(np.float32(given.value))


_UNARY: dict[type, Callable[[Any], bool]] = {
    ice.IsNull: lambda value: value is None,
    ice.NotNull: lambda value: value is not None,
    ice.IsNaN: lambda value: value is not None and value != value,
    ice.NotNaN: lambda value: value is None or value == value,
}
#: What each comparison means of plain values.
COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ice.LessThan: operator.lt,
    ice.LessThanOrEqual: operator.le,
    ice.GreaterThan: operator.gt,
    ice.GreaterThanOrEqual: operator.ge,
    ice.EqualTo: operator.eq,
    ice.NotEqualTo: operator.ne,
}
_BINARY: dict[type, Callable[[Any, Any], bool]] = {
    **COMPARISONS,
    ice.StartsWith: lambda value, prefix: value.startswith(prefix),
    ice.NotStartsWith: lambda value, prefix: not value.startswith(prefix),
}


def entries_of(many: list[list[Row]], stats: list[dict[int, FieldStats]]) -> Entries:
    return to_table(
        (
            Entry(location=f"f{at}", record_count=len(rows), stats=known)
            for at, (rows, known) in enumerate(zip(many, stats, strict=True))
        ),
        SHAPE,
    )


def merged(parts: list[FieldStats]) -> FieldStats:
    """Return the stats of files together: bounds where every file with a value has them."""
    known: dict[str, Any] = {}
    for stat, pick in (("lower", min), ("upper", max)):
        bounds = [getattr(part, stat) for part in parts]
        if all(bound is not None and bound == bound for bound in bounds):
            known[stat] = pick(bounds)
    for stat in ("values", "nulls", "nans"):
        counts = [getattr(part, stat) for part in parts]
        if None not in counts:
            known[stat] = sum(counts)
    return FieldStats(**known)
