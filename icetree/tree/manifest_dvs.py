"""The manifest DVs of a root: which entries of which leaf are gone, and which went just now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap, puffin
from icetree.errors import CorruptTable
from icetree.spec.arrays import one_chunk, without
from icetree.spec.entry.entry import MANIFESTS, Content, Entries, Status, is_content, is_live, only
from icetree.tree.reading import Reader

#: The statuses of an entry that counts.
LIVE: Final = (Status.EXISTING, Status.ADDED)

_COLUMNS: Final = (
    "location",
    "status",
    "dv_offset",
    "dv_size_in_bytes",
    "dv_inline_content",
    "dv_added_positions",
    "record_count",
    "referenced_file",
    "key_metadata",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ManifestDV:
    """A manifest DV as the root tells of it; field names are the in-memory column names."""

    location: str | None
    status: int
    dv_offset: int | None
    dv_size_in_bytes: int | None
    dv_inline_content: bytes | None
    dv_added_positions: bytes | None
    record_count: int
    referenced_file: str
    key_metadata: bytes | None = field(repr=False)


def read_manifest_dvs(
    root: Entries, reader: Reader, *, root_file: str = "root"
) -> dict[str, BitMap]:
    """Return the removed positions of each leaf that has a live manifest DV.

    A leaf that no manifest DV names is absent. What breaks the format is a `CorruptTable`: two
    such manifest DVs on one leaf, one that refers to no live leaf of the root, a position past
    the leaf's entries, a cardinality that is not the entry's `record_count`.
    """
    found = _by_leaf(root, LIVE, root_file)
    sizes = _leaf_sizes(root) if found else {}
    return {
        leaf: _positions(entry, reader, sizes, root_file=root_file) for leaf, entry in found.items()
    }


def require_owners(root: Entries, *, root_file: str = "root") -> None:
    """Raise `CorruptTable` for a live manifest DV of no live leaf: what it removes would be back."""
    here = only(
        root.select(["content_type", "status", "location", "referenced_file"]), is_live(root)
    )
    leaves = one_chunk(here["location"].filter(is_content(here, *MANIFESTS)))
    owners = one_chunk(here["referenced_file"].filter(is_content(here, Content.MANIFEST_DV)))
    for leaf in without(owners, leaves)[:1].to_pylist():
        raise CorruptTable(root_file, f"a manifest DV refers to {leaf}, no live leaf of the root")


def added_positions(root: Entries, reader: Reader, *, root_file: str = "root") -> dict[str, BitMap]:
    """Return the positions that this snapshot's manifest DVs removed, by leaf.

    The ADDED manifest DV says so itself (`added_positions`); where it does not, the change is
    what it has more than the DELETED one on the same leaf, or all of it where there is none.
    A manifest DV never gives an entry back: that is a `CorruptTable`.
    """
    added = _by_leaf(root, (Status.ADDED,), root_file)
    before = _by_leaf(root, (Status.DELETED,), root_file)
    if not added and not before:
        return {}
    sizes = _leaf_sizes(root)
    for leaf in before.keys() - added.keys():
        if leaf in sizes:
            raise CorruptTable(
                root_file, f"the manifest DV on leaf {leaf} is DELETED and nothing takes its place"
            )
    return {
        leaf: _change(entry, before.get(leaf), reader, sizes, root_file=root_file)
        for leaf, entry in added.items()
    }


def removed_before(root: Entries, reader: Reader, leaf: str, *, root_file: str = "root") -> BitMap:
    """Return the positions of the manifest DV that this snapshot took away from a leaf."""
    found = _by_leaf(root, (Status.DELETED,), root_file).get(leaf)
    return BitMap() if found is None else _full(found, reader, root_file=root_file)


def loosened(root: Entries) -> Entries:
    """Return the root with no bounds called tight of a leaf that a manifest DV removes from.

    They stay as they were, and what made them so may be gone.
    """
    vectors = is_content(root, Content.MANIFEST_DV)
    if not one_chunk(vectors).true_count:
        return root
    vectors = pc.and_(vectors, is_live(root))
    worn = pc.and_(
        is_content(root, *MANIFESTS),
        pc.is_in(root["location"], value_set=one_chunk(root["referenced_file"].filter(vectors))),
    )
    columns = {
        name: pc.and_not(column, worn) if name.endswith(":tight") else column
        for name, column in zip(root.schema.names, root.itercolumns(), strict=True)
    }
    return pa.table(columns)


def _by_leaf(root: Entries, status: Collection[Status], root_file: str) -> dict[str, _ManifestDV]:
    vectors = is_content(root, Content.MANIFEST_DV)
    # Most roots have none, and what follows takes longer than all else that is asked of those.
    if not pc.any(vectors).as_py():
        return {}
    wanted = pc.and_(vectors, pc.is_in(root["status"], pa.array(sorted(status), pa.int32())))
    found: dict[str, _ManifestDV] = {}
    for row in only(root.select(list(_COLUMNS)), wanted).to_pylist():
        leaf = row["referenced_file"]
        if leaf is None:
            raise CorruptTable(
                root_file, "a manifest DV refers to no leaf: referenced_file is null"
            )
        if leaf in found:
            statuses = " or ".join(each.name for each in status)
            raise CorruptTable(root_file, f"leaf {leaf} has two manifest DVs that are {statuses}")
        found[leaf] = _ManifestDV(**row)
    return found


def _leaf_sizes(root: Entries) -> dict[str, int]:
    live = pc.and_(is_content(root, *MANIFESTS), is_live(root))
    rows = only(root.select(["location", "record_count"]), live)
    return dict(zip(rows["location"].to_pylist(), rows["record_count"].to_pylist(), strict=True))


def _positions(
    entry: _ManifestDV, reader: Reader, sizes: dict[str, int], *, root_file: str
) -> BitMap:
    leaf = entry.referenced_file
    if leaf not in sizes:
        raise CorruptTable(root_file, f"a manifest DV refers to {leaf}, no live leaf of the root")
    found = _full(entry, reader, root_file=root_file)
    if found and found.max() >= sizes[leaf]:
        raise CorruptTable(
            root_file,
            f"the manifest DV on leaf {leaf} removes position {found.max()} of {sizes[leaf]} entries",
        )
    return found


def _full(entry: _ManifestDV, reader: Reader, *, root_file: str) -> BitMap:
    leaf = entry.referenced_file
    if entry.dv_inline_content is not None:
        found = bitmap.decode(entry.dv_inline_content, file=root_file)
    else:
        found = _stored(entry, reader, root_file=root_file)
    if len(found) != entry.record_count:
        raise CorruptTable(
            root_file,
            f"the manifest DV on leaf {leaf} has {len(found)} positions, "
            f"its entry says {entry.record_count}",
        )
    return found


def _stored(entry: _ManifestDV, reader: Reader, *, root_file: str) -> BitMap:
    offset, size_bytes = entry.dv_offset, entry.dv_size_in_bytes
    if entry.location is None or offset is None or size_bytes is None:
        raise CorruptTable(
            root_file,
            f"the manifest DV on leaf {entry.referenced_file} has neither inline content "
            "nor a location, offset and size",
        )
    blob = reader.blob(entry.location, offset=offset, size_bytes=size_bytes, key=entry.key_metadata)
    return bitmap.narrow(puffin.decode_dv(blob, file=entry.location), file=entry.location)


def _change(
    entry: _ManifestDV,
    before: _ManifestDV | None,
    reader: Reader,
    sizes: dict[str, int],
    *,
    root_file: str,
) -> BitMap:
    leaf = entry.referenced_file
    full = _positions(entry, reader, sizes, root_file=root_file)
    if entry.dv_added_positions is not None:
        change = bitmap.decode(entry.dv_added_positions, file=root_file)
        if not change <= full:
            raise CorruptTable(
                root_file, f"added_positions of the manifest DV on leaf {leaf} are not all in it"
            )
        return change
    if before is None:
        return full
    old = _full(before, reader, root_file=root_file)
    if not old <= full:
        raise CorruptTable(
            root_file, f"the manifest DV on leaf {leaf} gives back entries its predecessor removed"
        )
    return full - old
