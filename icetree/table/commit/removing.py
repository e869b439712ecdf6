"""Which files an operation removes: those that match, those in a partition, all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression

from icetree.catalog.base import TableName
from icetree.errors import InvalidInput
from icetree.filters.text import predicate_text
from icetree.spec.arrays import every
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    POSITION,
    Content,
    Entries,
    concat,
    is_data_dv,
    is_data_file,
    keys_of,
    only,
)
from icetree.spec.location import given_form
from icetree.spec.locations import given_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.shape import Shape
from icetree.table.arguments import texts
from icetree.table.commit.counts import rows_in, rows_left_in, rows_of
from icetree.table.commit.merge import names_of
from icetree.tree.changes import REMOVED, Changes, removal
from icetree.tree.live import LEAF, live_files, placed
from icetree.tree.partitions import STATS, partition_codes, unpartitioned
from icetree.tree.plan.plan import plan
from icetree.tree.prune import prune
from icetree.tree.prune.bind import bind
from icetree.tree.reading import Reader

_NAMED = ("content_type", "location", "file_format", "referenced_file")
_COUNTED = ("record_count", "file_size_in_bytes", "dv_size_in_bytes")

#: Files to remove: `tree.changes.REMOVED` rows, or locations of data files.
Removed: TypeAlias = "pa.Table | Iterable[str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Files that an operation removes."""

    #: As `tree.changes.REMOVED` tells.
    files: pa.Table
    #: How many rows go with them; None where only a look at the rows would tell.
    rows: int | None


def named_files(files: Removed, metadata: TableMetadata) -> pa.Table:
    """Return files that a caller names, as `REMOVED` rows; InvalidInput for what names none."""
    if isinstance(files, pa.Table):
        try:
            named = files.select(REMOVED.names).cast(REMOVED)
        except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InvalidInput(
                f"files to remove: a table of {files.column_names} does not name them; give their "
                "locations, or a table as icetree.tree.changes.removal makes it"
            ) from None
        keys = given_form_array(named["key"], metadata.location)
        return named.set_column(named.schema.get_field_index("key"), REMOVED.field("key"), keys)
    names = texts(files, what="files to remove")
    return removal([given_form(name, metadata.location) for name in names])


def removal_of(files: pa.Table) -> pa.Table:
    """Return entries that carry `leaf` and `position` as rows for `Changes.removed`."""
    return pa.table(
        {
            "content_type": files["content_type"],
            "key": keys_of(files),
            "leaf": files[LEAF],
            "position": files[POSITION],
            "record_count": files["record_count"],
            "file_size_in_bytes": pc.coalesce(
                files["dv_size_in_bytes"], files["file_size_in_bytes"]
            ),
        },
        schema=REMOVED,
    )


def removal_of_tasks(tasks: pa.Table) -> pa.Table:
    """Return the data files of a plan as rows for `Changes.removed`, or for `Changes.seen`."""
    same = ("leaf", "position", "record_count", "file_size_in_bytes")
    if not isinstance(tasks, pa.Table) or not {"location", *same}.issubset(tasks.column_names):
        raise InvalidInput(f"tasks={tasks!r}: give the tasks of a plan, as scan().plan() has them")
    content = pa.repeat(pa.scalar(int(Content.DATA), pa.int32()), tasks.num_rows)
    return pa.table(
        {"content_type": content, "key": tasks["location"], **{name: tasks[name] for name in same}},
        schema=REMOVED,
    )


def emptied(tasks: pa.Table, gone: Mapping[int, Sized]) -> tuple[list[int], list[int]]:
    """Return the tasks of a plan of which no row is left when some go, and the others of those."""
    numbers = list(gone)
    touched = tasks.select(["record_count", "dv_cardinality"]).take(pa.array(numbers, pa.int64()))
    counts = pa.array([len(rows) for rows in gone.values()], pa.int64())
    left = pc.subtract(touched["record_count"], pc.fill_null(touched["dv_cardinality"], 0))
    is_empty = pc.less_equal(left, counts).to_pylist()
    whole = [task for task, empty in zip(numbers, is_empty, strict=True) if empty]
    return whole, [task for task, empty in zip(numbers, is_empty, strict=True) if not empty]


