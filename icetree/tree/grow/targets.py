"""What a change may add: files that are not there yet, and DVs of data files that are."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.arrays import is_among, one_chunk, without
from icetree.spec.entry.entry import (
    FILES,
    POSITION,
    Content,
    Entries,
    Status,
    is_content,
    is_data_dv,
    is_data_file,
    only,
    with_columns,
)
from icetree.spec.rules.entry import broken_uniqueness
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes
from icetree.tree.grow.holding import may_hold
from icetree.tree.grow.locate import Located
from icetree.tree.live import live_in_leaf
from icetree.tree.reading import Leaf, Reader

#: Files that their location names, and the leaves they stand in. A data DV shares its location
#: with others.
_HELD_IN = {
    Content.DATA: Content.DATA_MANIFEST,
    Content.EQUALITY_DELETES: Content.DELETE_MANIFEST,
}


def require_addable(added: Entries) -> None:
    """Refuse new entries that are no files, or that name a file, or the DV of one, twice."""
    content = added["content_type"]
    if content.null_count or pc.any(pc.invert(is_content(added, *FILES))).as_py():
        raise InvalidInput("only data files, data DVs and equality deletes can be added to a table")
    for sentence in broken_uniqueness(with_columns(added, status=int(Status.ADDED))):
        raise InvalidInput(f"in the files to be added, {sentence}")


def require_new(
    changes: Changes,
    root: Entries,
    leaves: list[Leaf],
    manifest_dvs: Mapping[str, BitMap],
    located: Located,
    shape: Shape,
    reader: Reader,
) -> None:
    """Refuse to add a file that is live already.

    Files that were made for the change itself are not looked for: nobody else can know their
    names. The others are looked for in the root, and in the leaves whose stats leave room for
    them; where these tell nothing that is all of them.
    """
    added = changes.added
    for content, manifests in _HELD_IN.items():
        known = only(added, is_content(added, content))
        known = only(known, pc.invert(is_among(known["location"], changes.fresh)))
        if known.num_rows == 0:
            continue
        names = one_chunk(known["location"])
        stays = pc.and_(is_content(root, content), pc.invert(located.in_root))
        _refuse(names, root["location"].filter(stays))
        tops = only(root, is_content(root, manifests))
        candidates = set(
            tops["location"].filter(pa.array(may_hold(tops, known, shape))).to_pylist()
        )
        for leaf in leaves:
            if leaf.location in candidates:
                gone = _gone(leaf.location, manifest_dvs, located)
                _refuse(names, live_in_leaf(leaf, gone, reader, {"location"})["location"])


def _refuse(names: pa.Array, live: pa.ChunkedArray) -> None:
    for name in names.filter(is_among(names, live))[:1]:
        raise InvalidInput(f"{name} is in the table already: a file is in a table once")


def require_targets(
    changes: Changes,
    root: Entries,
    leaves: list[Leaf],
    manifest_dvs: Mapping[str, BitMap],
    located: Located,
    reader: Reader,
) -> None:
    """Raise `CommitConflict` when a DV is added for a data file that is not live.

    The root is looked at first, then where the writer saw the file, and leaves only for the rest.
    """
    added = changes.added
    names = added["referenced_file"].filter(is_data_dv(added)).combine_chunks()
    if len(names) == 0:
        return
    names = without(names, added["location"].filter(is_data_file(added)))
    stays = pc.and_(is_data_file(root), pc.invert(located.in_root))
    names = without(names, root["location"].filter(stays))
    names = without(names, _seen(changes, leaves, manifest_dvs, located))
    for leaf in leaves:
        if len(names) and leaf.content_type == Content.DATA_MANIFEST:
            gone = _gone(leaf.location, manifest_dvs, located)
            live = live_in_leaf(leaf, gone, reader, {"location"})
            names = without(names, live["location"])
    if len(names):
        raise CommitConflict(
            f"{names[0]}: a DV is to be added for it, but it is no live data file of the table; "
            "read the table again and decide anew"
        )


def _seen(
    changes: Changes, leaves: list[Leaf], manifest_dvs: Mapping[str, BitMap], located: Located
) -> pa.ChunkedArray:
    """Return the files that are where the writer saw them: leaves never change."""
    seen = changes.seen.filter(pc.is_valid(changes.seen["position"]))
    found = [seen["key"].slice(0, 0)]
    for leaf in leaves:
        here = seen.filter(pc.equal(seen["leaf"], leaf.location))
        gone = _gone(leaf.location, manifest_dvs, located)
        if here.num_rows and gone:
            here = here.filter(pc.invert(pc.is_in(here[POSITION], bitmap.to_array(gone))))
        found.append(here["key"])
    return pa.chunked_array([chunk for each in found for chunk in each.chunks], pa.string())


def _gone(leaf: str, manifest_dvs: Mapping[str, BitMap], located: Located) -> BitMap:
    return manifest_dvs.get(leaf, BitMap()) | located.in_leaves.get(leaf, BitMap())
