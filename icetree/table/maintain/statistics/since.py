"""Statistics of partitions from those of a former snapshot and what commits changed since.

Counts add up. When a partition was changed last is known as long as what it lost cannot have been
the newest that it had; where that is not so, or anything else is not as it was, nothing is told and
the whole tree is walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icetree.codec.parquet.parquet import open_parquet
from icetree.errors import IcetreeError
from icetree.rows.matching.same import row_codes
from icetree.spec.edit.refs import ancestors
from icetree.spec.metadata.metadata import PartitionStatisticsFile
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.table.maintain.statistics.rows import (
    SUMS,
    committed_at,
    partition_rows,
    schema_of,
    settled,
)
from icetree.tree.diff.diff import net
from icetree.tree.reading import leaves_in
from icetree.visible import log_of

if TYPE_CHECKING:
    from icetree.table.table import Table

log = log_of(__name__)

_Longs = npt.NDArray[np.int64]
_FILES = tuple(name for name in SUMS if name.endswith("file_count") or name == "dv_count")


def since_last(table: Table, snapshot: Snapshot, shape: Shape) -> pa.Table | None:
    """Return the statistics of a snapshot's partitions; None where only the whole tree tells.

    It is not worth it, either, where more commits would be looked at than the tree has leaves.
    """
    most = len(leaves_in(table.files.root(snapshot, shape)))
    found = _nearest(table, snapshot, most)
    if found is None:
        return None
    file, snapshots = found
    before = _read(table, file, shape)
    if before is None:
        return None
    changed = net([table.files.changed(each, shape) for each in snapshots])
    committed = committed_at(table)
    came, went = (
        partition_rows(each, shape, committed) for each in (changed.added, changed.removed)
    )
    made = _together(before, came, went)
    if made is not None:
        log.info("%s: statistics from %d commits", table.name, len(snapshots))
    return made


def _nearest(
    table: Table, snapshot: Snapshot, most: int
) -> tuple[PartitionStatisticsFile, list[Snapshot]] | None:
    """Return the statistics of the nearest former snapshot, and the commits since, oldest first."""
    known = {each.snapshot_id: each for each in table.metadata.partition_statistics}
    since: list[Snapshot] = []
    for each in ancestors(table.metadata, snapshot.snapshot_id, table.files.page):
        # Those of the snapshot itself are told anew, from what they are of.
        if since and each.snapshot_id in known:
            return known[each.snapshot_id], since[::-1]
        # What others wrote before v4 is as it may be.
        if each.root_manifest is None or len(since) == most:
            return None
        since.append(each)
    return None


def _read(table: Table, file: PartitionStatisticsFile, shape: Shape) -> pa.Table | None:
    """Return what a file tells, if it is there and has the fields that a file of now would have."""
    try:
        content = pa.BufferReader(table.files.fetch(file.statistics_path))
        opened = open_parquet(content, file=file.statistics_path)
        empty = opened.parquet.schema_arrow.empty_table()
        found = pa.concat_tables([empty, *opened.read_groups()])
    except (IcetreeError, pa.ArrowException) as error:
        log.warning("%s: %s is not read: %s", table.name, file.statistics_path, error)
        return None
    schema = schema_of(shape)
    if not found.schema.remove_metadata().equals(schema.remove_metadata(), check_metadata=True):
        return None
    return found


def _together(before: pa.Table, came: pa.Table, went: pa.Table) -> pa.Table | None:
    """Return what there was, with what came and without what went."""
    parts = [before, came, went]
    every = pa.concat_tables(parts)
    sign = np.repeat([1, 1, -1], [each.num_rows for each in parts])
    partition = every["partition"].combine_chunks().flatten()
    codes = row_codes([every["spec_id"], *partition], every.num_rows)
    size = int(codes.max(initial=-1)) + 1
    sums = {name: np.zeros(size, np.int64) for name in SUMS}
    for name, total in sums.items():
        np.add.at(total, codes, sign * every[name].to_numpy())
    if any((total < 0).any() for total in sums.values()):
        return None
    held = np.sum([sums[name] for name in _FILES], axis=0) > 0
    last = _last(codes, every, [each.num_rows for each in parts], held)
    if last is None:
        return None
    kept = np.flatnonzero(held)
    rows = every.take(pa.array(last[kept]))
    for name, total in sums.items():
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        rows = rows.set_column(at, field, pa.array(total[kept]).cast(field.type))
    return settled(rows)


def _last(
    codes: _Longs, every: pa.Table, sizes: list[int], held: npt.NDArray[np.bool_]
) -> _Longs | None:
    """Return the row, by partition, that says when it was changed last; None where none does."""
    at = np.where(every["last_updated_at"].is_valid(), every["last_updated_at"].fill_null(0), -1)
    was, came, gone = (np.full(len(held), -1, np.int64) for _ in range(3))
    first, second = np.cumsum(sizes[:2])
    rows = np.arange(len(codes))
    was[codes[:first]] = rows[:first]
    came[codes[first:second]] = rows[first:second]
    gone[codes[second:]] = rows[second:]
    newer = (came >= 0) & ((was < 0) | (at[came] >= at[was]))
    unsure = held & (gone >= 0) & ~newer
    if unsure.any():
        return None
    found: _Longs = np.where(newer, came, was)
    return found
