"""Several changes of one transaction as one change, since a commit makes one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Content, concat, is_data_dv, keys_of
from icetree.tree.changes import Changes, Intent


def merge(changes: Sequence[Changes]) -> Changes:
    """Return what the changes come to, one after the other.

    What one adds and a later one removes leaves no trace, a DV goes with its data file, and of
    two DVs for a data file the later one stands.
    """
    if len(changes) == 1:
        return changes[0]
    added, removed = changes[0].added, changes[0].removed
    for change in changes[1:]:
        ours = names_of(added["content_type"], keys_of(added))
        theirs = names_of(change.removed["content_type"], change.removed["key"])
        gone = pc.is_in(ours, theirs)
        again = pc.is_in(ours, names_of(change.added["content_type"], keys_of(change.added)))
        fresh = change.removed.filter(pc.invert(pc.is_in(theirs, ours.filter(gone))))
        orphaned = pc.and_(
            is_data_dv(added), pc.is_in(names_of(Content.DATA, added["referenced_file"]), theirs)
        )
        goes = pc.or_(pc.or_(gone, again), orphaned)
        added = concat([added.filter(pc.invert(goes)), change.added])
        removed = pa.concat_tables([removed, fresh])
    seen = pa.concat_tables([change.seen for change in changes])
    return Changes(intent=_intent(changes), added=added, removed=removed, seen=seen)


def names_of(content_type: Content | pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.Array:
    """Return one string a file: what it is and which."""
    if isinstance(content_type, Content):
        content_type = pa.chunked_array([pa.repeat(pa.scalar(int(content_type)), len(keys))])
    joined = pc.binary_join_element_wise(content_type.cast(pa.string()), keys, " ")
    return joined.combine_chunks()


def _intent(changes: Sequence[Changes]) -> Intent:
    intents = {change.intent for change in changes}
    return intents.pop() if len(intents) == 1 else Intent.OVERWRITE_FILES
