"""Is every live row of a snapshot another row, by its id: where files hold ids of their own.

Ids that follow from where a row stands are ranges, which the tree alone shows to be apart. Those
that files hold are read, of live rows alone, and kept as bitmaps: two bytes for a row at most where
ids are given out densely, as they are, and next to nothing for those that follow each other. Of a
snapshot only what the one after it does not have is read, and held against all else.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterator
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
from icetree.table.verify.standing import Numbers, Standing, Standings

_ROW_ID: Final = METADATA_COLUMNS["_row_id"]
#: So many ids are kept of files that a snapshot lacks.
_LEFT_ROWS: Final = 32 * 1024 * 1024
_MOST: Final = np.iinfo(np.int64).max


class RowIds:
    """Checks one snapshot after the other, newest first."""

    def __init__(self, standings: Standings, numbered: Collection[str], found: Gathering) -> None:
        self._standings = standings
        self._numbered = pa.array(sorted(numbered), pa.string())
        self._found = found
        #: Ids of live rows, by what they are read from.
        self._ids: dict[bytes, BitMap64] = {}
        #: The same of files that only newer snapshots have, the latest last.
        self._left: OrderedDict[bytes, BitMap64] = OrderedDict()
        self._left_rows = 0
        #: Those that files of the snapshot before hold themselves.
        self._held = BitMap64()
        self._before: _Look | None = None
        #: Whether two rows of some snapshot have one id: older ones may share them.
        self._clashes = False

    def check(self, snapshot: Snapshot) -> None:
        """Report a row id that two live rows of a snapshot have."""
        standing = self._standings.of(snapshot)
        if standing is None:
            return
        look = _Look(standing, self._numbered)
        # Any two files that stand together in a newer snapshot were held against each other there.
        new = standing.not_in(None if self._before is None else self._before.standing)
        if self._before is not None:
            self._leave(self._before, self._before.standing.not_in(standing))
        if len(new):
            self._clashes = not self._are_apart(look, new, snapshot) or self._clashes
            if self._clashes:
                self._report(look, snapshot)
        self._before = look

    def _leave(self, before: _Look, gone: Numbers) -> None:
        """Put files aside that do not stand in the next snapshot, but may in one of another branch."""
        for number in gone.tolist():
            key = before.standing.key(number)
            ids = self._ids.pop(key, None)
            if ids is None:
                continue
            if before.says[number]:
                self._held -= ids
            self._left[key] = ids
            self._left_rows += len(ids)
        while self._left_rows > _LEFT_ROWS:
            _, dropped = self._left.popitem(last=False)
            self._left_rows -= len(dropped)

    def _are_apart(self, look: _Look, new: Numbers, snapshot: Snapshot) -> bool:
        """Take in the files that are new; tell whether no row of them has the id of another."""
        standing, implied = look.standing, look.implied()
        are_apart = True
        beside: set[int] = set()
        numbered = new[look.says[new]].tolist()
        self._require(standing, numbered, snapshot)
        for ids in (self._ids[standing.key(number)] for number in numbered):
            are_apart = are_apart and not self._held.intersect(ids)
            self._held |= ids
            beside |= {*implied.holding(ids)}
        if self._held:
            for number, first, end in implied.ranges(new):
                if self._held.range_cardinality(first, end):
                    beside.add(number)
        # Rows that were changed have left their old file, or should have.
        self._require(standing, sorted(beside), None)
        lived = (self._ids[standing.key(number)] for number in beside)
        return are_apart and not any(map(self._held.intersect, lived))

    # --- telling ---------------------------------------------------------------------------

    def _report(self, look: _Look, snapshot: Snapshot) -> None:
        """Report ids that files of a snapshot share, a finding for each file."""
        standing = look.standing
        told = {
            number: self._ids[standing.key(number)] for number in np.flatnonzero(look.says).tolist()
        }
        sure = BitMap64()
        for number, ids in told.items():
            if both := sure & ids:
                one = next(each for each, mine in told.items() if mine & both)
                self._tell(standing, one, number, both, snapshot)
            sure |= ids
        others = look.implied().holding(sure)
        self._require(standing, others, None)
        for other in others:
            if both := sure & self._ids[standing.key(other)]:
                one = next(number for number, mine in told.items() if mine & both)
                self._tell(standing, one, other, both, snapshot)

    def _tell(
        self, standing: Standing, one: int, other: int, both: BitMap64, snapshot: Snapshot
    ) -> None:
        names = standing.column("location")
        rule = f"row id {both[0]} is that of a live row of {names[one]} too"
        id = snapshot.snapshot_id
        self._found.add(Kind.ROW_LINEAGE, names[other].as_py(), rule, snapshot_id=id)

    # --- reading ---------------------------------------------------------------------------

    def _require(self, standing: Standing, numbers: list[int], snapshot: Snapshot | None) -> None:
        """Have the ids of the live rows of files, none of one that cannot be read.

        What is wrong with files is reported of a snapshot, where one is given.
        """
        missing = [number for number in numbers if not self._knows(standing.key(number))]
        if not missing or self._take(standing, missing, snapshot) is None:
            return
        for number in missing:
            error = self._take(standing, [number], snapshot)
            if error is not None:
                self._ids[standing.key(number)] = BitMap64()
                self._unread(error, snapshot)

    def _knows(self, key: bytes) -> bool:
        if (ids := self._left.pop(key, None)) is not None:
            self._left_rows -= len(ids)
            self._ids[key] = ids
        return key in self._ids

    def _take(
        self, standing: Standing, numbers: list[int], snapshot: Snapshot | None
    ) -> Exception | None:
        """Take in the ids of live rows of files; return why one of these cannot be read."""
        found = {number: _Gathered() for number in numbers}
        schema = self._standings.metadata.schema()
        try:
            for number, batch in self._standings.rows(standing, numbers, _ROW_ID, schema=schema):
                ids = batch.column(0).drop_null()
                found[number].add(ids.filter(pc.greater_equal(ids, 0)).to_numpy())
        except (CorruptTable, NotFound, Unsupported) as error:
            return error
        for number, gathered in found.items():
            gathered.ids.run_optimize()
            self._ids[standing.key(number)] = gathered.ids
            if gathered.twice is not None and snapshot is not None:
                name = standing.column("location")[number].as_py()
                rule = f"two of its live rows have row id {gathered.twice}"
                id = snapshot.snapshot_id
                self._found.add(Kind.ROW_LINEAGE, name, rule, snapshot_id=id)
        return None

    def _unread(self, error: Exception, snapshot: Snapshot | None) -> None:
        """Report what a scan comes upon, unless that was told of where the file was read."""
        if not isinstance(error, CorruptTable) or snapshot is None:
            return
        file = stored_form(error.file, self._standings.metadata.location)
        if file not in self._found.files(*Kind):
            id = snapshot.snapshot_id
            self._found.add(Kind.UNREADABLE, file, error.rule, snapshot_id=id)


class _Gathered:
    """Ids of rows, and one that is there twice."""

    def __init__(self) -> None:
        self.ids = BitMap64()
        self.twice: int | None = None

    def add(self, part: Numbers) -> None:
        """Take in ids."""
        ids, counts = np.unique(part, return_counts=True)
        mine = BitMap64(array("Q", ids.astype(np.uint64).tobytes()))
        both = self.ids & mine
        if self.twice is None and (len(ids) < len(part) or both):
            self.twice = both[0] if both else int(ids[counts > 1][0])
        self.ids |= mine


class _Look:
    """A snapshot's files: those that hold ids, and what follows for the rows of others."""

    def __init__(self, standing: Standing, names: pa.Array) -> None:
        self.standing = standing
        says = pc.is_in(standing.column("location"), value_set=names)
        #: Of which files it is known that they hold ids.
        self.says: npt.NDArray[np.bool_] = says.to_numpy(zero_copy_only=False)

    def implied(self) -> _Implied:
        """Return the ids of rows whose files hold none."""
        return _Implied(self.standing, pa.array(~self.says))


