"""What changed in a table between two snapshots: files, tasks that give rows, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput, NotFound
from icetree.spec.edit.refs import ancestors
from icetree.spec.entry.entry import Entries, concat
from icetree.spec.metadata.pages import find_snapshot
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.columns import identifier_names
from icetree.spec.schema.shape import Shape
from icetree.spec.short import short
from icetree.spec.spelled import spelled
from icetree.spec.texts import shortened
from icetree.table.changes.rows import CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID, ChangeReader
from icetree.table.frames import Frames
from icetree.table.point import Point, resolve, snapshot_at
from icetree.table.told import told
from icetree.tree.changes import Operation
from icetree.tree.diff import diff as differ
from icetree.tree.diff.diff import Diff
from icetree.tree.plan.row_changes import CHANGE_TASK, RowTasks, Tree, row_tasks
from icetree.tree.plan.tasks import DELETES

if TYPE_CHECKING:
    from icetree.table.table import Table

_COMMIT: Final = pa.schema(
    [
        pa.field("change_ordinal", pa.int32()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        pa.field("committed_at", pa.timestamp("ms")),
        pa.field("operation", pa.string()),
    ]
)
#: What is told of a file that came or went.
_FILE: Final = (
    *("content_type", "location", "file_format", "referenced_file", "dv_offset"),
    *("dv_size_in_bytes", "record_count", "file_size_in_bytes", "partition_spec_id"),
    *("sort_order_id", "equality_ids", "sequence_number", "first_row_id", "leaf", "position"),
)
_NOTHING: Final = Diff()

#: Columns of `ChangeRange.net`.
NET_CHANGE: Final = pa.schema(
    [
        pa.field("change", pa.string()),
        *(
            # A commit has a sequence number of its own.
            field.with_name("data_sequence_number") if field.name == "sequence_number" else field
            for field in told(_NOTHING.added, _FILE, "").schema
        ),
    ]
)
#: Columns of `ChangeRange.files`: which commit did what with which file.
FILE_CHANGE: Final = pa.schema([*_COMMIT, *NET_CHANGE])

#: Columns of `ChangePlan.tasks`; stats of identity partitions follow.
ROW_CHANGE: Final = pa.schema(
    [
        pa.field(CHANGE_ORDINAL, pa.int32()),
        pa.field(COMMIT_SNAPSHOT_ID, pa.int64()),
        *CHANGE_TASK,
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """What an engine reads to see row changes, and how it tells updates."""

    #: As `ROW_CHANGE`: see `tree.row_changes.CHANGE_TASK` for which rows a task is for.
    tasks: pa.Table
    #: Delete files that tasks point to by row number, as `tree.plan.DELETES`.
    deletes: pa.Table
    #: Columns by which a row deleted and a row inserted in one commit are one row updated:
    #: `_row_id` first, and then, for rows it does not pair, the identifier fields.
    pair_by: tuple[tuple[str, ...], ...]

    __repr__ = short


@spelled
class ChangeRange(Frames):
    """The changes of the snapshots in a range, oldest first; nothing is read until asked for."""

    def __init__(
        self, table: Table, *, since: Point | None = None, upto: Point | None = None
    ) -> None:
        self._table = table
        self._metadata = table.metadata
        self._files = table.files
        self.snapshots: tuple[Snapshot, ...] = snapshots_between(table, since=since, upto=upto)

    def __repr__(self) -> str:
        ids = [snapshot.snapshot_id for snapshot in self.snapshots]
        return f"ChangeRange({str(self._table.name)!r}, snapshots={shortened(ids)})"

    @cached_property
    def _shape(self) -> Shape:
        return self._metadata.shape()

    # --- files -----------------------------------------------------------------------------

    def diffs(self) -> Iterator[tuple[Snapshot, Diff]]:
        """Yield each snapshot with the files it added and removed, as entries."""
        for snapshot in self.snapshots:
            yield snapshot, self._diff(snapshot)

    def files(self) -> pa.Table:
        """Return every file that came or went, as `FILE_CHANGE`; those of a `replace` too."""
        parts = []
        for ordinal, (snapshot, changed) in enumerate(self.diffs()):
            rows = _file_rows(changed, self._table.location)
            facts = (
                ordinal,
                snapshot.snapshot_id,
                snapshot.sequence_number,
                snapshot.timestamp_ms,
                snapshot.operation,
            )
            columns = [
                pa.repeat(pa.scalar(fact, field.type), rows.num_rows)
                for fact, field in zip(facts, _COMMIT, strict=True)
            ]
            parts.append(pa.table([*columns, *rows.columns], schema=FILE_CHANGE))
        return pa.concat_tables([FILE_CHANGE.empty_table(), *parts])

    def net(self) -> pa.Table:
        """Return the files that came or went from the range's start to its end (`NET_CHANGE`)."""
        changed = differ.net([changed for _, changed in self.diffs()])
        return _file_rows(changed, self._table.location)

    def appended(self) -> Entries:
        """Return the data files that append snapshots added, whatever became of them since."""
        appends = [each for each in self.snapshots if each.operation == Operation.APPEND.value]
        return concat([_NOTHING.added, *(self._diff(each).added for each in appends)])

    # --- rows ------------------------------------------------------------------------------

    def plan(self) -> ChangePlan:
        """Return what gives the row changes of the whole range; `replace` snapshots have none."""
        tasks, deletes, first = [], [], 0
        for ordinal, snapshot, found in self.steps():
            facts = {
                CHANGE_ORDINAL: pa.scalar(ordinal, pa.int32()),
                COMMIT_SNAPSHOT_ID: pa.scalar(snapshot.snapshot_id, pa.int64()),
            }
            step = _renumbered(found.tasks, first)
            for at, (name, value) in enumerate(facts.items()):
                step = step.add_column(at, name, pa.repeat(value, step.num_rows))
            tasks.append(step)
            deletes.append(found.deletes)
            first += found.deletes.num_rows
        return ChangePlan(
            tasks=pa.concat_tables([ROW_CHANGE.empty_table(), *tasks], promote_options="default"),
            deletes=pa.concat_tables([DELETES.empty_table(), *deletes]),
            pair_by=self.pair_by,
        )

    @property
    def pair_by(self) -> tuple[tuple[str, ...], ...]:
        """The columns by which updates are told, most trusted first."""
        keys = tuple(identifier_names(self._metadata.schema()))
        return (("_row_id",), keys) if keys else (("_row_id",),)

    def steps(self) -> Iterator[tuple[int, Snapshot, RowTasks]]:
        """Yield (ordinal, snapshot, tasks) of each snapshot that may have changed rows."""
        for ordinal, snapshot in enumerate(self.snapshots):
            if snapshot.operation == Operation.REPLACE.value:
                continue
            found = row_tasks(
                self._diff(snapshot),
                before=lambda child=snapshot: self._parent_tree(child),  # type: ignore[misc]
                after=lambda own=snapshot: self._tree(own),  # type: ignore[misc]
                shape=self._shape,
                table_location=self._metadata.location,
            )
            yield ordinal, snapshot, found

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows that changed."""
        return ChangeReader(self._table, self.steps).schema

    def to_batches(self, *, columns: Iterable[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield inserted and deleted rows, a commit at a time; see `to_arrow`."""
        yield from ChangeReader(self._table, self.steps, columns=columns).batches()

    def to_arrow(
        self, *, net: bool = False, images: bool = False, columns: Iterable[str] | None = None
    ) -> pa.Table:
        """Return the rows that changed, each with `_change_type` and which commit changed it.

        A row that a commit deletes and inserts with the same values has not changed. With `net`
        that holds for the range as a whole. With `images`, a deleted and an inserted row that
        are one and the same (by `pair_by`) become `UPDATE_BEFORE` and `UPDATE_AFTER`, side by
        side. Rows have the table's current schema; `columns` are those to compare and return.
        """
        return ChangeReader(self._table, self.steps, columns=columns).table(net=net, images=images)

    # --- within ----------------------------------------------------------------------------

    def _tree(self, snapshot: Snapshot) -> Tree:
        return Tree(
            root=self._files.root(snapshot, self._shape),
            reader=self._files.reader(self._shape),
            root_file=snapshot.root_file,
        )

    def _parent_tree(self, child: Snapshot) -> Tree:
        parent = child.parent_snapshot_id
        if parent is None:
            root = self._files.root(None, self._shape)
            return Tree(root=root, reader=self._files.reader(self._shape))
        try:
            return self._tree(find_snapshot(self._metadata, parent, self._files.page))
        except NotFound:
            raise _gap(self._table, child, what="the rows that it removed cannot be told") from None

    def _diff(self, snapshot: Snapshot) -> Diff:
        return self._files.changed(snapshot, self._shape)


