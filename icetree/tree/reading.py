"""How pure code reads what lies below a root: through a reader that is passed in."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from icetree.spec.entry.entry import MANIFESTS, POSITION, Entries, is_content, only

#: Told stats, one row a row group or an entry of a leaf, says which may matter.
Keep: TypeAlias = Callable[[pa.Table], pa.BooleanArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf manifest as the root tells of it."""

    location: str
    file_format: str
    content_type: int
    size_bytes: int
    record_count: int
    partition_spec_id: int
    snapshot_id: int | None
    sequence_number: int | None
    first_row_id: int | None
    #: The data manifest that a delete manifest is affiliated with.
    referenced_file: str | None = None
    #: What opens it where it is encrypted; never shown.
    key_metadata: bytes | None = field(default=None, repr=False)


class Reader(Protocol):
    """Reads what a root points to. Implementations cache, fetch ranges, or hold it in memory."""

    def leaf(
        self,
        leaf: Leaf,
        *,
        columns: Collection[str] | None = None,
        keep: Keep | None = None,
    ) -> Entries:
        """Return the leaf's entries with their `position`, tracking inherited.

        Entries of every status are there. `columns` narrows what is read (a column the leaf
        lacks is null); `keep` is told stats among those columns, of row groups or of entries,
        the latter with their `position`: what it does not keep may be left out. Of row groups it
        is told all, in order, with the number of their entries as `record_count`.
        """

    def blob(
        self, location: str, *, offset: int, size_bytes: int, key: bytes | None = None
    ) -> bytes:
        """Return a range of a file: the serialized bitmap of a manifest DV kept in Puffin.

        `key` is the file's key metadata where it is encrypted.
        """


def at_positions(wanted: BitMap) -> Keep:
    """Return what keeps the entries at some positions of a leaf, and row groups that have any."""
    marks = np.frombuffer(wanted.to_array(), np.uint32)

    def keep(told: pa.Table) -> pa.BooleanArray:
        if POSITION in told.schema.names:
            starts = told[POSITION].to_numpy()
            ends = starts + 1
        else:
            ends = np.cumsum(told["record_count"].to_numpy())
            starts = ends - told["record_count"].to_numpy()
        return pa.array(np.searchsorted(marks, starts) < np.searchsorted(marks, ends))

    return keep


_LEAF = {
    "location": "location",
    "file_format": "file_format",
    "content_type": "content_type",
    "file_size_in_bytes": "size_bytes",
    "record_count": "record_count",
    "partition_spec_id": "partition_spec_id",
    "snapshot_id": "snapshot_id",
    "sequence_number": "sequence_number",
    "first_row_id": "first_row_id",
    "referenced_file": "referenced_file",
    "key_metadata": "key_metadata",
}


#: The columns of a root that tell of its leaves.
LEAF_COLUMNS: Final = tuple(_LEAF)


def leaves_in(root: Entries) -> list[Leaf]:
    """Return the leaves among a root's entries, whatever their status, in order."""
    if root.num_rows == 0:
        return []
    rows = only(root.select(LEAF_COLUMNS), is_content(root, *MANIFESTS))
    columns = [rows[name].to_pylist() for name in _LEAF]
    names = _LEAF.values()
    return [Leaf(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
