"""Several changes of one transaction as one change, since a commit makes one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry import Entries, concat, keys_of
from icetree.tree.changes import Changes, Intent


def merge(changes: Sequence[Changes]) -> Changes:
    """Return what the changes come to, one after the other.

    What one adds and a later one removes leaves no trace, and of two DVs for a data file the
    later one stands.
    """
    if len(changes) == 1:
        return changes[0]
    added, removed = changes[0].added, changes[0].removed
    for change in changes[1:]:
        gone = _named(added, _names(change.removed["content_type"], change.removed["key"]))
        again = _named(added, _names(change.added["content_type"], keys_of(change.added)))
        undone = _names(added["content_type"], keys_of(added)).filter(gone)
        theirs = _names(change.removed["content_type"], change.removed["key"])
        fresh = change.removed.filter(pc.invert(pc.is_in(theirs, undone)))
        added = concat([added.filter(pc.invert(pc.or_(gone, again))), change.added])
        removed = pa.concat_tables([removed, fresh])
    seen = pa.concat_tables([change.seen for change in changes])
    return Changes(intent=_intent(changes), added=added, removed=removed, seen=seen)


def _names(content_type: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.Array:
    """Return one string a file: what it is and which."""
    joined = pc.binary_join_element_wise(content_type.cast(pa.string()), keys, " ")
    return joined.combine_chunks()


def _named(entries: Entries, names: pa.Array) -> pa.Array:
    return pc.is_in(_names(entries["content_type"], keys_of(entries)), names)


def _intent(changes: Sequence[Changes]) -> Intent:
    intents = {change.intent for change in changes}
    return intents.pop() if len(intents) == 1 else Intent.OVERWRITE_FILES
