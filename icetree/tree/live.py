"""All live files of a snapshot, wherever in its tree they are tracked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.spec.entry import MANIFESTS, POSITION, Content, Entries, concat, is_content, is_live
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.tree.vectors import manifest_vectors

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
    vectors = manifest_vectors(root, reader, root_file=root_file)
    here = root.filter(is_live(root))
    files = here.filter(pc.invert(is_content(here, *MANIFESTS, Content.MANIFEST_DV)))
    files = files.append_column(POSITION, pa.nulls(files.num_rows, pa.int64()))
    yield _with_leaf(files if columns is None else files.select(_present(files, columns)), None)
    for leaf in leaves_in(here):
        entries = live_in_leaf(leaf, vectors.get(leaf.location), reader, columns)
        yield _with_leaf(entries, leaf.location)


def live_in_leaf(
    leaf: Leaf, removed: BitMap | None, reader: Reader, columns: Collection[str] | None = None
) -> Entries:
    """Return the entries of a leaf that are neither DELETED nor removed by a manifest DV."""
    wanted = None if columns is None else {*columns, "status", POSITION}
    entries = reader.leaf(leaf, columns=wanted)
    alive = is_live(entries)
    if removed:
        gone = bitmap.mask(removed, leaf.record_count, file=leaf.location)
        alive = pc.and_not(alive, gone.take(entries[POSITION].combine_chunks()))
    return entries.filter(alive)


def _present(entries: Entries, columns: Collection[str]) -> list[str]:
    wanted = {*columns, "status", POSITION}
    return [name for name in entries.schema.names if name in wanted]


def _with_leaf(entries: Entries, leaf: str | None) -> Entries:
    return entries.append_column(LEAF, pa.repeat(pa.scalar(leaf, pa.string()), entries.num_rows))
