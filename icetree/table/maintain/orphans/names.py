"""Names of files in a table's folder, and of files that a table needs: which of them are the same.

Plain values in, names out: whoever lists a folder or reads leaves elsewhere does it by this, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.spec.arrays import one_chunk
from icetree.spec.location import absolute
from icetree.spec.locations import absolute_array, canonical_array, is_uri, stored_form_array
from icetree.store.base import Store
from icetree.table.maintain.orphans.links import behind_links, comparable
from icetree.table.progress import Progress

#: Listed names become Arrow so many at a time.
_PORTION: Final = 50_000
#: A part of a name that readers of folders pass over.
_HIDDEN: Final = r"(?:^|/)[_.][^/]*"
#: Versions of a table that is, or was, a folder: found by their numbers, and not by name.
_NUMBERED: Final = r"(?:^|/)metadata/v\d+\.(?:gz\.)?metadata\.json(?:\.gz)?$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where is looked, for what, and how names are told apart."""

    #: The table's location and the folder to look in.
    location: str
    folder: str
    older_than_ms: int = 0
    #: Patterns of what is ours, though it looks as if it were hidden.
    ours: tuple[str, ...] = ()
    #: Folders of other tables, in the spelling to compare.
    others: tuple[str, ...] = ()
    #: Patterns at the start of names, and what is the same.
    equal: tuple[tuple[str, str], ...] = ()


def listed(store: Store, place: Place, tell: Progress) -> Iterator[pa.Array]:
    """Yield the files in the folder that are old enough and may be the table's, by their stored names."""
    names: list[str] = []

    def settled() -> pa.Array:
        found = _visible(pa.array(names, pa.string()), place)
        names.clear()
        return less_others(stored_form_array(found, place.location), place)

    for seen, each in enumerate(store.list(place.folder), start=1):
        if each.modified_at_ms < place.older_than_ms:
            names.append(each.location)
        if seen % _PORTION == 0:
            yield settled()
            tell("files listed", seen, seen)
    yield settled()


def _visible(names: pa.Array, place: Place) -> pa.Array:
    """Leave out what readers of folders pass over: others keep notes there, such as checkpoints."""
    below = pc.utf8_slice_codeunits(names, len(place.folder.rstrip("/")) + 1)
    below = pc.replace_substring_regex(below, rf"(^|/)(?:{'|'.join(place.ours)})", r"\1ours")
    kept = pc.match_substring_regex(below, f"{_HIDDEN}|{_NUMBERED}")
    return names.filter(pc.invert(kept))


def less_others(names: pa.Array, place: Place) -> pa.Array:
    """Leave out what lies in folders of other tables."""
    own = comparable(place.location, place.location)
    asked = comparable(place.folder, place.location)
    for folder in place.others:
        if folder.startswith(asked):
            names = names.filter(pc.invert(pc.starts_with(names, folder.removeprefix(own))))
    return names


def spelled(needed: pa.Table, place: Place) -> tuple[pa.Array, pa.Array]:
    """Return needed files by every name that the listing may have for them.

    Whatever named them, and however, and through whichever links. Beside these, the ones that are
    outside the table, in the spelling that the caller calls equal.
    """
    names = one_chunk(stored_form_array(needed["location"], place.location))
    far = names.filter(is_uri(names))
    names = pa.concat_arrays([names, _behind_links(names, place)])
    if not len(far):
        return names, far
    own = pa.array([comparable(place.location, place.location)])
    for pattern, same in place.equal:
        far, own = (pc.replace_substring_regex(each, pattern, same) for each in (far, own))
    far = one_chunk(stored_form_array(far, own[0].as_py()))
    return pa.concat_arrays([names, far]), far.filter(is_uri(far))


def _behind_links(names: pa.Array, place: Place) -> pa.Array:
    """Return the files in the folder that names lead to by links, by their stored names."""
    full = canonical_array(absolute_array(names, place.location), place.location)
    found = behind_links(full, comparable(place.folder, place.location))
    return one_chunk(stored_form_array(found, place.location))


def mismatched(found: pa.Array, outside: pa.Array, *, refuses: bool, location: str) -> pa.Array:
    """Tell which files have a name that the table has too, but in another place; or refuse them."""
    below = pc.replace_substring_regex(found, r"^[^:/]+://[^/]*/", "")
    depths = pc.count_substring(below, "/")
    alike = pa.repeat(False, len(below))
    for depth in pc.unique(depths).to_pylist():
        pattern = rf"(?s)/(?P<end>(?:[^/]+/){{{depth}}}[^/]+)$"
        ends = pc.struct_field(pc.extract_regex(outside, pattern), "end")
        same = pc.and_(pc.equal(depths, depth), pc.is_in(below, value_set=ends.drop_null()))
        alike = pc.or_(alike, same)
    if refuses and pc.any(alike).as_py():
        name = below.filter(alike)[0].as_py()
        other = outside.filter(pc.ends_with(outside, f"/{name}"))[0].as_py()
        raise InvalidInput(
            f"{alike.true_count} files, such as {absolute(name, location)}, seem to be "
            f"orphans, but the table names {other}, which may be the same file: say which schemes or "
            "authorities are the same with equal_schemes or equal_authorities, or choose by "
            "prefix_mismatch_mode: 'ignore' leaves such files where they are, 'delete' deletes them"
        )
    return alike


def same_schemes(given: str, same: str) -> tuple[str, str]:
    """Return how one scheme is read as another."""
    return f"^{re.escape(given)}://", f"{same}://"


def same_authorities(given: str, same: str) -> tuple[str, str]:
    """Return how one authority is read as another."""
    return rf"^([^:/]+://){re.escape(given)}/", rf"\1{same}/"
