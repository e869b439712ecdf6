"""How many rows a commit inserted, updated and deleted, as far as that was learnt on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Entries, is_data_dv, is_data_file


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Numbers of rows; None for what only a look at the rows would tell."""

    inserted: int | None = 0
    updated: int | None = 0
    deleted: int | None = 0

    @property
    def affected(self) -> int | None:
        """How many rows came, changed or went."""
        return _sum(_sum(self.inserted, self.updated), self.deleted)

    def __add__(self, more: RowCounts) -> RowCounts:
        return RowCounts(
            inserted=_sum(self.inserted, more.inserted),
            updated=_sum(self.updated, more.updated),
            deleted=_sum(self.deleted, more.deleted),
        )

    def __str__(self) -> str:
        known = {name: getattr(self, name) for name in ("inserted", "updated", "deleted")}
        return ", ".join(f"{count:,} {name}" for name, count in known.items() if count)


#: What is said of rows where nobody counted.
UNCOUNTED = RowCounts(inserted=None, updated=None, deleted=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """Numbers of data files that came and went."""

    added: int = 0
    removed: int = 0


def files_told(summary: Mapping[str, str]) -> FileCounts:
    """Return the numbers of files that a snapshot's summary tells."""
    return FileCounts(
        added=int(summary.get("added-data-files", 0)),
        removed=int(summary.get("deleted-data-files", 0)),
    )


def rows_in(tasks: pa.Table) -> int | None:
    """Return how many rows are in files of a plan; None where only a look at them would tell."""
    for name in ("equality_deletes", "position_deletes"):
        if pc.any(pc.greater(pc.fill_null(pc.list_value_length(tasks[name]), 0), 0)).as_py():
            return None
    return _total(tasks["record_count"]) - _total(tasks["dv_cardinality"])


def rows_left_in(files: Entries, live: Entries) -> int | None:
    """Return how many rows are in some data files; None where only a look at them would tell.

    `live` is everything that there is beside them, with the DVs and delete files.
    """
    vectors = live.filter(is_data_dv(live))
    if live.filter(is_data_file(live)).num_rows + vectors.num_rows < live.num_rows:
        return None
    theirs = pc.is_in(vectors["referenced_file"], value_set=files["location"].combine_chunks())
    return _total(files["record_count"]) - _total(vectors["record_count"].filter(theirs))


def rows_of(files: Entries) -> int:
    """Return how many rows new data files hold."""
    return _total(files["record_count"].filter(is_data_file(files)))


def _total(counts: pa.ChunkedArray) -> int:
    return pc.sum(counts).as_py() or 0


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