def files_matching(
    predicate: BooleanExpression,
    root: Entries,
    reader: Reader,
    shape: Shape,
    *,
    before: Changes,
    name: TableName,
    verb: str,
) -> Going:
    """Return the data files all of whose rows match; refuse when a file may match in part.

    `before` is what the transaction has added and removed so far.
    """
    found = plan(root, reader, shape, predicate)
    stays = _left(Content.DATA, found.tasks["location"], before)
    tasks = found.tasks.filter(stays)
    in_part = tasks.filter(pc.invert(found.match_whole()).filter(stays))
    bound = bind(predicate, shape)
    fresh = only(before.added, is_data_file(before.added))
    sure = prune.must_match(fresh, bound)
    unsure = pc.and_not(prune.may_match(fresh, bound), sure)
    partial = [*in_part["location"].to_pylist(), *fresh["location"].filter(unsure).to_pylist()]
    if partial:
        more = f" and {len(partial) - 1} more files" if len(partial) > 1 else ""
        raise InvalidInput(
            f"table {name}: cannot {verb} by metadata alone, since {partial[0]}{more} may hold rows "
            f"that match {predicate_text(predicate)} beside rows that do not, which a "
            f"transaction that did something else before cannot see: {verb} rows in one of its own, "
            "or choose a filter along partition boundaries"
        )
    fresh = fresh.filter(sure)
    files = [removal_of_tasks(tasks), removal_of(placed(fresh, leaf=None))]
    there = rows_in(tasks) if _only_data(before.added) else None
    return Going(
        files=pa.concat_tables(files), rows=None if there is None else there + rows_of(fresh)
    )


def in_same_partitions(
    added: Entries, root: Entries, reader: Reader, shape: Shape, *, before: Changes
) -> Going:
    """Return the data files, live or added before, in any partition that the added files are in.

    A file of an unpartitioned spec is in all of them, whatever specs older files were written with.
    """
    fields = {id for spec_id in shape.specs for id in shape.partition_fields(spec_id)}
    needed = {stats.column(id, stat) for id in fields for stat in STATS}
    everything = _there(root, reader, {"partition_spec_id", *needed}, before)
    live = only(everything, is_data_file(everything))
    new = only(added, is_data_file(added))
    if unpartitioned(new, shape).any():
        return Going(files=removal_of(live), rows=_rows(live, everything, before))
    # Two specs never share a partition, so only files of the same spec can be replaced.
    specs = pc.is_in(live["partition_spec_id"], pc.unique(new["partition_spec_id"]))
    live = live.filter(specs)
    all_rows = [np.ones(table.num_rows, np.bool_) for table in (live, new)]
    old_codes, new_codes = partition_codes([live, new], all_rows, shape)
    gone = live.filter(pa.array(np.isin(old_codes, new_codes)))
    return Going(files=removal_of(gone), rows=_rows(gone, everything, before))


def whole_table(root: Entries, reader: Reader, *, before: Changes) -> Going:
    """Return every file, live or added before; DVs go with their data files."""
    live = _there(root, reader, set(), before)
    data = only(live, is_data_file(live))
    files = removal_of(only(live, pc.invert(is_data_dv(live))))
    return Going(files=files, rows=_rows(data, live, before))


def _rows(files: Entries, there: Entries, before: Changes) -> int | None:
    """Return how many rows are in data files, of all that there is after the changes before."""
    return rows_left_in(files, there) if _only_data(before.added) else None


def _only_data(added: Entries) -> bool:
    """Tell whether files were added alone: a DV may stand in the place of an older one."""
    return every(is_data_file(added))


def _there(root: Entries, reader: Reader, columns: set[str], before: Changes) -> Entries:
    """Return what is live after the changes before, with where it is tracked."""
    wanted = {*_NAMED, *_COUNTED, *columns}
    live = live_files(root, reader, columns=wanted)
    live = live.filter(_left(live["content_type"], keys_of(live), before))
    staged = before.added
    staged = staged.select([name for name in staged.column_names if name in {*wanted, "status"}])
    return concat([live, placed(staged, leaf=None)])


def _left(
    content: Content | pa.ChunkedArray, keys: pa.ChunkedArray, before: Changes
) -> pa.ChunkedArray:
    """Tell which files the changes before did not remove."""
    gone = names_of(before.removed["content_type"], before.removed["key"])
    return pc.invert(pc.is_in(names_of(content, keys), gone))
