"""Variants whose fields are stored apart, as columns of their own: Parquet's shredding.

Which fields that are is inferred from the first rows of a file. Whatever does not fit what was
inferred stays in the bytes of its value, so every variant comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from icetree.codec.variant.read import (
    Malformed,
    Path,
    Primitive,
    is_object,
    leaves,
    names,
    primitive,
)
from icetree.codec.variant.write import encode_object
from icetree.rows.variant import METADATA, TYPED, VALUE, fields_of

#: So many variants are looked at, and so many fields are stored apart.
_LOOKED_AT: Final = 1000
_MOST_FIELDS: Final = 200
_DEEPEST: Final = 8
#: A field is worth a column where one in so many variants has it.
_RARE: Final = 10

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
}


@dataclass(frozen=True, slots=True)
class Single:
    """Values of one kind, in a column of their own."""

    kind: str
    type: pa.DataType


#: How a value is stored apart: as a single one, or as fields; None for as it is.
Shape: TypeAlias = "Single | dict[str, Any] | None"


@dataclass(slots=True)
class _Seen:
    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    scales: set[int] = field(default_factory=set)
    digits: int = 0
    within: dict[str, _Seen] = field(default_factory=dict)


def inferred(pairs: pa.Array) -> Shape:
    """Return how variants are best stored apart."""
    root = _Seen()
    for pair in pairs.drop_null().slice(0, _LOOKED_AT).to_pylist():
        try:
            found = list(leaves(pair[VALUE], names(pair[METADATA])))
        except Malformed:
            continue
        for path, single in found:
            _note(root, path, single)
    return _shape(root, max(1, root.count // _RARE), [_MOST_FIELDS], 0)


def _note(root: _Seen, path: Path, single: Primitive | None) -> None:
    seen = root
    for step in path:
        seen = seen.within.setdefault(str(step), _Seen())
    seen.count += 1
    if single is None:
        # Of an object its fields tell; an array has none.
        seen.kinds["nested"] += 1
    elif single.kind != "null":
        seen.kinds[single.kind] += 1
    if single is not None and single.kind == "exact":
        number = Decimal(single.value).as_tuple()
        seen.scales.add(-int(number.exponent) if isinstance(single.value, Decimal) else -1)
        seen.digits = max(seen.digits, len(number.digits))


def _shape(seen: _Seen, least: int, left: list[int], depth: int) -> Shape:
    if not seen.kinds:
        return None
    # What is of another kind than most stays as it is.
    [(kind, _)] = seen.kinds.most_common(1)
    if kind == "nested":
        if depth >= _DEEPEST:
            return None
        made = {}
        for name, inner in sorted(seen.within.items()):
            if inner.count >= least and left[0] > 0:
                left[0] -= 1
                made[name] = _shape(inner, least, left, depth + 1)
        return made or None
    if kind == "exact":
        return _numbers(seen)
    return Single(kind, _TYPES[kind]) if kind in _TYPES else None


def _numbers(seen: _Seen) -> Single | None:
    if seen.scales == {-1}:
        return Single("exact", pa.int64())
    if len(seen.scales) > 1:
        return None
    [scale] = seen.scales
    return Single("exact", pa.decimal128(18 if seen.digits <= 18 and scale <= 18 else 38, scale))


def stored_type(shape: Shape) -> pa.StructType:
    """Return the type of variants that are stored so."""
    return pa.struct([pa.field(METADATA, pa.binary(), nullable=False), *_parts(shape)])


def _parts(shape: Shape) -> list[pa.Field]:
    value = pa.field(VALUE, pa.binary())
    if shape is None:
        return [value]
    if isinstance(shape, Single):
        return [value, pa.field(TYPED, shape.type)]
    fields = [
        pa.field(name, pa.struct(_parts(each)), nullable=False) for name, each in shape.items()
    ]
    return [value, pa.field(TYPED, pa.struct(fields))]


def shredded(pairs: pa.Array, shape: Shape) -> pa.Array:
    """Return variants as they are stored."""
    made = [None if pair is None else _stored(pair, shape) for pair in pairs.to_pylist()]
    return pa.array(made, stored_type(shape))


def _stored(pair: Mapping[str, bytes], shape: Shape) -> dict[str, Any]:
    metadata, value = pair[METADATA], pair[VALUE]
    try:
        known = names(metadata)
        ids = {name: id for id, name in enumerate(known)}
        # Names that are there twice would not come back as they were.
        apart = _apart(value, ids, shape) if len(ids) == len(known) else {VALUE: value}
    except Malformed:
        apart = {VALUE: value}
    return {METADATA: metadata, **apart}


def _apart(value: bytes, ids: Mapping[str, int], shape: Shape) -> dict[str, Any]:
    if isinstance(shape, Single):
        single = primitive(value)
        if single is not None and _fits(single, shape):
            return {VALUE: None, TYPED: single.value}
    elif shape is not None and is_object(value):
        own = fields_of(value, ids)
        typed = {
            name: _apart(own.pop(name), ids, each) if name in own else {}
            for name, each in shape.items()
        }
        return {VALUE: encode_object(own, ids) if own else None, TYPED: typed}
    return {VALUE: value}


def _fits(single: Primitive, shape: Single) -> bool:
    if single.kind != shape.kind:
        return False
    if shape.kind != "exact":
        return True
    is_decimal = isinstance(single.value, Decimal)
    if pa.types.is_integer(shape.type):
        return not is_decimal
    if not is_decimal:
        return False
    number = single.value.as_tuple()
    fits = len(number.digits) <= shape.type.precision
    return bool(fits and -number.exponent == shape.type.scale)
