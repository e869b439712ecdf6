"""What became of data files since a change was made: taken by others, or given other deletes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import Entries, concat, empty, is_data_dv, is_data_file, only
from icetree.tree.conflict.checks import OtherCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What other commits did to some data files; each array has locations, each once."""

    #: Removed by a commit that changed rows.
    removed: pa.Array
    #: Removed by a compaction: their rows are in other files.
    compacted: pa.Array
    #: Got a DV from a compaction, which changed nothing of what is deleted.
    remade: pa.Array
    #: Had a DV, and have none now: rows are back.
    bare: pa.Array
    #: The DVs that came and are there, one a data file; without stats.
    data_dvs: Entries


def meanwhile(files: pa.Array, since: Sequence[OtherCommit]) -> Meanwhile:
    """Tell what the commits, oldest first, did to data files, which are each named once."""
    came, came_at = _stacked([each.diff.added for each in since])
    went, went_at = _stacked([each.diff.removed for each in since])
    changes_rows = np.array([each.changes_rows for each in since], np.bool_)
    which, at = _named(went, is_data_file(went), "location", went_at, files)
    removed, compacted = which[changes_rows[at]], which[~changes_rows[at]]
    marked, marked_at = _named(came, is_data_dv(came), "referenced_file", came_at, files)
    lost, lost_at = _named(went, is_data_dv(went), "referenced_file", went_at, files)
    newest, last_lost = (np.full(len(files), -1) for _ in range(2))
    np.maximum.at(newest, marked, marked_at)
    np.maximum.at(last_lost, lost, lost_at)
    data_dvs = only(came, is_data_dv(came))
    own_at = came_at[is_data_dv(came).to_numpy()]
    known = pc.is_in(data_dvs["referenced_file"], value_set=files).to_numpy()
    # Whoever replaces a DV takes the old one away in the same commit.
    stands = known.copy()
    stands[known] = (own_at[known] == newest[marked]) & (newest[marked] >= last_lost[marked])
    return Meanwhile(
        removed=_names(files, removed),
        compacted=_names(files, compacted),
        remade=_names(files, marked[~changes_rows[marked_at]]),
        bare=_names(files, np.flatnonzero(last_lost > newest)),
        data_dvs=only(data_dvs, pa.array(stands)),
    )


def added_by_compactions(since: Sequence[OtherCommit]) -> pa.Array:
    """Return the data files that compactions among the commits added."""
    found = [each.diff.added for each in since if not each.changes_rows]
    names = [one_chunk(each["location"].filter(is_data_file(each))) for each in found]
    return pa.concat_arrays([pa.array([], pa.string()), *names])


#: What is needed of an entry: which file it is, and where a DV is found.
_TOLD: Final = (
    "content_type",
    "file_format",
    "location",
    "referenced_file",
    "record_count",
    "dv_offset",
    "dv_size_in_bytes",
    "key_metadata",
)
_Numbers = npt.NDArray[np.int64]


def _stacked(parts: Sequence[Entries]) -> tuple[Entries, _Numbers]:
    """Return what is told of entries of several commits, and which commit each is of."""
    counts = [each.num_rows for each in parts]
    told = [each.select(_TOLD) for each in (empty(), *parts)]
    return concat(told), np.repeat(np.arange(len(parts)), counts)


def _named(
    entries: Entries, mask: pa.ChunkedArray, column: str, at: _Numbers, files: pa.Array
) -> tuple[_Numbers, _Numbers]:
    """Return which of the files the entries of a mask name, and in which commit."""
    numbers = pc.index_in(entries[column].filter(mask), value_set=files)
    known = numbers.is_valid().to_numpy()
    found: _Numbers = numbers.drop_null().to_numpy().astype(np.int64)
    return found, at[mask.to_numpy()][known]


def _names(files: pa.Array, numbers: _Numbers) -> pa.Array:
    return files.take(pa.array(np.unique(numbers), pa.int64()))
