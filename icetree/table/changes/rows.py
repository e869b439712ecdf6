"""Row changes read through Arrow: the tasks of a change plan run in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from icetree.errors import CorruptTable, InvalidInput
from icetree.rows.matching.same import Codes, pair_up, row_codes
from icetree.rows.project import leaf_of
from icetree.rows.read.deletes import VECTOR_COLUMNS, Rows, read_vector
from icetree.rows.read.read import read_tasks
from icetree.rows.schema import arrow_schema
from icetree.spec.arrays import no_rows
from icetree.spec.location import absolute
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.columns import identifier_paths
from icetree.spec.schema.metadata_columns import (
    DELETED_FIELD,
    IDS,
    METADATA_COLUMNS,
    PARTITION_FIELD,
    under_other_name,
)
from icetree.tree.plan.row_changes import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    RowTasks,
    as_plan,
    by_those_within,
)

if TYPE_CHECKING:
    from icetree.table.table import Table

CHANGE_ORDINAL: Final = "_change_ordinal"
COMMIT_SNAPSHOT_ID: Final = "_commit_snapshot_id"
UPDATE_BEFORE: Final = "UPDATE_BEFORE"
UPDATE_AFTER: Final = "UPDATE_AFTER"

#: What every row change tells beside the row.
CHANGE_COLUMNS: Final = pa.schema(
    [
        pa.field(CHANGE_TYPE, pa.string()),
        pa.field(CHANGE_ORDINAL, pa.int32()),
        pa.field(COMMIT_SNAPSHOT_ID, pa.int64()),
    ]
)

_WHERE: Final = tuple(under_other_name(METADATA_COLUMNS[name]) for name in ("_file", "_pos"))
_ROW_ID: Final = under_other_name(METADATA_COLUMNS["_row_id"])
_OTHER: Final = ("equality_deletes", "position_deletes")


def require_told(columns: Schema) -> None:
    """Refuse columns that a change cannot tell, or that would stand beside one of the same name."""
    for field in columns.fields:
        if field.field_id in (DELETED_FIELD, PARTITION_FIELD):
            raise InvalidInput(f"{field.name} is not told of a change: leave it out of the columns")
        if field.field_id not in IDS and field.name.lower() in CHANGE_COLUMNS.names:
            raise InvalidInput(
                f"the table's own column {field.name!r} has the name of one that tells of changes: "
                "rename it, or leave it out with columns="
            )


#: A commit: its ordinal, its snapshot, and what tells the rows that it changed.
Step: TypeAlias = "tuple[int, Snapshot, RowTasks]"
#: Which column, and the way down from it.
Place: TypeAlias = "tuple[int, tuple[str, ...]]"


class ChangeReader:
    """Reads the rows of a range of changes.

    `columns` may be fields, whatever the table calls them now.
    """

    def __init__(
        self,
        table: Table,
        steps: Callable[[], Iterator[Step]],
        *,
        columns: Iterable[str] | Schema | None = None,
    ) -> None:
        self._table = table
        self._steps = steps
        self._schema = table.schema
        self._out = columns if isinstance(columns, Schema) else table.scan(columns=columns).columns
        require_told(self._out)
        out = {field.field_id for field in self._out.fields}
        self._keys = identifier_paths(self._schema)
        keys = (field for field, _ in self._keys)
        more = {each.field_id: each for each in (*_WHERE, _ROW_ID, *keys)}
        extra = [field for id, field in more.items() if id not in out]
        self._read = Schema(*self._out.fields, *extra, schema_id=self._schema.schema_id)
        self._at = {field.field_id: at for at, field in enumerate(self._read.fields)}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows inserted and deleted, a commit at a time."""
        for ordinal, snapshot, found in self._steps():
            gone, new = self._step(found)
            gone, new = self._changed(gone, new)
            yield from self._finish([(DELETE, gone), (INSERT, new)], ordinal, snapshot).to_batches()

    def table(self, *, net: bool, images: bool) -> pa.Table:
        """Return the rows of all commits; with `net`, what they come to."""
        parts = []
        gone_parts: list[pa.Table] = []
        new_parts: list[pa.Table] = []
        for ordinal, snapshot, found in self._steps():
            gone, new = self._changed(*self._step(found))
            if net:
                gone_parts.append(_stamped(gone, ordinal, snapshot))
                new_parts.append(_stamped(new, ordinal, snapshot))
            else:
                rows = self._images(gone, new) if images else [(DELETE, gone), (INSERT, new)]
                parts.append(self._finish(rows, ordinal, snapshot))
        if net and gone_parts:
            gone, new = self._changed(pa.concat_tables(gone_parts), pa.concat_tables(new_parts))
            rows = self._images(gone, new) if images else [(DELETE, gone), (INSERT, new)]
            parts.append(self._finish(rows))
        return pa.concat_tables([no_rows(self.schema), *parts])

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of what comes out."""
        return pa.schema([*arrow_schema(self._out), *CHANGE_COLUMNS])

    # --- one commit ------------------------------------------------------------------------

    def _step(self, found: RowTasks) -> tuple[pa.Table, pa.Table]:
        """Return the rows that a commit deleted and inserted, all of them."""
        gone, new = (
            self._rows(found, found.tasks.filter(pc.equal(found.tasks[CHANGE_TYPE], change)))
            for change in (DELETE, INSERT)
        )
        return gone, new

    def _rows(self, found: RowTasks, tasks: pa.Table) -> pa.Table:
        within = self._within(found, tasks)
        kept = []
        for batch in self._read_tasks(found, tasks, self._read):
            file = batch.column(self._at[_WHERE[0].field_id])[0].as_py()
            if file in within:
                positions = batch.column(self._at[_WHERE[1].field_id]).to_numpy()
                vector, survivors = within[file]
                inside = np.isin(positions, vector)
                if survivors is not None:
                    inside |= ~np.isin(positions, survivors)
                batch = batch.filter(pa.array(inside))
            kept.append(batch)
        return pa.Table.from_batches(kept, arrow_schema(self._read))

    def _within(self, found: RowTasks, tasks: pa.Table) -> dict[str, tuple[Rows, Rows | None]]:
        """Return, by file, the rows in the DV to be within, and those that other deletes leave."""
        location = self._table.location
        within = (f"within_{each}" for each in (*VECTOR_COLUMNS, *_OTHER))
        names = ["location", "record_count", *VECTOR_COLUMNS, *within]
        made: dict[str, tuple[Rows, Rows | None]] = {}
        by_rows = []
        for at, task in enumerate(tasks.select(names).to_pylist()):
            others = any(task[f"within_{name}"] for name in _OTHER)
            if task["within_dv_location"] is None and not others:
                continue
            vector: Rows = np.zeros(0, np.int64)
            if task["within_dv_location"] is not None:
                own = {name: task[f"within_{name}"] for name in VECTOR_COLUMNS}
                vector = read_vector(self._table.files.store, task | own, location)
                self._require_grown(task, vector)
            if others:
                by_rows.append(at)
            made[absolute(task["location"], location)] = (vector, None)
        if by_rows:
            survivors = self._survivors(found, tasks.take(pa.array(by_rows)))
            made |= {file: (made[file][0], left) for file, left in survivors.items()}
        return made

    def _require_grown(self, task: dict[str, Any], vector: Rows) -> None:
        """Refuse a DV that took another's place without its rows: tasks take them for deleted."""
        if task["dv_location"] is None or task["dv_cardinality"] > len(vector):
            return
        before = read_vector(self._table.files.store, task, self._table.location)
        if not np.isin(before, vector).all():
            raise CorruptTable(
                task["within_dv_location"],
                f"the DV of {task['location']} gives rows back that the one before it removed",
            )

    def _survivors(self, found: RowTasks, tasks: pa.Table) -> dict[str, Rows]:
        """Return the rows of each file that the deletes to be within leave, by position."""
        left: dict[str, list[Rows]] = {
            absolute(name, self._table.location): [] for name in tasks["location"].to_pylist()
        }
        for batch in self._read_tasks(found, by_those_within(tasks), Schema(*_WHERE)):
            left[batch.column(0)[0].as_py()].append(batch.column(1).to_numpy())
        return {
            file: np.concatenate([np.zeros(0, np.int64), *parts]) for file, parts in left.items()
        }

    def _read_tasks(
        self, found: RowTasks, tasks: pa.Table, columns: Schema
    ) -> Iterator[pa.RecordBatch]:
        for batch in read_tasks(
            as_plan(tasks, found.deletes),
            store=self._table.files.store,
            metadata=self._table.metadata,
            columns=columns,
            schema=self._schema,
        ):
            if batch.num_rows:
                yield batch

    # --- rows that pair --------------------------------------------------------------------

    def _changed(self, gone: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Drop rows that went and came with the same values, one for one, the oldest first."""
        if not gone.num_rows or not new.num_rows:
            return gone, new
        values = [at for at, each in enumerate(self._out.fields) if each.field_id not in IDS]
        return _without(gone, new, *pair_up(*_codes(gone, new, [(at, ()) for at in values])))

    def _images(self, gone: pa.Table, new: pa.Table) -> list[tuple[str | pa.Array, pa.Table]]:
        """Return deletes, inserts, and updates as pairs of rows side by side."""
        by_row_id = [(self._at[_ROW_ID.field_id], ())]
        updates: list[tuple[str | pa.Array, pa.Table]] = []
        for keys in (by_row_id, self._key_paths()):
            if not keys or not gone.num_rows or not new.num_rows:
                continue
            ones, others = _codes(gone, new, keys)
            if keys is by_row_id:
                # A row without an id is like no other.
                ones = np.where(_is_known(gone, keys[0][0]), ones, -1)
                others = np.where(_is_known(new, keys[0][0]), others, -2)
            at_gone, at_new = pair_up(ones, others)
            order = np.stack([at_gone, at_new + gone.num_rows], axis=1).reshape(-1)
            pairs = pa.concat_tables([gone, new]).take(pa.array(order))
            kinds = np.tile([UPDATE_BEFORE, UPDATE_AFTER], len(at_gone))
            updates.append((pa.array(kinds, pa.string()), pairs))
            gone, new = _without(gone, new, at_gone, at_new)
        return [(DELETE, gone), (INSERT, new), *updates]

    def _key_paths(self) -> list[Place]:
        """Return where the identifier fields are: (column, path below it) each."""
        return [(self._at[field.field_id], path) for field, path in self._keys]

    def _finish(
        self,
        rows: Sequence[tuple[str | pa.Array, pa.Table]],
        ordinal: int | None = None,
        snapshot: Snapshot | None = None,
    ) -> pa.Table:
        parts = [no_rows(self.schema)]
        for change, table in rows:
            if snapshot is not None and ordinal is not None:
                table = _stamped(table, ordinal, snapshot)
            columns = table.columns[: len(self._out.fields)]
            stamp = [table[name] for name in CHANGE_COLUMNS.names[1:]]
            kind = pa.repeat(change, table.num_rows) if isinstance(change, str) else change
            parts.append(pa.table([*columns, kind, *stamp], schema=self.schema))
        return pa.concat_tables(parts)


def _stamped(table: pa.Table, ordinal: int, snapshot: Snapshot) -> pa.Table:
    size = table.num_rows
    return table.append_column(
        CHANGE_ORDINAL, pa.repeat(pa.scalar(ordinal, pa.int32()), size)
    ).append_column(
        COMMIT_SNAPSHOT_ID, pa.repeat(pa.scalar(snapshot.snapshot_id, pa.int64()), size)
    )


def _codes(gone: pa.Table, new: pa.Table, keys: Sequence[Place]) -> tuple[Codes, Codes]:
    """Return a code for each row of both, equal where all keys are."""
    both = pa.concat_tables([gone, new])
    values = [leaf_of(both.column(at).combine_chunks(), path) for at, path in keys]
    codes = row_codes(values, both.num_rows)
    return codes[: gone.num_rows], codes[gone.num_rows :]


def _is_known(table: pa.Table, at: int) -> Any:
    return pc.is_valid(table.column(at)).to_numpy()


def _without(
    gone: pa.Table, new: pa.Table, at_gone: Codes, at_new: Codes
) -> tuple[pa.Table, pa.Table]:
    kept = []
    for table, at in ((gone, at_gone), (new, at_new)):
        mask = np.ones(table.num_rows, np.bool_)
        mask[at] = False
        kept.append(table.filter(pa.array(mask)))
    return kept[0], kept[1]
