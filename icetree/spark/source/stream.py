"""Reading a table as a stream: each micro-batch is some snapshots, in the order they were made.

Offsets are snapshots: by sequence number, which grows, and by id, which is sure. By default a stream
is of appended rows; a snapshot that changed rows in another way ends it with a sentence, unless it
is to be skipped or the stream is of changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType
from typing_extensions import override

from icetree.errors import InvalidInput, NotFound
from icetree.spark.read.arrow import ReadingPart, batch_for_spark
from icetree.spark.source.options import FixedTable, Options, fixed
from icetree.spark.source.read import Part, parts_of, read_schema
from icetree.spec.metadata.snapshot import MAIN, Snapshot
from icetree.table.changes.changes import ChangeRange, snapshots_between
from icetree.table.changes.rows import (
    CHANGE_COLUMNS,
    CHANGE_ORDINAL,
    COMMIT_SNAPSHOT_ID,
    ChangeReader,
    require_told,
)
from icetree.table.lake import Lake
from icetree.table.point import resolve, snapshot_at
from icetree.table.state import require_same
from icetree.table.table import Table
from icetree.tree.changes import Operation
from icetree.tree.plan.row_changes import CHANGE_TYPE, INSERT, RowTasks, as_plan

Offset: TypeAlias = "dict[str, int]"

SEQUENCE_NUMBER: Final = "sequence_number"
SNAPSHOT_ID: Final = "snapshot_id"
#: Before the first snapshot of any table.
START: Final[Offset] = {SEQUENCE_NUMBER: 0, SNAPSHOT_ID: 0}

_SKIPPED: Final = (Operation.OVERWRITE.value, Operation.DELETE.value)
_WITHIN: Final = ("within_dv_location", "within_equality_deletes", "within_position_deletes")


@dataclass
class Files(InputPartition):
    """Files that came as a whole, and which commit brought them; no commit in an append stream."""

    part: Part
    ordinal: int | None = None
    snapshot_id: int | None = None


@dataclass
class Commit(InputPartition):
    """All that one commit changed: rows that went and came are to be compared with each other."""

    ordinal: int
    snapshot_id: int
    parent_id: int | None
    table: FixedTable


class SnapshotReader(DataSourceStreamReader):
    """Reads snapshots of a table, or of a branch of it, as they are made."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._changes = options.flag("changes")
        self._images = options.flag("images")
        self._most = options.number("max-snapshots-per-trigger", least=1)
        self._skip = _skip(options)
        self._branch = options.values.get("branch", MAIN)
        names = [name for name in schema.names if name not in CHANGE_COLUMNS.names]
        self._connection: Lake | None = options.connect()
        table = self._connection.table(options.table)
        # Fixed for the query's life: a column that is renamed meanwhile stays the same column.
        self._columns: Schema = table.scan(columns=names).columns
        require_told(self._columns)
        self._uuid = table.metadata.table_uuid
        #: How far the query has come, as far as this process knows.
        self._reached: Offset | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what executors need; a connection is of no use to them."""
        return {**self.__dict__, "_connection": None}

    # --- offsets ---------------------------------------------------------------------------

    @override
    def initialOffset(self) -> Offset:
        """Return where a new query starts: after `since`, or at the table's first snapshot."""
        since = self._options.values.get("since")
        return START if since is None else self._after(since)

    @override
    def latestOffset(self) -> Offset:
        """Return the newest snapshot, or the one that a micro-batch may reach at most."""
        table = self._table()
        head = _head(table, self._branch)
        if head is None:
            return START
        latest = _offset(head)
        if self._most is None:
            return latest
        # Where a query goes on, an empty range was planned before this; otherwise it is new.
        reached = self._reached or self.initialOffset()
        waiting = () if reached == latest else _between(table, reached, latest)
        return _offset(waiting[min(self._most, len(waiting)) - 1]) if waiting else latest

    @override
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan a micro-batch."""
        self._reached = end
        if start == end:
            return []
        table = self._table()
        snapshots = _between(table, start, end)
        if self._changes:
            return list(self._changed(table, snapshots))
        for snapshot in snapshots:
            self._require_append(snapshot, table)
        since = start[SNAPSHOT_ID] or None
        plan = table.scan_appends(since, end[SNAPSHOT_ID]).plan()
        parts = parts_of(plan, self._reading(table), table.properties)
        return [Files(part=part) for part in parts]

    def changed(self, since: str | None, upto: str | None) -> Sequence[InputPartition]:
        """Plan the changes of a range that is over."""
        table = self._table()
        return list(self._changed(table, snapshots_between(table, since=since, upto=upto)))

    @override
    def commit(self, end: Offset) -> None:
        """Note how far the query has come."""
        self._reached = end

    @override
    def stop(self) -> None:
        """Let go of the catalog."""
        if self._connection is not None:
            self._connection.close()

    # --- rows ------------------------------------------------------------------------------

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition, on an executor."""
        if isinstance(partition, Files):
            for batch in partition.part.batches():
                yield batch if partition.ordinal is None else _inserted(batch, partition)
        elif isinstance(partition, Commit):
            table = partition.table.load()
            changes = table.changes(partition.parent_id, partition.snapshot_id)
            reader = ChangeReader(table, changes.steps, columns=self._columns)
            for batch in reader.table(net=False, images=self._images).to_batches():
                at = batch.schema.get_field_index(CHANGE_ORDINAL)
                ordinal = pa.repeat(pa.scalar(partition.ordinal, pa.int32()), batch.num_rows)
                numbered = batch.set_column(at, CHANGE_ORDINAL, ordinal)
                yield batch_for_spark(numbered, self._columns.fields, also=CHANGE_COLUMNS.names)

    # --- within ----------------------------------------------------------------------------

    def _table(self) -> Table:
        assert self._connection is not None  # offsets are asked for where the reader was made
        table = self._connection.table(self._options.table)
        require_same(table.name, table.metadata, was=self._uuid)
        return table

    def _reading(self, table: Table) -> ReadingPart:
        return ReadingPart(
            store=table.files.store,
            metadata=table.metadata,
            schema_id=table.schema.schema_id,
            columns=self._columns,
            residuals=[AlwaysTrue()],
        )

    def _after(self, since: str) -> Offset:
        table = self._table()
        found = resolve(table.metadata, since, what="since")
        try:
            return _offset(snapshot_at(table.metadata, table.files, found))
        except NotFound:
            if found.at_ms is None:
                raise
            return START  # before the table had any

    def _require_append(self, snapshot: Snapshot, table: Table) -> None:
        kind = snapshot.operation
        if kind in (Operation.APPEND.value, Operation.REPLACE.value) or kind in self._skip:
            return
        raise InvalidInput(
            f"table {table.name}: snapshot {snapshot.snapshot_id} is no append but of kind {kind}, which "
            f"a stream of appended rows cannot tell: stream with option changes=true, or pass over "
            f"such snapshots with skip={kind}"
        )

    def _changed(self, table: Table, snapshots: Sequence[Snapshot]) -> Iterator[InputPartition]:
        if not snapshots:
            return
        held = fixed(table, [*_before(table, snapshots[0]), *snapshots])
        reading = self._reading(table)
        found = ChangeRange(
            table, since=snapshots[0].parent_snapshot_id, upto=snapshots[-1].snapshot_id
        )
        for ordinal, snapshot, tasks in found.steps():
            if _only_inserts(tasks):
                for part in parts_of(
                    as_plan(tasks.tasks, tasks.deletes), reading, table.properties
                ):
                    yield Files(part=part, ordinal=ordinal, snapshot_id=snapshot.snapshot_id)
            elif tasks.tasks.num_rows:
                yield Commit(
                    ordinal=ordinal,
                    snapshot_id=snapshot.snapshot_id,
                    parent_id=snapshot.parent_snapshot_id,
                    table=held,
                )


