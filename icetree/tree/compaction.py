"""Which data files are worth rewriting, and which of them together: groups of one partition each.

The rules are those of Iceberg's `rewrite_data_files`. A file is a candidate if it is much smaller or
larger than it should be, or if many of its rows are deleted. Candidates of a partition are packed
into groups, and a group is rewritten if something is gained by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.schema.shape import Shape
from icetree.tree.partitions import partition_codes
from icetree.tree.splits import first_of_each

_GIB: Final = 1024**3
_Longs = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """When files are rewritten; sizes are of files as they are stored."""

    target_bytes: int
    #: Smaller or larger ones are candidates.
    min_bytes: int
    max_bytes: int
    min_input_files: int = 5
    #: One with so many delete files is rewritten.
    delete_file_threshold: int = 2**31 - 1
    #: One of which such a part of the rows is deleted is rewritten.
    delete_ratio_threshold: float = 0.3
    #: Every file is.
    rewrite_all: bool = False
    #: No group is larger, unless it is a single file.
    max_group_bytes: int = 100 * _GIB


def grouped(tasks: pa.Table, shape: Shape, rules: GroupRules, *, spec_id: int) -> _Longs:
    """Return the group of each of a plan's files, counted from 0; -1 for files that stay.

    `tasks` have the stats of partitions, and `spec_id` is what files are written with. Files of that
    spec are grouped by partition; those of others, which are partitioned anew, all together.
    """
    size = tasks["file_size_in_bytes"].to_numpy()
    worn = _is_worn(tasks, rules)
    if rules.rewrite_all:
        chosen = np.ones(len(size), np.bool_)
    else:
        chosen = worn | (size < rules.min_bytes) | (size > rules.max_bytes)
    own = tasks["partition_spec_id"].to_numpy() == spec_id
    [partition] = partition_codes([tasks], [chosen & own], shape)
    at = np.flatnonzero(chosen)
    # Equal partitions side by side, and within one as the plan has it: by leaf.
    at = at[np.argsort(partition[at], kind="stable")]
    begins = first_of_each(size[at], rules.max_group_bytes, of=partition[at])
    group = np.cumsum(begins) - 1
    gains = _gains(group, size[at], worn[at], rules)
    renumbered = np.cumsum(gains) - 1
    found = np.full(len(size), -1, np.int64)
    kept = gains[group]
    found[at[kept]] = renumbered[group[kept]]
    return found


def _is_worn(tasks: pa.Table, rules: GroupRules) -> _Flags:
    """Tell which files have so many deletes that to rewrite them pays by itself."""
    count = pc.is_valid(tasks["dv_location"]).cast(pa.int64()).to_numpy().copy()
    for name in ("equality_deletes", "position_deletes"):
        count += pc.fill_null(pc.list_value_length(tasks[name]), 0).to_numpy()
    deleted = pc.fill_null(tasks["dv_cardinality"], 0).to_numpy()
    ratio = deleted / np.maximum(tasks["record_count"].to_numpy(), 1)
    many = count >= rules.delete_file_threshold
    return np.asarray(many | (ratio >= rules.delete_ratio_threshold) & (deleted > 0))


def _gains(group: _Longs, size: _Longs, worn: _Flags, rules: GroupRules) -> _Flags:
    """Tell which groups are worth it: they become fewer or smaller files, or lose deletes."""
    number = int(group[-1]) + 1 if len(group) else 0
    files = np.bincount(group, minlength=number)
    total = np.bincount(group, size, number)
    several = (files >= 2) & ((files >= rules.min_input_files) | (total > rules.target_bytes))
    gains = several | (total > rules.max_bytes) | (np.bincount(group, worn, number) > 0)
    return np.asarray(gains | rules.rewrite_all)


def file_count(size_bytes: float, rules: GroupRules) -> int:
    """Return how many files to write: each near the target, none needlessly small."""
    if size_bytes < rules.target_bytes:
        return 1
    least = int(size_bytes // rules.target_bytes)
    rest = size_bytes - least * rules.target_bytes
    if rest > rules.min_bytes:
        return least + 1
    # What is left over goes to the others, if it makes them but a little larger.
    fits = size_bytes / least < min(1.1 * rules.target_bytes, rules.max_bytes)
    return least if fits else least + 1