def snapshots_between(
    table: Table, *, since: Point | None = None, upto: Point | None = None
) -> tuple[Snapshot, ...]:
    """Return the ancestors of `upto`, itself included, that came after `since`, oldest first.

    Without `since` from the table's beginning, without `upto` to its current snapshot. A time
    stands for the snapshot that was current then.
    """
    last = _end(table, upto)
    start = None if since is None else resolve(table.metadata, since, what="since")
    if last is None:
        if start is None or start.at_ms is not None:
            return ()
        raise InvalidInput(f"table {table.name} has no snapshot, so none can follow {since!r}")
    found: list[Snapshot] = []
    for snapshot in ancestors(table.metadata, last, table.files.page):
        if start is not None and start.reached(snapshot):
            return tuple(found[::-1])
        found.append(snapshot)
    oldest = found[-1]
    if start is not None and start.snapshot_id is not None:
        if start.snapshot_id == oldest.parent_snapshot_id:
            return tuple(found[::-1])
        if oldest.parent_snapshot_id is None:
            raise InvalidInput(
                f"table {table.name}: snapshot {start.snapshot_id} is no ancestor of snapshot {last}, "
                "so there are no changes from one to the other"
            )
    if oldest.parent_snapshot_id is not None:
        raise _gap(table, oldest, what=f"start there: since={oldest.snapshot_id}")
    return tuple(found[::-1])


