"""All live files of a snapshot, wherever in its tree they are tracked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import (
    MANIFESTS,
    POSITION,
    Content,
    Entries,
    concat,
    is_content,
    is_live,
    only,
)
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.reading import Leaf, Reader, leaves_in

#: Added to entries: the leaf they stand in, null for the root.
LEAF = "leaf"


def live_files(
    root: Entries,
    reader: Reader,
    *,
    root_file: str = "root",
    columns: Collection[str] | None = None,
) -> Entries:
    """Return every live data file, data DV and equality delete, with `leaf` and `position`."""
    return concat(live_parts(root, reader, root_file=root_file, columns=columns))


def live_parts(
    root: Entries,
    reader: Reader,
    *,
    root_file: str = "root",
    columns: Collection[str] | None = None,
) -> Iterator[Entries]:
    """Yield the live files of the root, then of each live leaf."""
    manifest_dvs = read_manifest_dvs(root, reader, root_file=root_file)
    here = only(root, is_live(root))
    files = only(here, pc.invert(is_content(here, *MANIFESTS, Content.MANIFEST_DV)))
    if columns is not None:
        files = files.select([name for name in files.schema.names if name in {*columns, "status"}])
    yield placed(files, leaf=None)
    for leaf in leaves_in(here):
        entries = live_in_leaf(leaf, manifest_dvs.get(leaf.location), reader, columns)
        yield placed(entries, leaf=leaf.location)


def live_in_leaf(
    leaf: Leaf, removed: BitMap | None, reader: Reader, columns: Collection[str] | None = None
) -> Entries:
    """Return the entries of a leaf that are neither DELETED nor removed by a manifest DV."""
    wanted = None if columns is None else {*columns, "status", POSITION}
    entries = reader.leaf(leaf, columns=wanted)
    return only(entries, is_live_in(leaf, entries, removed))


def is_live_in(
    leaf: Leaf, entries: Entries, removed: BitMap | None
) -> pa.BooleanArray | pa.ChunkedArray:
    """Tell which entries of a leaf are neither DELETED nor removed by its manifest DV.

    Not every entry of the leaf need be there: each says its `position`.
    """
    live = is_live(entries)
    if not removed:
        return live
    positions = entries[POSITION].combine_chunks()
    if entries.num_rows and positions[entries.num_rows - 1].as_py() >= leaf.record_count:
        raise CorruptTable(leaf.location, f"more entries than the root says: {leaf.record_count}")
    gone = bitmap.mask(removed, leaf.record_count, file=leaf.location)
    return pc.and_not(live, gone.take(positions))


def placed(entries: Entries, *, leaf: str | None) -> Entries:
    """Return entries with where they are tracked: `position`, null in a root, and `leaf`."""
    if leaf is None:
        entries = entries.append_column(POSITION, pa.nulls(entries.num_rows, pa.int64()))
    return entries.append_column(LEAF, pa.repeat(pa.scalar(leaf, pa.string()), entries.num_rows))