class _Implied:
    """Row ids that follow from where rows stand: a range for each data file."""

    def __init__(self, standing: Standing, which: pa.BooleanArray) -> None:
        first, count = standing.column("first_row_id"), standing.column("record_count")
        has = pc.and_(which, pc.and_(pc.is_valid(first), pc.greater(count, 0)))
        numbers = pc.indices_nonzero(has).to_numpy().astype(np.int64)
        starts = first.take(pa.array(numbers)).to_numpy()
        order = np.argsort(starts)
        self._numbers, self._starts = numbers[order], starts[order]
        # What entries say may be any number, and is nothing to make as many of.
        counts = count.take(pa.array(numbers)).to_numpy()[order]
        self._ends = self._starts + np.minimum(counts, _MOST - self._starts)

    def holding(self, ids: BitMap64) -> list[int]:
        """Return the files whose ranges hold some of the ids."""
        known: Numbers = bitmap.to_array(ids).to_numpy()
        at = np.searchsorted(self._starts, known, side="right") - 1
        known, at = known[at >= 0], at[at >= 0]
        found: list[int] = self._numbers[np.unique(at[known < self._ends[at]])].tolist()
        return found

    def ranges(self, numbers: Numbers) -> Iterator[tuple[int, int, int]]:
        """Yield some of the files, each with its first id and the one after its last."""
        these = np.flatnonzero(np.isin(self._numbers, numbers))
        columns = (each[these].tolist() for each in (self._numbers, self._starts, self._ends))
        yield from zip(*columns, strict=True)
