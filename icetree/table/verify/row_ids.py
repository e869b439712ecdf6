"""Is every live row of a snapshot another row, by its id: where files hold ids of their own.

Ids that follow from where a row stands are ranges, which the tree alone shows to be apart. Those
that files hold are read, of live rows alone, and kept as bitmaps: two bytes for a row at most where
ids are given out densely, as they are, and next to nothing for those that follow each other. What
snapshots share is read once.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icetree.codec import bitmap
from icetree.errors import CorruptTable, NotFound, Unsupported
from icetree.spec.location import stored_form
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS
from icetree.table.verify.findings import Gathering, Kind
from icetree.table.verify.standing import Standing, Standings

_ROW_ID: Final = METADATA_COLUMNS["_row_id"]
_MOST: Final = np.iinfo(np.int64).max


class RowIds:
    """Checks one snapshot after the other, newest first."""

    def __init__(self, standings: Standings, numbered: Collection[str], found: Gathering) -> None:
        self._standings = standings
        self._numbered = pa.array(sorted(numbered), pa.string())
        self._found = found
        #: Ids of live rows, by what they are read from.
        self._ids: dict[bytes, BitMap64] = {}
        self._before: Standing | None = None

    def check(self, snapshot: Snapshot) -> None:
        """Report a row id that two live rows of a snapshot have."""
        standing = self._standings.of(snapshot)
        if standing is None:
            return
        # Any two files that stand together in a newer snapshot were held against each other there.
        if self._before is None or standing.not_in(self._before):
            self._check(standing, snapshot)
        self._before = standing

    def _check(self, standing: Standing, snapshot: Snapshot) -> None:
        says = pc.is_in(standing.column("location"), value_set=self._numbered)
        numbers = pc.indices_nonzero(says).to_pylist()
        if not numbers:
            return
        kept = set(standing.keys.to_pylist())
        self._ids = {key: ids for key, ids in self._ids.items() if key in kept}
        told = self._read(standing, numbers, snapshot)
        sure = self._union(standing, told, snapshot)
        implied = _Implied(standing, pc.invert(says))
        shared = implied.among(sure)
        if len(shared) == 0:
            return
        # Rows that were changed have left their old file, or should have.
        for other, both in self._live(standing, implied.holding(shared), shared).items():
            if both:
                one = next(number for number, mine in told.items() if mine & both)
                self._tell(standing, one, other, both, snapshot)

    def _union(self, standing: Standing, told: dict[int, BitMap64], snapshot: Snapshot) -> BitMap64:
        """Return the ids of all files, and report one that two of them have."""
        union = BitMap64.union(*told.values()) if told else BitMap64()
        if len(union) == sum(map(len, told.values())):
            return union
        so_far = BitMap64()
        for number, ids in told.items():
            if both := so_far & ids:
                one = next(each for each, mine in told.items() if mine & both)
                self._tell(standing, one, number, both, snapshot)
            so_far |= ids
        return union

    def _tell(
        self, standing: Standing, one: int, other: int, both: BitMap64, snapshot: Snapshot
    ) -> None:
        names = standing.column("location")
        rule = f"row id {both[0]} is that of a live row of {names[one]} too"
        id = snapshot.snapshot_id
        self._found.add(Kind.ROW_LINEAGE, names[other].as_py(), rule, snapshot_id=id)

    # --- reading ---------------------------------------------------------------------------

    def _read(
        self, standing: Standing, numbers: list[int], snapshot: Snapshot
    ) -> dict[int, BitMap64]:
        """Return the ids of the live rows of files, of those that can be read."""
        keys = [standing.keys[number].as_py() for number in numbers]
        missing = [n for n, key in zip(numbers, keys, strict=True) if key not in self._ids]
        if self._take(standing, missing, snapshot) is not None:
            for number in missing:
                error = self._take(standing, [number], snapshot)
                if error is not None:
                    self._ids[standing.keys[number].as_py()] = BitMap64()
                    self._unread(error, snapshot)
        return {n: self._ids[key] for n, key in zip(numbers, keys, strict=True)}

    def _take(self, standing: Standing, numbers: list[int], snapshot: Snapshot) -> Exception | None:
        """Take in the ids of live rows of files; return why one of these cannot be read."""
        found: dict[int, list[npt.NDArray[np.int64]]] = {number: [] for number in numbers}
        schema = self._standings.metadata.schema()
        try:
            for number, batch in self._standings.rows(standing, numbers, _ROW_ID, schema=schema):
                ids = batch.column(0).drop_null()
                found[number].append(ids.filter(pc.greater_equal(ids, 0)).to_numpy())
        except (CorruptTable, NotFound, Unsupported) as error:
            return error
        for number, parts in found.items():
            mine, twice = _bitmap(parts)
            self._ids[standing.keys[number].as_py()] = mine
            if twice is not None:
                name = standing.column("location")[number].as_py()
                rule = f"two of its live rows have row id {twice}"
                id = snapshot.snapshot_id
                self._found.add(Kind.ROW_LINEAGE, name, rule, snapshot_id=id)
        return None

    def _live(
        self, standing: Standing, numbers: list[int], ids: npt.NDArray[np.int64]
    ) -> dict[int, BitMap64]:
        """Return which of the ids live rows of files have, of those that can be read."""
        found = {number: BitMap64() for number in numbers}
        schema, wanted = self._standings.metadata.schema(), pa.array(ids)
        # Of a file that cannot be read, it was told where it was read whole.
        with suppress(CorruptTable, NotFound, Unsupported):
            for number, batch in self._standings.rows(standing, numbers, _ROW_ID, schema=schema):
                column = batch.column(0)
                mine = column.filter(pc.is_in(column, value_set=wanted))
                found[number] |= BitMap64(mine.to_pylist())
        return found

    def _unread(self, error: Exception, snapshot: Snapshot) -> None:
        """Report what a scan comes upon, unless that was told of where the file was read."""
        if not isinstance(error, CorruptTable):
            return
        file = stored_form(error.file, self._standings.metadata.location)
        if file not in self._found.files(*Kind):
            id = snapshot.snapshot_id
            self._found.add(Kind.UNREADABLE, file, error.rule, snapshot_id=id)


def _bitmap(parts: Iterable[npt.NDArray[np.int64]]) -> tuple[BitMap64, int | None]:
    """Return ids as a bitmap, and one that is there twice."""
    made, twice = BitMap64(), None
    for part in parts:
        ids, counts = np.unique(part, return_counts=True)
        mine = BitMap64(array("Q", ids.astype(np.uint64).tobytes()))
        both = made & mine
        if twice is None and (len(ids) < len(part) or both):
            twice = both[0] if both else int(ids[counts > 1][0])
        made |= mine
    made.run_optimize()
    return made, twice


class _Implied:
    """Row ids that follow from where rows stand: a range for each data file."""

    def __init__(self, standing: Standing, which: pa.BooleanArray) -> None:
        first, count = standing.column("first_row_id"), standing.column("record_count")
        has = pc.and_(which, pc.and_(pc.is_valid(first), pc.greater(count, 0)))
        numbers = pc.indices_nonzero(has).to_numpy()
        starts = first.take(pa.array(numbers)).to_numpy()
        order = np.argsort(starts)
        self._numbers, self._starts = numbers[order], starts[order]
        # What entries say may be any number, and is nothing to make as many of.
        counts = count.take(pa.array(numbers)).to_numpy()[order]
        ends = self._starts + np.minimum(counts, _MOST - self._starts)
        self._ends = np.maximum.accumulate(ends)

    def among(self, ids: BitMap64) -> npt.NDArray[np.int64]:
        """Return the ids that some range has, too."""
        known: npt.NDArray[np.int64] = bitmap.to_array(ids).to_numpy()
        at = np.searchsorted(self._starts, known, side="right") - 1
        return known[at >= 0][known[at >= 0] < self._ends[at[at >= 0]]]

    def holding(self, ids: npt.NDArray[np.int64]) -> list[int]:
        """Return the files whose ranges hold the ids."""
        at = np.unique(np.searchsorted(self._starts, ids, side="right") - 1)
        found: list[int] = self._numbers[at].tolist()
        return found