def _end(table: Table, upto: Point | None) -> int | None:
    if upto is None:
        return table.metadata.current_snapshot_id
    return snapshot_at(table.metadata, table.files, upto, what="upto").snapshot_id


def _gap(table: Table, child: Snapshot, *, what: str) -> NotFound:
    return NotFound(
        f"table {table.name}: history has a gap: snapshot {child.parent_snapshot_id}, which snapshot "
        f"{child.snapshot_id} was made on, has been expired; {what}"
    )


def _file_rows(changed: Diff, location: str) -> pa.Table:
    parts = [NET_CHANGE.empty_table()]
    for change, entries in (("removed", changed.removed), ("added", changed.added)):
        rows = told(entries, _FILE, location)
        rows = rows.add_column(0, "change", pa.repeat(change, rows.num_rows))
        parts.append(rows.rename_columns(NET_CHANGE.names).cast(NET_CHANGE))
    return pa.concat_tables(parts)


def _renumbered(tasks: pa.Table, first: int) -> pa.Table:
    """Return tasks whose deletes are numbered from another start."""
    for name in tasks.schema.names:
        if name.endswith(("equality_deletes", "position_deletes")) and first:
            lists = tasks[name].combine_chunks()
            moved = pa.ListArray.from_arrays(
                lists.offsets, pc.add(lists.values, pa.scalar(first, pa.int32()))
            )
            tasks = tasks.set_column(tasks.schema.get_field_index(name), name, moved)
    return tasks
