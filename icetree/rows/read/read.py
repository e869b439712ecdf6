"""Reading the rows of a plan: each file's own columns, minus its deletes, through the filter."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.types import ListType, MapType, NestedField

from icetree.errors import CorruptTable
from icetree.files.parallel import results
from icetree.rows.project import leaf_of
from icetree.rows.read.deletes import Deletes, Flags, KeyColumn, Matcher, Rows
from icetree.rows.read.files import (
    CHECKSUMS,
    DataFile,
    Group,
    ReadRules,
    batch_of,
    name_mapping,
    open_file,
)
from icetree.rows.read.filter import RowFilter, row_filter
from icetree.rows.read.partition_values import partition_column, partition_constants
from icetree.rows.read.row_groups import groups_that_may_match
from icetree.rows.schema import (
    arrow_schema,
    arrow_type,
)
from icetree.spec.fields import ROW_ID_FIELD
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.values import flag
from icetree.spec.schema.columns import field_path
from icetree.spec.schema.metadata_columns import (
    DELETED_FIELD,
    FILE_FIELD,
    IDS,
    LINEAGE_IDS,
    PARTITION_FIELD,
    POS_FIELD,
    SPEC_ID_FIELD,
)
from icetree.spec.schema.shape import Shape
from icetree.store.base import Store
from icetree.surroundings import new_pool
from icetree.tree.plan.tasks import TASK, Plan

T = TypeVar("T")

#: So many bytes of rows wait, about, for whoever takes them more slowly than they are read.
_AHEAD_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What is the same for all tasks of a scan."""

    store: Store
    metadata: TableMetadata
    shape: Shape
    #: What comes out, in order: columns of the table, and metadata columns by their ids.
    columns: tuple[NestedField, ...]
    out: pa.Schema
    deletes: Deletes
    filters: tuple[RowFilter | None, ...]
    plan: Plan
    case_sensitive: bool
    #: Whether pages of data files are held against their checksums.
    checksums: bool
    #: The rows to read of each task, None for all of all.
    picked: Mapping[int, Rows] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenTask:
    """A task whose file is open and whose deletes are read."""

    number: int
    task: dict[str, Any]
    location: str
    file: DataFile
    rules: ReadRules
    groups: tuple[Group, ...]
    #: Columns to read; some only for the filter and the deletes.
    wanted: dict[str, NestedField]
    filter: RowFilter | None
    #: Where each field of the filter stands.
    paths: dict[int, tuple[str, tuple[str, ...]]]
    removed: Rows
    matchers: tuple[Matcher, ...]
    #: The partition of the file, where that is asked for.
    partition: pa.Scalar | None
    #: The rows to read, None for all.
    picked: Rows | None


