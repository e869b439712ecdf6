"""Does a snapshot tell of everything that it changed.

Whoever reads changes believes what a root says came and went. So what was live before, less what
it says went, and with what it says came, must be what is live in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow.compute as pc

from icetree.errors import CorruptTable
from icetree.spec.arrays import is_among, one_chunk, without
from icetree.spec.entry.entry import Content, Entries, Status, has_status, is_live, only
from icetree.tree.diff.diff import Diff, identity
from icetree.tree.live import live_in_leaf
from icetree.tree.manifest_dvs import removed_before
from icetree.tree.reading import Reader, leaves_in

#: What a file that stays must keep.
_KEPT: Final = (
    *("sequence_number", "file_sequence_number", "first_row_id", "record_count"),
    "partition_spec_id",
)
_NAMES: Final = ("content_type", "location", "dv_offset", "referenced_file")


def told_of(live: Entries) -> Entries:
    """Return what `untold` looks at, of live files."""
    return live.select([*_NAMES, *_KEPT])


def untold(before: Entries, after: Entries, changed: Diff) -> Iterator[str]:
    """Yield how live files differ from those of the parent other than the snapshot says."""
    old, new = one_chunk(identity(before)), one_chunk(identity(after))
    came, went = one_chunk(identity(changed.added)), one_chunk(identity(changed.removed))
    stayed = without(old, went)
    for says, names in (
        ("is removed, but the snapshot before did not have it", without(went, old)),
        ("is added, but the snapshot before had it", came.filter(is_among(came, stayed))),
        ("is lost: no change tells that it went", without(without(stayed, new), came)),
        ("is live, but no change tells that it came", without(without(new, stayed), came)),
        ("is added, but not live", without(came, new)),
    ):
        for name in names[:1]:
            yield f"{_in_words(name.as_py())} {says}"
    at = pc.index_in(new, value_set=stayed)
    rows = pc.index_in(new.filter(pc.is_valid(at)), value_set=old)
    was, now = before.take(rows), after.filter(pc.is_valid(at))
    for column in _KEPT:
        # Files from before row lineage are numbered once.
        other = pc.fill_null(pc.not_equal(was[column], now[column]), False)
        lost = pc.and_(pc.is_valid(was[column]), pc.is_null(now[column]))
        for name in new.filter(pc.is_valid(at)).filter(one_chunk(pc.or_(other, lost)))[:1]:
            yield f"{_in_words(name.as_py())} has another {column} than in the snapshot before"


def left_behind(
    files: Entries, root: Entries, reader: Reader, *, root_file: str = "root"
) -> Iterator[str]:
    """Yield a sentence for each leaf that is DELETED while what it held is not in `files`."""
    deleted = leaves_in(only(root, has_status(root, Status.DELETED)))
    if not deleted:
        return
    live = {leaf.location for leaf in leaves_in(only(root, is_live(root)))}
    kept = one_chunk(identity(files))
    for leaf in deleted:
        if leaf.location in live:
            yield f"{leaf.location} is both DELETED and live"
            continue
        try:
            removed = removed_before(root, reader, leaf.location, root_file=root_file)
            held = live_in_leaf(leaf, removed, reader)
        except CorruptTable:
            continue  # nothing reads it any more, so it may be gone for good
        for name in without(one_chunk(identity(held)), kept)[:1]:
            lost = _in_words(name.as_py())
            yield f"{leaf.location} is DELETED, but {lost}, live in it, is live nowhere else"


def _in_words(name: str) -> str:
    content, location, _, target = name.split("\0")
    is_vector = content == str(int(Content.POSITION_DELETES)) and target
    return f"the data DV of {target}" if is_vector else location
