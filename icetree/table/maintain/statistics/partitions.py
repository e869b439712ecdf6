"""Computing statistics of a snapshot's partitions: a row each, from metadata alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.errors import InvalidInput, Unsupported
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import PartitionStatisticsFile
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.metadata.update import SetPartitionStatistics
from icetree.spec.schema.metadata_columns import partition_type
from icetree.spec.schema.shape import Shape
from icetree.spec.short import short
from icetree.surroundings import new_uuid
from icetree.table.maintain.newest import on_newest
from icetree.table.maintain.statistics.rows import committed_at, partition_rows, settled
from icetree.table.maintain.statistics.since import since_last
from icetree.table.maintain.statistics.statistics import keep, stored_name
from icetree.table.point import Point
from icetree.table.progress import Progress
from icetree.tree.leaf import NewFile
from icetree.tree.live import live_files

if TYPE_CHECKING:
    from icetree.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """What was computed, or with `dry_run` would be kept."""

    #: None of a table without rows ever, and of a dry run.
    partition_statistics_file: str | None
    partition_count: int = 0
    dry_run: bool = False

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "would tell" if self.dry_run else "told"
        return f"{verb} of {self.partition_count:,} partitions"


def compute_partition_stats(
    table: Table,
    *,
    at: Point | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> PartitionStatistics:
    """Keep what each partition of a snapshot holds."""
    tell = progress or (lambda *_: None)
    if is_encrypted(table.metadata):
        raise Unsupported(
            f"table {table.name} is encrypted, and the specification has no place for the key of a "
            "file with partition statistics, which would tell values"
        )
    told = on_newest(table, lambda: _told(table, at))
    if told is None:
        return PartitionStatistics(partition_statistics_file=None, dry_run=dry_run)
    snapshot, found = told
    tell("partitions", found.num_rows, found.num_rows)
    if dry_run:
        return PartitionStatistics(
            partition_statistics_file=None, partition_count=found.num_rows, dry_run=True
        )
    out = pa.BufferOutputStream()
    pq.write_table(found, out, compression="zstd")
    content = out.getvalue().to_pybytes()
    name = f"metadata/partition-stats-{snapshot.snapshot_id}-{new_uuid()}.parquet"
    made = PartitionStatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=stored_name(table, name),
        file_size_in_bytes=len(content),
    )
    update = SetPartitionStatistics(partition_statistics=made)
    keep(table, snapshot, NewFile(location=name, content=content), update)
    return PartitionStatistics(
        partition_statistics_file=absolute(name, table.location), partition_count=found.num_rows
    )


def _told(table: Table, at: Point | None) -> tuple[Snapshot, pa.Table] | None:
    """Return a snapshot and the statistics of its partitions; None of a table without rows ever."""
    snapshot, shape = table.snapshot(at), table.metadata.shape()
    if not partition_type(shape).fields:
        raise InvalidInput(f"table {table.name} has no partitions that statistics could be of")
    if snapshot is None:
        return None
    found = since_last(table, snapshot, shape)
    return snapshot, partition_statistics(table, snapshot, shape) if found is None else found


def partition_statistics(table: Table, snapshot: Snapshot, shape: Shape) -> pa.Table:
    """Return a row for each partition with live files, by a walk over the whole tree."""
    files = table.files
    live = live_files(
        files.counted_root(snapshot, shape), files.reader(shape), root_file=snapshot.root_file
    )
    return settled(partition_rows(live, shape, committed_at(table)))
