"""Bounds of the fields of variants, and how a file's entry holds them.

By the specification both bounds of a column are objects, from the normalized path of a field to the
least or the greatest of its values; only fields of which all values are of one kind have any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import lru_cache
from math import isnan
from typing import Any, Final

from icetree.codec.variant.paths import normalized
from icetree.codec.variant.read import (
    Malformed,
    Path,
    Primitive,
    leaves,
    members,
    names,
    primitive,
)
from icetree.codec.variant.write import encode_names, encode_object, encode_primitive
from icetree.spec.entry.metrics import truncate_lower, truncate_upper

#: Kinds whose values have an order that all readers agree on.
_ORDERED: Final = frozenset(
    [
        "exact",
        "double",
        "date",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
    ]
)
_WIDE: Final = Context(prec=80)
#: So many fields of a column are bounded, and so many bytes of it: a root holds all bounds.
_MOST: Final = 64
_MOST_SEEN: Final = 1024
_MOST_BYTES: Final = 16 * 1024


class _Range:
    """The least and the greatest of values of one kind."""

    __slots__ = ("kind", "least", "most")

    def __init__(self, single: Primitive) -> None:
        self.kind = single.kind
        self.least: Any = single.value
        self.most: Any = single.value


@dataclass(slots=True)
class Ranges:
    """The least and the greatest value of each field, of as many variants as come."""

    found: dict[Path, _Range | None] = field(default_factory=dict)

    def add(self, metadata: bytes, value: bytes) -> None:
        """Take in a variant; what is none has no fields."""
        try:
            seen = list(leaves(value, names(metadata)))
        except Malformed:
            return
        for path, single in seen:
            if single is None:
                # An array or an object among single values; the root tells of itself alone.
                self._take(path, None)
            elif single.kind != "null":
                self._take(path, single)

    def _take(self, path: Path, single: Primitive | None) -> None:
        if path not in self.found:
            # Fields beyond a number are not told of, whatever they are.
            if len(self.found) < _MOST_SEEN:
                usable = single is not None and _is_ordered(single)
                self.found[path] = _Range(single) if usable and single else None
            return
        known = self.found[path]
        if known is None:
            return
        if single is None or single.kind != known.kind or not _is_ordered(single):
            self.found[path] = None
            return
        known.least, known.most = min(known.least, single.value), max(known.most, single.value)

    def encoded(self, length: int | None) -> tuple[bytes, bytes] | None:
        """Return lower and upper bounds; texts are cut to a length. None where there are none."""
        ends: dict[str, tuple[bytes, bytes]] = {}
        for path, each in self.found.items():
            if each is not None and len(ends) < _MOST:
                made = _ends(each, length)
                if made is not None:
                    ends[normalized(path)] = made
        if not ends:
            return None
        metadata, ids = encode_names(ends)
        lower, upper = (
            metadata + encode_object({path: two[at] for path, two in ends.items()}, ids)
            for at in (0, 1)
        )
        return None if max(len(lower), len(upper)) > _MOST_BYTES else (lower, upper)


def _is_ordered(single: Primitive) -> bool:
    is_nan = isinstance(single.value, float) and isnan(single.value)
    return single.kind in _ORDERED and not is_nan


def _ends(known: _Range, length: int | None) -> tuple[bytes, bytes] | None:
    least, most = known.least, known.most
    if known.kind == "string" and length is not None:
        least, most = truncate_lower(least, length), truncate_upper(most, length)
        if most is None:
            return None
    if any(isinstance(each, Decimal) for each in (least, most)):
        # Both bounds are of one type.
        scale = max(-int(Decimal(each).as_tuple().exponent) for each in (least, most))
        unit = Decimal((0, (1,), -scale))
        least, most = (Decimal(each).quantize(unit, context=_WIDE) for each in (least, most))
    try:
        return encode_primitive(Primitive(known.kind, least)), encode_primitive(
            Primitive(known.kind, most)
        )
    except Malformed:
        return None


@lru_cache(maxsize=8192)
def decode(bound: bytes) -> Mapping[str, Primitive]:
    """Return the bounds that an entry holds, by normalized path; nothing of what is broken."""
    try:
        size = _size_of_names(bound)
        known = names(bound[:size])
        value = bound[size:]
        found = {str(name): primitive(value, at) for name, at in members(value, 0, known)}
    except Malformed:
        return {}
    return {name: single for name, single in found.items() if single is not None}


def _size_of_names(content: bytes) -> int:
    if not content:
        raise Malformed("it is empty")
    width = (content[0] >> 6) + 1
    count = int.from_bytes(content[1 : 1 + width], "little")
    last = 1 + width * (count + 1)
    return 1 + width * (count + 2) + int.from_bytes(content[last : last + width], "little")
