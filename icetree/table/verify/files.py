"""Are the files there that a table's trees speak of, and as large as they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable, NotFound
from icetree.spec.entry.entry import Entries
from icetree.spec.location import prefix_of
from icetree.spec.locations import absolute_array
from icetree.store.base import Store
from icetree.surroundings import new_pool
from icetree.table.verify.findings import Gathering, Kind

#: From so many files on, listing the table's folder takes fewer requests than asking for each.
LISTED_FROM: Final = 200
_AT_ONCE: Final = 16

#: What is known of a file that some tree names.
FILES: Final = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("content_type", pa.int32()),
        pa.field("snapshot_id", pa.int64()),
    ]
)


class Referenced:
    """Every file that some tree names, once for each size it is said to have."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._keys: pa.Array = pa.array([], pa.string())

    def add(self, entries: Entries, snapshot_id: int) -> None:
        """Take in the entries of one snapshot; those without a location are left out."""
        named = entries.select(["location", "file_size_in_bytes", "content_type"])
        named = named.filter(pc.is_valid(named["location"]))
        if named.num_rows == 0:
            return
        size = pc.fill_null(named["file_size_in_bytes"].cast(pa.string()), "")
        keys = pc.binary_join_element_wise(named["location"], size, "\n").combine_chunks()
        first = pc.equal(pc.index_in(keys, keys), pa.array(range(len(keys)), pa.int32()))
        new = pc.and_(first, pc.invert(pc.is_in(keys, value_set=self._keys)))
        kept = named.filter(new).rename_columns(["location", "size", "content_type"])
        if kept.num_rows:
            ids = pa.repeat(pa.scalar(snapshot_id, pa.int64()), kept.num_rows)
            self._parts.append(kept.append_column("snapshot_id", ids))
            self._keys = pa.concat_arrays([self._keys, keys.filter(new)])

    def table(self) -> pa.Table:
        """Return the files, as `FILES` tells."""
        return pa.concat_tables([FILES.empty_table(), *(each.cast(FILES) for each in self._parts)])


def check_files(
    files: pa.Table,
    store: Store,
    table_location: str,
    found: Gathering,
    *,
    progress: Callable[[str, int, int], None],
) -> None:
    """Report each file (`FILES`) that is missing or not as large as its entry says."""
    places = absolute_array(files["location"], table_location)
    sizes = _listed(places, store, table_location)
    if sizes is None:
        sizes, refused = _asked(places, store, progress)
    else:
        # A listing may lag behind: what it lacks is asked for before anything is said.
        unseen = pc.is_null(sizes)
        asked, refused = _asked(places.filter(unseen), store, progress)
        sizes = pc.replace_with_mask(sizes, unseen, asked)
    files = files.append_column("real", sizes).append_column("place", places)
    for row in files.filter(pc.is_null(sizes)).to_pylist():
        rule = refused.get(row["place"])
        kind = Kind.MISSING_FILE if rule is None else Kind.UNREADABLE
        found.add(kind, row["location"], rule or "is missing", snapshot_id=row["snapshot_id"])
    differs = pc.fill_null(pc.not_equal(files["real"], files["size"]), False)
    for row in files.filter(differs).to_pylist():
        rule = f"has {row['real']} bytes, its entry says {row['size']}"
        found.add(Kind.WRONG_SIZE, row["location"], rule, snapshot_id=row["snapshot_id"])


def _listed(places: pa.Array, store: Store, table_location: str) -> pa.Array | None:
    """Return the sizes that a listing of the table's folder tells; None where it does not pay."""
    under = pc.sum(pc.starts_with(places, prefix_of(table_location))).as_py() or 0
    if under < LISTED_FROM:
        return None
    names, sizes = [], []
    for each in store.list(table_location):
        names.append(each.location)
        sizes.append(each.size_bytes)
    at = pc.index_in(places, value_set=pa.array(names, pa.string()))
    return pa.array(sizes, pa.int64()).take(at)


def _asked(
    places: pa.Array, store: Store, progress: Callable[[str, int, int], None]
) -> tuple[pa.Array, dict[str, str]]:
    """Return the sizes, null for what is not there, and why some cannot be asked for."""
    refused: dict[str, str] = {}

    def size(place: str) -> int | None:
        try:
            return store.size(place)
        except CorruptTable as error:
            refused[place] = error.rule
        except NotFound:
            pass
        return None

    sizes = []
    names = places.to_pylist()
    with new_pool(_AT_ONCE, "icetree-verify") as pool:
        for done, each in enumerate(pool.map(size, names), start=1):
            sizes.append(each)
            progress("files", done, len(names))
    return pa.array(sizes, pa.int64()), refused
