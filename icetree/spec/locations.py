"""Columns of locations: what `spec.location` says of one, for all of them at once.

Nearly every column has relative names only, of which no byte calls for a second look. To see that
costs a glance at its bytes as a whole, and then nothing is done.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.spec import location as one
from icetree.spec.arrays import one_chunk

Locations: TypeAlias = "pa.Array | pa.ChunkedArray"

_SLASH, _DOT, _COLON = b"/.:"
_UP: Final = r"(?:^|/)\.\.(?:/|\z)"
_NONE: Final = pa.scalar(None, pa.string())


def stored_form_array(locations: Locations, table_location: str) -> pa.Array:
    """Do `stored_form` for a string column, as one array; null stays null."""
    locations = _text(locations)
    if _are_plain(locations):
        return locations
    # Most writers spell all of them alike: what stands before one stands before each.
    first = locations.drop_null()[0].as_py()
    rest = _below(locations, first.removesuffix(one.stored_form(first, table_location)))
    if rest.null_count == locations.null_count and _are_plain(rest):
        return rest
    in_full = is_full(locations)
    full = canonical_array(pc.if_else(in_full, locations, _NONE), table_location)
    rest = _below(full, one.prefix_of(one.canonical(table_location, table_location)))
    under = pc.and_(pc.not_equal(rest, ""), pc.invert(is_full(rest)))
    found = pc.coalesce(pc.if_else(under, rest, _NONE), full, _relative(locations, table_location))
    bad = pc.or_(pc.equal(found, ""), pc.match_substring_regex(found, _UP))
    if pc.any(bad).as_py():
        raise InvalidInput(one.no_name(locations.filter(bad)[0].as_py()))
    return found


def given_form_array(locations: Locations, table_location: str) -> pa.Array:
    """Do `given_form` for a string column, as one array; null stays null."""
    locations = _text(locations)
    found = stored_form_array(locations, table_location)
    if found is not locations:
        lost = pc.and_(pc.starts_with(locations, "/"), is_uri(found))
        for each in locations.filter(lost)[:1].to_pylist():
            raise InvalidInput(one.outside(each, table_location))
    return found


def absolute_array(stored: Locations, table_location: str) -> pa.Array:
    """Do `absolute` for a string column, as one array; null stays null."""
    stored = _text(stored)
    joined = _join(one.prefix_of(table_location), stored)
    if _are_plain(stored):
        return joined
    paths = pc.starts_with(stored, "/")
    full = pc.if_else(paths, _join(one.origin_of(table_location), stored), stored)
    return pc.if_else(is_full(stored), full, joined)


def canonical_array(full: Locations, table_location: str) -> pa.Array:
    """Do `canonical` for a string column of absolute locations; null stays null."""
    full = _text(full)
    full = pc.if_else(pc.starts_with(full, "/"), _join(one.origin_of(table_location), full), full)
    # A path has no scheme still where the table's location has none.
    on_disk = pc.or_(pc.starts_with(full, "/"), pc.match_substring_regex(full, one.ON_DISK))
    path = _join("/", pc.replace_substring_regex(full, one.DISK, ""))
    path = _join("file://", pc.replace_substring_regex(path, one.SLASHES, "/"))
    return pc.if_else(on_disk, path, _canonical_keys(full, table_location))


def _canonical_keys(full: pa.Array, table_location: str) -> pa.Array:
    parts = pc.extract_regex(full, r"(?s)^(?P<scheme>[^:]*)(?P<rest>.*)$")
    scheme, rest = (pc.struct_field(parts, name) for name in ("scheme", "rest"))
    scheme = pc.ascii_lower(scheme)
    for same, default in one.ONE_STORE:
        own = one.scheme_in(table_location, same, default)
        scheme = pc.if_else(pc.is_in(scheme, pa.array(sorted(same))), own, scheme)
    keys = pc.binary_join_element_wise(scheme, rest, "")
    own = one.scheme_in(table_location, one.AZURE, "abfss")
    is_azure = pc.equal(scheme, own)
    if not pc.any(is_azure).as_py():
        return keys
    faced = pc.replace_substring_regex(keys, one.AZURE_FACE, one.azure_face(own))
    return pc.if_else(is_azure, faced, keys)


def canonical_range(
    lower: Locations, upper: Locations, table_location: str
) -> tuple[pa.Array, pa.Array]:
    """Return bounds of locations as bounds of their canonical forms; null where none follow.

    All that lies between two locations of one origin has that origin, so another spelling of it
    changes no order. On a disk more than the origin may be spelt otherwise: only a single location
    stays what it was. Of Azure the account's host may be, so it must be there in full.
    """
    lower, upper = _text(lower), _text(upper)
    origin = _origin(lower)
    cut_off = pc.match_substring_regex(origin, r"^(?i:abfss?|wasbs?):$")
    same = pc.and_not(pc.equal(origin, _origin(upper)), cut_off)
    lower, upper = (canonical_array(each, table_location) for each in (lower, upper))
    kept = pc.or_(pc.invert(pc.starts_with(lower, "file://")), pc.equal(lower, upper))
    is_known = pc.and_(same, kept)
    return pc.if_else(is_known, lower, _NONE), pc.if_else(is_known, upper, _NONE)


def is_uri(stored: Locations) -> Any:
    """Tell which locations, in their stored form, are outside the table."""
    return pc.match_substring_regex(stored, one.SCHEME)


def origins(stored: Locations) -> list[str]:
    """Return what stands before the paths of those, in their stored form, outside the table."""
    stored = _text(stored)
    outside = stored if _are_plain(stored) else stored.filter(is_uri(stored))
    if outside is stored:
        return []
    return [each for each in pc.unique(_origin(outside)).to_pylist() if each]


def is_full(locations: Locations) -> Any:
    """Tell which locations stand by themselves: URIs, and paths that start with a slash."""
    return pc.or_(pc.starts_with(locations, "/"), is_uri(locations))


def _text(locations: Locations) -> pa.Array:
    found = one_chunk(locations)
    return found if pa.types.is_string(found.type) else found.cast(pa.string())


def _are_plain(locations: pa.Array) -> bool:
    """Tell whether every location is relative, and surely in its stored form.

    None is empty, starts with a slash or a dot, or has a slash beside another, a dot or a colon.
    """
    _, offsets, content = locations.buffers()
    if content is None or len(locations) == 0:
        return bool(locations.null_count == len(locations))
    ends = np.frombuffer(offsets, np.int32, len(locations) + 1, locations.offset * 4)
    starts = ends[:-1][np.diff(ends) > 0]
    if len(starts) < len(locations) - locations.null_count:
        return False
    names = np.frombuffer(content, np.uint8)[: ends[-1]]
    slashes = np.flatnonzero(names[ends[0] :] == _SLASH) + ends[0]
    if (names[slashes - 1] == _COLON).any():
        return False
    after = names[slashes[slashes < ends[-1] - 1] + 1]
    near = np.concatenate([names[starts], after])
    return not bool(((near == _SLASH) | (near == _DOT)).any())


def _below(locations: pa.Array, prefix: str) -> pa.Array:
    """Return what follows the prefix; null where a location does not start with it."""
    rest = pc.utf8_slice_codeunits(locations, len(prefix))
    return pc.if_else(pc.starts_with(locations, prefix), rest, _NONE)


def _origin(locations: pa.Array) -> pa.Array:
    """Return what stands before the path; null for what is not absolute."""
    parts = pc.extract_regex(locations, r"^(?P<origin>(?:[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?)?)/")
    return pc.struct_field(parts, "origin")


def _relative(locations: pa.Array, table_location: str) -> pa.Array:
    if one.scheme_of(table_location) not in one.LOCAL:
        return locations
    found = pc.replace_substring_regex(locations, one.LEADING, "")
    return pc.replace_substring_regex(found, one.SLASHES, "/")


def _join(prefix: str, locations: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(prefix), locations, pa.scalar(""))
