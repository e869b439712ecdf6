"""File locations: relative to the table when under it, else absolute URIs.

A stored location is relative exactly when it has no scheme. Nothing is normalised: what is
stored, joined with the table's location by one `/`, is the location that was given.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.spec.arrays import one_chunk

_SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.\-]*:/"


def prefix_of(table_location: str) -> str:
    """Return what every location under the table starts with: its location and one `/`."""
    base = table_location
    while base.endswith("/") and not base.endswith("://"):
        base = base[:-1]
    return base + "/"


def relative(location: str, table_location: str) -> str:
    """Return the form in which a v4 table stores the location.

    A location outside the table must be a URI with a scheme, or nobody could find it later.
    """
    prefix = prefix_of(table_location)
    if location.startswith(prefix) and location != prefix:
        rest = location[len(prefix) :]
        if not re.match(_SCHEME, rest):
            return rest
    if not re.match(_SCHEME, location):
        raise InvalidInput(_outside(location, table_location))
    return location


def stored_form(location: str, table_location: str) -> str:
    """Do `relative`, but take a name that is relative already as it is."""
    if _is_relative(location):
        return location
    return relative(location, table_location)


def absolute(stored: str, table_location: str) -> str:
    """Return the location that a stored one stands for."""
    return stored if re.match(_SCHEME, stored) else prefix_of(table_location) + stored


def relative_array(locations: pa.Array, table_location: str) -> Any:
    """Do `relative` for a string column; null stays null."""
    prefix = prefix_of(table_location)
    rest = pc.utf8_slice_codeunits(locations, len(prefix))
    under = pc.and_(
        pc.and_(pc.starts_with(locations, prefix), pc.not_equal(rest, "")),
        pc.invert(pc.match_substring_regex(rest, _SCHEME)),
    )
    lost = pc.invert(pc.or_(under, pc.match_substring_regex(locations, _SCHEME)))
    if pc.any(lost).as_py():
        first = locations.filter(lost)[0].as_py()
        raise InvalidInput(_outside(first, table_location))
    return pc.if_else(under, rest, locations)


def stored_form_array(locations: pa.Array, table_location: str) -> Any:
    """Do `stored_form` for a string column; null stays null."""
    given = pc.or_(pc.match_substring_regex(locations, _SCHEME), pc.starts_with(locations, "/"))
    full = pc.if_else(given, locations, pa.scalar(None, locations.type))
    return pc.coalesce(relative_array(full, table_location), locations)


def absolute_array(stored: pa.Array | pa.ChunkedArray, table_location: str) -> pa.Array:
    """Do `absolute` for a string column, as one array; null stays null."""
    stored = one_chunk(stored)
    joined = pc.binary_join_element_wise(
        pa.scalar(prefix_of(table_location), stored.type), stored, pa.scalar("", stored.type)
    )
    return pc.if_else(pc.match_substring_regex(stored, _SCHEME), stored, joined)


def _is_relative(location: str) -> bool:
    return not location.startswith("/") and not re.match(_SCHEME, location)


def _outside(location: str, table_location: str) -> str:
    return (
        f"{location!r} is neither under the table's location {table_location!r} "
        "nor a URI with a scheme: give it as a URI, such as file:///path or s3://bucket/key"
    )