class ChangesReader(DataSourceReader):
    """Reads the changes of a range, as a stream over it would."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._range = options.values.get("since"), options.values.get("upto")
        self._reader = SnapshotReader(options, schema)

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """Plan all changes after `since`, up to and with `upto`."""
        return self._reader.changed(*self._range)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition, on an executor."""
        return self._reader.read(partition)


def change_schema(options: Options) -> StructType:
    """Return the columns of a stream of changes."""
    schema = read_schema(options)
    schema = schema.add(CHANGE_TYPE, "string").add(CHANGE_ORDINAL, "integer")
    return schema.add(COMMIT_SNAPSHOT_ID, "long")


def _skip(options: Options) -> frozenset[str]:
    given = options.names("skip") or []
    for kind in given:
        if kind not in _SKIPPED:
            raise InvalidInput(f"option skip={kind!r}: allowed are {' and '.join(_SKIPPED)}")
    return frozenset(given)


def _head(table: Table, branch: str) -> Snapshot | None:
    if branch == MAIN:
        return table.snapshot()
    return table.snapshot(branch)


def _offset(snapshot: Snapshot) -> Offset:
    return {SEQUENCE_NUMBER: snapshot.sequence_number, SNAPSHOT_ID: snapshot.snapshot_id}


def _between(table: Table, start: Offset, end: Offset) -> tuple[Snapshot, ...]:
    since = start[SNAPSHOT_ID] or None
    return snapshots_between(table, since=since, upto=end[SNAPSHOT_ID])


def _before(table: Table, snapshot: Snapshot) -> list[Snapshot]:
    """Return the snapshot that one was made on, if there is one; what came is told without it."""
    if snapshot.parent_snapshot_id is None:
        return []
    try:
        return [snapshot_at(table.metadata, table.files, snapshot.parent_snapshot_id)]
    except NotFound:
        return []


def _only_inserts(found: RowTasks) -> bool:
    tasks = found.tasks
    if pc.any(pc.not_equal(tasks[CHANGE_TYPE], INSERT)).as_py() or not tasks.num_rows:
        return False
    dv = pc.any(pc.is_valid(tasks[_WITHIN[0]])).as_py()
    lists = (pc.fill_null(pc.list_value_length(tasks[name]), 0) for name in _WITHIN[1:])
    return not dv and not any(pc.any(pc.greater(length, 0)).as_py() for length in lists)


def _inserted(batch: pa.RecordBatch, of: Files) -> pa.RecordBatch:
    size = batch.num_rows
    told = (
        pa.repeat(INSERT, size),
        pa.repeat(pa.scalar(of.ordinal, pa.int32()), size),
        pa.repeat(pa.scalar(of.snapshot_id, pa.int64()), size),
    )
    return pa.RecordBatch.from_arrays(
        [*batch.columns, *told], names=[*batch.schema.names, *CHANGE_COLUMNS.names]
    )
