"""Which columns have stats, and how much of each: Iceberg's `write.metadata.metrics.*`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pyiceberg.schema import Schema
from pyiceberg.types import ListType, MapType, NestedField, StructType

from icetree.errors import InvalidInput
from icetree.spec.entry.stats import can_be_stored
from icetree.spec.properties.values import flag, whole_number
from icetree.spec.schema.types import VariantType

DEFAULT: Final = "write.metadata.metrics.default"
COLUMN_PREFIX: Final = "write.metadata.metrics.column."
SHRED_VARIANTS: Final = "write.parquet.shred-variants"
MAX_INFERRED: Final = "write.metadata.metrics.max-inferred-column-defaults"

#: A root's size floor is set by its number of columns, so few have stats unless asked for.
DEFAULT_MAX_INFERRED: Final = 32

_LAST_CODE_POINT: Final = 0x10FFFF
_BEFORE_SURROGATES: Final = 0xD7FF
_AFTER_SURROGATES: Final = 0xE000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How much is kept of a column: nothing, counts, counts and bounds."""

    kind: Literal["none", "counts", "truncate", "full"]
    #: For `truncate`: code points of a string, bytes of a binary.
    length: int | None = None

    @property
    def has_bounds(self) -> bool:
        """Tell whether lower and upper bounds are kept."""
        return self.kind in {"truncate", "full"}


NONE: Final = Mode(kind="none")
COUNTS: Final = Mode(kind="counts")
FULL: Final = Mode(kind="full")
DEFAULT_MODE: Final = Mode(kind="truncate", length=16)
_PLAIN: Final = {"none": NONE, "counts": COUNTS, "full": FULL}


def parse_mode(text: str, *, name: str) -> Mode:
    """Read the value of property `name`."""
    plain = text.strip().lower()
    if plain in _PLAIN:
        return _PLAIN[plain]
    truncate = re.fullmatch(r"truncate\(([0-9]{1,9})\)", plain)
    if truncate is None or int(truncate[1]) == 0:
        raise InvalidInput(
            f"{name}={text!r}: allowed are none, counts, full, and truncate(n) with n of 1 or more"
        )
    return Mode(kind="truncate", length=int(truncate[1]))


def tracked(
    schema: Schema,
    properties: Mapping[str, str],
    *,
    always: Collection[int] = (),
    exact: Collection[int] = (),
) -> dict[int, Mode]:
    """Return the columns that have stats, in schema order, each with its mode.

    A column's own property decides. Else, with a default in the properties, every column has
    that mode; without one, the first 32 (or `max-inferred-column-defaults`) have truncate(16)
    and the rest nothing. Columns in `always` (partition sources, sort and identifier columns)
    have bounds unless their own property says otherwise; columns in `exact` (sources of
    identity partitions) are always full, for their stats hold the partition. Fields inside
    lists and maps have no stats and do not count; nor has a column whose id is too large. Variants
    have bounds of their fields where these are stored apart.
    """
    given = DEFAULT in properties
    default = parse_mode(properties[DEFAULT], name=DEFAULT) if given else DEFAULT_MODE
    limit = whole_number(properties, MAX_INFERRED, default=DEFAULT_MAX_INFERRED)
    # To look into every variant takes long: it is done for who asks for it.
    shreds = flag(properties, SHRED_VARIANTS, default=False)
    found: dict[int, Mode] = {}
    for ordinal, (name, column) in enumerate(_leaves(schema.as_struct(), "")):
        id = column.field_id
        mode = default if given or ordinal < limit else NONE
        if id in always and not mode.has_bounds:
            mode = DEFAULT_MODE
        override = COLUMN_PREFIX + name
        if override in properties:
            mode = parse_mode(properties[override], name=override)
        if isinstance(column.field_type, VariantType) and mode.has_bounds and not shreds:
            mode = COUNTS
        if id in exact:
            mode = FULL
        if mode is not NONE and can_be_stored(id):
            found[id] = mode
    return found


def _leaves(struct: StructType, prefix: str) -> Iterator[tuple[str, NestedField]]:
    for field in struct.fields:
        match field.field_type:
            case StructType() as inner:
                yield from _leaves(inner, f"{prefix}{field.name}.")
            case ListType() | MapType():
                pass
            case _:
                yield prefix + field.name, field


def truncate_lower(value: str | bytes, length: int) -> str | bytes:
    """Return a value of at most `length` code points or bytes that is not above `value`."""
    return value[:length]


def truncate_upper(value: str | bytes, length: int) -> str | bytes | None:
    """Return a value of at most `length` code points or bytes that is not below `value`.

    None when there is none that short: every character kept is the last of its alphabet.
    """
    if len(value) <= length:
        return value
    kept = value[:length]
    while kept:
        after = _after(kept[-1:])
        if after is not None:
            return kept[:-1] + after  # type: ignore[operator]
        kept = kept[:-1]
    return None


def _after(one: str | bytes) -> str | bytes | None:
    """Return the next character or byte, None after the last."""
    code = ord(one)
    if isinstance(one, bytes):
        return bytes([code + 1]) if code < 0xFF else None
    if code == _BEFORE_SURROGATES:
        return chr(_AFTER_SURROGATES)
    return chr(code + 1) if code < _LAST_CODE_POINT else None
