"""Random filters over random rows, in the words of each peer.

A filter is what Iceberg writes as JSON, with Python values for literals: `to_json` gives the text
that Iceberg Java reads, `to_pyiceberg` PyIceberg's expression, and `matches` judges one row with
nothing of either.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from pyiceberg import expressions as ice

Filter = Mapping[str, Any]
Row = Mapping[str, Any]
#: Values that filters compare a column with, by the column's name.
Pools = Mapping[str, Sequence[Any]]

_COMPARISONS: Mapping[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], bool]]] = {
    "lt": (ice.LessThan, lambda one, other: one < other),
    "lt-eq": (ice.LessThanOrEqual, lambda one, other: one <= other),
    "gt": (ice.GreaterThan, lambda one, other: one > other),
    "gt-eq": (ice.GreaterThanOrEqual, lambda one, other: one >= other),
    "eq": (ice.EqualTo, lambda one, other: one == other),
    "not-eq": (ice.NotEqualTo, lambda one, other: one != other),
}
_PREFIXES: Mapping[str, Callable[[Any, Any], Any]] = {
    "starts-with": ice.StartsWith,
    "not-starts-with": ice.NotStartsWith,
}
_SETS: Mapping[str, Callable[[Any, Any], Any]] = {"in": ice.In, "not-in": ice.NotIn}
_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "is-null": ice.IsNull,
    "not-null": ice.NotNull,
    "is-nan": ice.IsNaN,
    "not-nan": ice.NotNaN,
}


def random_filters(seed: int, count: int, pools: Pools) -> list[Filter]:
    """Return filters on these columns, the same for the same seed; no two are equal."""
    source = random.Random(seed)
    found: dict[str, Filter] = {}
    while len(found) < count:
        one = _filter(source, pools, depth=source.choice((0, 0, 1, 1, 2, 3)))
        found.setdefault(to_json(one), one)
    return list(found.values())


def _filter(source: random.Random, pools: Pools, depth: int) -> Filter:
    if depth == 0:
        return _predicate(source, pools)
    kind = source.choice(("and", "and", "or", "or", "not"))
    if kind == "not":
        return {"type": "not", "child": _filter(source, pools, depth - 1)}
    left, right = (_filter(source, pools, source.randrange(depth)) for _ in range(2))
    return {"type": kind, "left": left, "right": right}


def _predicate(source: random.Random, pools: Pools) -> Filter:
    column = source.choice(sorted(pools))
    values = pools[column]
    kinds = [*_COMPARISONS, *_COMPARISONS, "in", "in", "not-in", "is-null", "not-null"]
    if isinstance(values[0], str):
        kinds += [*_PREFIXES, *_PREFIXES]
    if isinstance(values[0], float):
        kinds += ["is-nan", "not-nan"]
    kind = source.choice(kinds)
    if kind in _UNARY:
        return {"type": kind, "term": column}
    if kind in _SETS:
        # Iceberg takes an `in` of one value for an `eq`: more than one, to test both.
        picked = source.sample(list(values), min(len(values), source.randint(2, 4)))
        return {"type": kind, "term": column, "values": picked}
    value = source.choice(values)
    if kind in _PREFIXES:
        value = value[: source.randint(1, len(value))]
    return {"type": kind, "term": column, "value": value}


def to_json(filter: Filter) -> str:
    """Return the filter as Iceberg's own JSON."""
    return json.dumps(filter, default=_json_value)


def _json_value(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"no literal: {value!r}")


def to_pyiceberg(filter: Filter) -> ice.BooleanExpression:
    """Return the filter as PyIceberg's expression."""
    kind = filter["type"]
    match kind:
        case "and":
            return ice.And(to_pyiceberg(filter["left"]), to_pyiceberg(filter["right"]))
        case "or":
            return ice.Or(to_pyiceberg(filter["left"]), to_pyiceberg(filter["right"]))
        case "not":
            return ice.Not(to_pyiceberg(filter["child"]))
    term = filter["term"]
    if kind in _UNARY:
        return _UNARY[kind](term)  # type: ignore[no-any-return]
    if kind in _SETS:
        return _SETS[kind](term, filter["values"])  # type: ignore[no-any-return]
    make = _PREFIXES[kind] if kind in _PREFIXES else _COMPARISONS[kind][0]
    return make(term, filter["value"])  # type: ignore[no-any-return]


def matches(filter: Filter, row: Row) -> bool:
    """Tell whether a row is one that the filter asks for.

    As in Iceberg, `not` is first moved to the predicates; a null then satisfies `is-null` alone,
    and a NaN is different from every value and comparable with none.
    """
    return _holds(filter, row, negated=False)


def _holds(filter: Filter, row: Row, *, negated: bool) -> bool:
    kind = filter["type"]
    if kind == "not":
        return _holds(filter["child"], row, negated=not negated)
    if kind in ("and", "or"):
        both = (_holds(filter[side], row, negated=negated) for side in ("left", "right"))
        return all(both) if (kind == "and") is not negated else any(both)
    value = _value(row, filter["term"])
    if kind in ("is-null", "not-null"):
        return ((value is None) is (kind == "is-null")) is not negated
    is_nan = isinstance(value, float) and math.isnan(value)
    if kind in ("is-nan", "not-nan"):
        return (is_nan is (kind == "is-nan")) is not negated
    if value is None:
        return False
    if kind in _SETS:
        return ((value in filter["values"]) is (kind == "in")) is not negated
    if kind in _PREFIXES:
        return (value.startswith(filter["value"]) is (kind == "starts-with")) is not negated
    if is_nan and kind not in ("eq", "not-eq"):
        return False
    return _COMPARISONS[kind][1](value, filter["value"]) is not negated


def _value(row: Row, term: str) -> Any:
    value: Any = row
    for name in term.split("."):
        value = None if value is None else value.get(name)
    return value