def read_tasks(
    plan: Plan,
    *,
    store: Store,
    metadata: TableMetadata,
    columns: Schema,
    schema: Schema | None = None,
    case_sensitive: bool = True,
    threads: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of the plan's files that its residuals let through, in plan order.

    `columns` is what comes out; reserved ids stand for metadata columns, and rows that are gone
    come out as well where `_deleted` is among them. `schema` is the one the plan was made with. At most a few row groups are in memory, whatever the plan's size.
    """
    found = read_by_task(
        plan,
        store=store,
        metadata=metadata,
        columns=columns,
        schema=schema,
        case_sensitive=case_sensitive,
        threads=threads,
    )
    with closing(found):
        for _, batch in found:
            yield batch


def read_by_task(
    plan: Plan,
    *,
    store: Store,
    metadata: TableMetadata,
    columns: Schema,
    schema: Schema | None = None,
    case_sensitive: bool = True,
    threads: int | None = None,
    picked: Mapping[int, Rows] | None = None,
) -> Generator[tuple[int, pa.RecordBatch], None, None]:
    """Yield what `read_tasks` does, each batch after the number of its task in the plan.

    Of the tasks in `picked` only the rows at these positions come out, which ascend, and of other
    tasks none; row groups without any are not read.
    """
    schema = schema or metadata.schema()
    workers = threads or min(8, (os.cpu_count() or 1) + 2)
    reading = _reading(plan, store, metadata, columns, schema, case_sensitive, picked)
    numbers = range(plan.tasks.num_rows) if picked is None else sorted(picked)
    pool = new_pool(workers, "icetree-read")
    try:
        opens = (partial(_open, number, reading) for number in numbers)
        opened = results(pool, opens, ahead=workers)
        units = (partial(_read, one, group, reading) for one in opened for group in one.groups)
        found = results(pool, units, ahead=workers, weigh=_size, most=_AHEAD_BYTES)
        for number, batches in found:
            for batch in batches:
                yield number, batch
    finally:
        # Not waited for: an abandoned generator may be closed by the garbage collector, in a
        # thread that holds locks which the workers need to end.
        pool.shutdown(wait=False, cancel_futures=True)


def _size(found: tuple[int, list[pa.RecordBatch]]) -> int:
    return sum(batch.nbytes for batch in found[1])


def _reading(
    plan: Plan,
    store: Store,
    metadata: TableMetadata,
    columns: Schema,
    schema: Schema,
    case_sensitive: bool,
    picked: Mapping[int, Rows] | None,
) -> _Reading:
    return _Reading(
        store=store,
        metadata=metadata,
        shape=metadata.shape(schema.schema_id),
        columns=tuple(columns.fields),
        out=arrow_schema(columns),
        deletes=Deletes(
            files=plan.deletes.to_pylist(),
            store=store,
            metadata=metadata,
            schema=schema,
            mapping=name_mapping(metadata.properties),
        ),
        filters=tuple(
            None
            if isinstance(left, AlwaysTrue)
            else row_filter(left, schema, case_sensitive=case_sensitive)
            for left in plan.residuals
        ),
        plan=plan,
        case_sensitive=case_sensitive,
        checksums=flag(metadata.properties, CHECKSUMS, default=True),
        picked=picked,
    )


def _open(number: int, reading: _Reading) -> _OpenTask:
    tasks = reading.plan.tasks.slice(number, 1)
    [task] = tasks.select(TASK.names).to_pylist()
    location = absolute(task["location"], reading.metadata.location)
    deletes = reading.deletes
    file = open_file(
        reading.store,
        location,
        task["file_format"],
        mapping=deletes.mapping,
        checksums=reading.checksums,
        key=task["key_metadata"],
    )
    stored = sum(group.rows for group in file.groups)
    if stored != task["record_count"]:
        raise CorruptTable(location, f"it has {stored} rows, its entry says {task['record_count']}")
    keep = reading.filters[task["residual"]]
    numbers = task["equality_deletes"] or []
    wanted = _Wanted(reading)
    paths = {id: wanted.filtered(id) for id in (keep.field_ids if keep else ())}
    matchers = tuple(deletes.matchers(numbers))
    for each in matchers:
        for key in each.keys:
            wanted.key(key)
    groups = file.groups
    if keep is not None:
        groups = groups_that_may_match(
            file, reading.plan.residuals[task["residual"]], reading.shape, reading.case_sensitive
        )
    picked = None if reading.picked is None else reading.picked[number]
    if picked is not None:
        groups = tuple(group for group in groups if _has(picked, group))
    return _OpenTask(
        number=number,
        task=task,
        location=location,
        file=file,
        rules=ReadRules(
            location=location, constants=partition_constants(tasks, task, file, reading.shape)
        ),
        groups=groups,
        wanted=wanted.fields,
        filter=keep,
        paths=paths,
        removed=deletes.removed_rows(task, location),
        matchers=matchers,
        partition=_partition(tasks, reading),
        picked=picked,
    )


def _has(picked: Rows, group: Group) -> bool:
    """Tell whether some of the rows are in a row group."""
    first, last = np.searchsorted(picked, [group.first_row, group.first_row + group.rows])
    return bool(first < last)


def _partition(tasks: pa.Table, reading: _Reading) -> pa.Scalar | None:
    for field in reading.columns:
        if field.field_id == PARTITION_FIELD:
            [found] = partition_column(tasks, reading.shape).cast(arrow_type(field.field_type))
            return found
    return None


class _Wanted:
    """Columns to read, each under a name of its own: what comes out, what the filter needs."""

    def __init__(self, reading: _Reading) -> None:
        self._schema = reading.shape.schema
        self.fields: dict[str, NestedField] = {}
        for field in reading.columns:
            if field.field_id not in IDS or field.field_id in LINEAGE_IDS:
                self.fields[_name(field)] = field

    def filtered(self, field_id: int) -> tuple[str, tuple[str, ...]]:
        """Add what a filter needs of a field; return where it then stands."""
        for name, field in self.fields.items():
            path = field_path(field, field_id)
            if path is not None:
                return name, path
        # Whether a list or map is null shows only when all of it is read.
        whole = isinstance(self._schema.find_type(field_id), ListType | MapType)
        [field] = prune_columns(self._schema, {field_id}, select_full_types=whole).fields
        path = field_path(field, field_id)
        assert path is not None  # a filter is bound to fields within structs alone
        return self._add(f"filter {field_id}", field), path

    def key(self, key: KeyColumn) -> None:
        """Add what an equality delete compares."""
        self._add(_key_name(key), key.column)

    def _add(self, name: str, field: NestedField) -> str:
        self.fields.setdefault(name, field)
        return name


def _name(field: NestedField) -> str:
    return f"column {field.field_id}"


def _key_name(key: KeyColumn) -> str:
    return f"key {key.column.field_id} {'.'.join(key.path)}"


def _read(one: _OpenTask, group: Group, reading: _Reading) -> tuple[int, list[pa.RecordBatch]]:
    """Return the task's number and the live, matching rows of one row group."""
    made = []
    at = group.first_row
    for batch in one.file.read(group, list(one.wanted.values()), one.rules):
        found = _finish(one, batch, at, reading)
        at += batch.num_rows
        if found.num_rows:
            made.append(found)
    return one.number, made


def _finish(one: _OpenTask, batch: pa.RecordBatch, at: int, reading: _Reading) -> pa.RecordBatch:
    size = batch.num_rows
    columns = dict(zip(one.wanted, batch.columns, strict=True))
    gone = _gone(one, columns, at, size)
    marks = any(field.field_id == DELETED_FIELD for field in reading.columns)
    kept = _kept(one, columns, None if marks else gone, at, size)
    if not reading.columns:
        return batch_of([], [], size if kept is None else int(kept.sum()))
    # What does not come out is left out first: metadata columns are made of what does.
    rows = np.arange(at, at + size) if kept is None else at + np.flatnonzero(kept)
    mask = None if kept is None else pa.array(kept)
    arrays = []
    for field in reading.columns:
        own = columns.get(_name(field))
        if own is not None and mask is not None:
            own = own.filter(mask)
        arrays.append(_column(field.field_id, one, own, gone, at, rows))
    return pa.RecordBatch.from_arrays(arrays, schema=reading.out)


def _gone(one: _OpenTask, columns: dict[str, pa.Array], at: int, size: int) -> Flags:
    """Tell which rows are deleted."""
    gone = np.zeros(size, np.bool_)
    first, last = np.searchsorted(one.removed, [at, at + size])
    gone[one.removed[first:last] - at] = True
    for each in one.matchers:
        gone |= each.gone(lambda key: leaf_of(columns[_key_name(key)], key.path))
    return gone


def _kept(
    one: _OpenTask, columns: dict[str, pa.Array], gone: Flags | None, at: int, size: int
) -> Flags | None:
    """Tell which rows come out; None for all of them."""
    kept = np.ones(size, np.bool_) if gone is None else ~gone
    if one.picked is not None:
        first, last = np.searchsorted(one.picked, [at, at + size])
        chosen = np.zeros(size, np.bool_)
        chosen[one.picked[first:last] - at] = True
        kept &= chosen
    if one.filter is not None:

        def values(field_id: int) -> pa.Array:
            name, path = one.paths[field_id]
            return leaf_of(columns[name], path)

        kept &= one.filter.mask(values, size).to_numpy(zero_copy_only=False)
    return None if kept.all() else kept


def _column(
    field_id: int, one: _OpenTask, own: pa.Array | None, gone: Flags, at: int, rows: Rows
) -> pa.Array:
    """Return a column of these rows, `own` as the file has it; `gone` is of all from `at` on."""
    size = len(rows)
    if field_id == DELETED_FIELD:
        return pa.array(gone[rows - at])
    if field_id == PARTITION_FIELD:
        return pa.repeat(one.partition, size)
    if field_id == FILE_FIELD:
        return pa.repeat(pa.scalar(one.location, pa.string()), size)
    if field_id == SPEC_ID_FIELD:
        return pa.repeat(pa.scalar(one.task["partition_spec_id"], pa.int32()), size)
    if field_id == POS_FIELD:
        return pa.array(rows)
    assert own is not None  # all else is in the file, or made as if it were
    if field_id == ROW_ID_FIELD:
        first = one.task["first_row_id"]
        return own if first is None else pc.coalesce(own, pa.array(rows + first))
    if field_id in LINEAGE_IDS:
        age = pa.scalar(one.task["sequence_number"], pa.int64())
        return pc.coalesce(own, pa.repeat(age, size))
    return own
