"""Putting new leaves in the place of old ones: a matter of the root alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Entries,
    Status,
    concat,
    is_content,
    with_columns,
)
from icetree.tree.live import live_in_leaf
from icetree.tree.reading import Leaf, Reader


def existing_in(leaf: Leaf, removed: BitMap | None, reader: Reader) -> Entries:
    """Return what is left of a leaf, as entries of another: EXISTING, with all their tracking."""
    return with_columns(live_in_leaf(leaf, removed, reader), status=int(Status.EXISTING))


def exchanged(root: Entries, heirs: Mapping[str, str | None], new: Iterable[Entries]) -> Entries:
    """Return the root with entries of new leaves where the first old one stood.

    `heirs` has the old leaves, and for each the new one that all of its entries went to, None where
    they went to several. Delete manifests affiliated with it follow, or are of no leaf any more.
    The manifest DVs of old leaves go with them.
    """
    names = pa.array(list(heirs), pa.string())
    old = pc.and_(is_content(root, *MANIFESTS), pc.is_in(root["location"], names))
    refers = pc.is_in(root["referenced_file"], names)
    marks = pc.and_(is_content(root, Content.MANIFEST_DV), refers)
    at = pc.index(old, pa.scalar(True)).as_py()
    heir = pa.array(list(heirs.values()), pa.string()).take(
        pc.index_in(root["referenced_file"].combine_chunks(), value_set=names)
    )
    affiliated = pc.and_(is_content(root, Content.DELETE_MANIFEST), refers)
    root = with_columns(root, referenced_file=pc.if_else(affiliated, heir, root["referenced_file"]))
    stays = pc.invert(pc.or_(old, marks))
    before, after = stays.slice(0, at), stays.slice(at)
    return concat([root.slice(0, at).filter(before), *new, root.slice(at).filter(after)])
