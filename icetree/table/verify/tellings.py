"""What entries tell of files, each telling once, whichever snapshots share it.

Every snapshot tells of every live file, mostly in entries of leaves that others have, too. One that
tells something else of a file than a newer one does is looked at by itself.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import POSITION, Entries, concat, empty, is_live, only
from icetree.table.verify.row_texts import row_texts, sparse_texts
from icetree.tree.live import LEAF
from icetree.tree.reading import Leaf, leaves_in

#: Added to entries: the rows of the data file that a data DV is for.
TARGET_ROWS: Final = "target_rows"
#: Added to entries: the newest snapshot that tells it.
SEEN_IN: Final = "seen_in"

_Flags = npt.NDArray[np.bool_]
#: Which commit put a file where, which says nothing of the file.
_APART: Final = frozenset(
    {"status", "snapshot_id", "file_sequence_number", POSITION, LEAF, TARGET_ROWS}
)
_DIGEST_BYTES: Final = 16


class Tellings:
    """All that entries tell of files, with `TARGET_ROWS` and `SEEN_IN`."""

    def __init__(self) -> None:
        self._seen: dict[Leaf, BitMap] = {}
        self._known: set[bytes] = set()
        self._parts: list[Entries] = []

    def add(self, root: Entries, live: Entries, snapshot_id: int) -> None:
        """Take in a snapshot's live files; snapshots are to come newest first."""
        targets = pc.index_in(live["referenced_file"], one_chunk(live["location"]))
        live = live.append_column(TARGET_ROWS, live["record_count"].take(targets))
        new = only(live, pa.array(self._not_seen(root, live)))
        names = sorted(set(new.column_names) - _APART)
        fresh = np.zeros(new.num_rows, np.bool_)
        for at, text in enumerate(sparse_texts(new.select(names)).to_pylist()):
            digest = blake2b(text, digest_size=_DIGEST_BYTES).digest()
            fresh[at] = digest not in self._known
            self._known.add(digest)
        new = only(new, pa.array(fresh))
        if new.num_rows:
            seen_in = pa.repeat(pa.scalar(snapshot_id, pa.int64()), new.num_rows)
            self._parts.append(new.append_column(SEEN_IN, seen_in))

    def table(self) -> Entries:
        """Return all that was told, the newest first."""
        if self._parts:
            return concat(self._parts)
        none = empty()
        for name in (TARGET_ROWS, SEEN_IN):
            none = none.append_column(name, pa.array([], pa.int64()))
        return none

    def _not_seen(self, root: Entries, live: Entries) -> _Flags:
        """Tell which entries stand in the root, or in no leaf that was looked at before."""
        new = np.ones(live.num_rows, np.bool_)
        leaves = leaves_in(only(root, is_live(root)))
        names = pa.array([leaf.location for leaf in leaves], pa.string())
        codes = pc.fill_null(pc.index_in(live[LEAF], value_set=names), -1).to_numpy()
        positions = pc.fill_null(live[POSITION], -1).to_numpy()
        # Entries of one leaf stand side by side.
        cuts = np.flatnonzero(np.diff(codes)) + 1
        for run in np.split(np.arange(live.num_rows), cuts):
            if len(run) == 0 or codes[run[0]] < 0:
                continue
            here = BitMap(positions[run].astype(np.uint32))
            seen = self._seen.setdefault(leaves[codes[run[0]]], BitMap())
            if seen:
                new[run] = ~np.isin(positions[run], np.array(seen.to_array()))
            seen |= here
        return new


def by_file(tellings: Entries) -> list[Entries]:
    """Return what is told of each file of rows, a table for each file and way to open it."""
    names = ("location", "content_type", "file_format", "key_metadata")
    keys = row_texts([tellings[name] for name in names])
    codes = keys.dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order], append=-1)) + 1
    sorted_tellings = tellings.take(pa.array(order))
    starts = [0, *ends[:-1].tolist()] if len(ends) else []
    return [
        sorted_tellings.slice(start, end - start)
        for start, end in zip(starts, ends.tolist(), strict=True)
    ]
