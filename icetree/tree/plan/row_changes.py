"""Which rows one snapshot inserted and deleted, as tasks that an engine runs.

A task is a data file and which of its rows: those that its own deletes leave and, where there
are deletes to be within, that one of these removes. So the rows that a new data DV deletes are
those of the file that were live before and are within the DV; nothing is read to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue

from icetree.spec.arrays import without
from icetree.spec.entry import entry
from icetree.spec.entry.entry import (
    DELETE_FILES,
    POSITION,
    Content,
    Entries,
    is_content,
    is_data_dv,
    is_data_file,
    is_live,
    only,
)
from icetree.spec.entry.stats import column
from icetree.spec.schema.shape import Shape
from icetree.spec.short import short
from icetree.tree.diff.diff import Diff
from icetree.tree.live import LEAF, live_in_leaf, live_parts
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.partitions import STATS, Rows
from icetree.tree.plan.deletes import (
    DATA_DV,
    columns_for,
    data_dvs_of,
    equality_pairs,
    position_pairs,
)
from icetree.tree.plan.pointers import Deletes, Shelf, by_kind, pointers
from icetree.tree.plan.tasks import TASK, Metrics, Plan
from icetree.tree.reading import Leaf, Reader, leaves_in

INSERT: Final = "INSERT"
DELETE: Final = "DELETE"

CHANGE_TYPE: Final = "_change_type"
_WITHIN: Final = "within_"
_POINTERS: Final = ("equality_deletes", "position_deletes")

#: Columns of a change task; stats of identity partitions follow. Every row of the file counts
#: that its DV and its deletes leave; where any `within_…` is set, only if one of those has it.
CHANGE_TASK: Final = pa.schema(
    [
        pa.field(CHANGE_TYPE, pa.string()),
        *TASK,
        *(pa.field(_WITHIN + each.name, each.type) for each in DATA_DV),
        *(TASK.field(name).with_name(_WITHIN + name) for name in _POINTERS),
    ]
)

_FILE: Final = tuple(
    name
    for name in TASK.names
    if name not in {*DATA_DV.names, *_POINTERS, LEAF, POSITION, "residual"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A snapshot's root, and what reads below it."""

    root: Entries
    reader: Reader
    root_file: str = "root"


#: Gives a tree when it is needed, which may be never.
FindTree: TypeAlias = Callable[[], Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTasks:
    """What to read to see a snapshot's row changes."""

    #: As `CHANGE_TASK`; a file is in it once for each change type at most.
    tasks: pa.Table
    #: Delete files that tasks point to by row number, as `tree.plan.DELETES`.
    deletes: pa.Table

    __repr__ = short


def as_plan(tasks: pa.Table, deletes: pa.Table) -> Plan:
    """Return change tasks as the plan of a scan: every row that a task's own deletes leave."""
    stats = [name for name in tasks.column_names if ":" in name]
    return Plan(
        tasks=tasks.select([*TASK.names, *stats]),
        deletes=deletes,
        residuals=[AlwaysTrue()],
        metrics=Metrics(),
    )


def by_those_within(tasks: pa.Table) -> pa.Table:
    """Return tasks for the rows that deletes to be within leave: theirs, no DV and no other."""
    for name in (*DATA_DV.names, *_POINTERS):
        is_dv = name in DATA_DV.names
        values = pa.nulls(tasks.num_rows, tasks[name].type) if is_dv else tasks[_WITHIN + name]
        tasks = tasks.set_column(tasks.schema.get_field_index(name), name, values)
    return tasks


def row_tasks(
    changed: Diff,
    *,
    before: FindTree,
    after: FindTree,
    shape: Shape,
    table_location: str | None = None,
) -> RowTasks:
    """Return the tasks for a snapshot that is no `replace`, deletes first.

    `before` and `after` are the trees of its parent and its own; each is asked for only where
    the changes cannot be told without. Deletes that went take no rows back, except data DVs.
    """
    shelf = Shelf()
    context = _Context(changed=changed, shape=shape, table_location=table_location, shelf=shelf)
    parts = [
        *context.of_removed(before),
        *context.of_added(after),
        *context.of_kept(before, after),
    ]
    empty = CHANGE_TASK.empty_table()
    tasks = pa.concat_tables([empty, *parts], promote_options="default")
    order = pc.sort_indices(pc.equal(tasks[CHANGE_TYPE], INSERT).cast(pa.int8()))
    return RowTasks(tasks=tasks.take(order), deletes=shelf.table())


def added_tasks(files: Entries, shape: Shape) -> RowTasks:
    """Return a scan's tasks for data files as they were added, in order, with no deletes."""
    shelf = Shelf()
    context = _Context(changed=Diff(), shape=shape, table_location=None, shelf=shelf)
    tasks = context.tasks(INSERT, files, by_kind(files.slice(0, 0)))
    own = [name for name in tasks.column_names if name in TASK.names or name in _identities(shape)]
    return RowTasks(tasks=tasks.select(own), deletes=shelf.table())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    changed: Diff
    shape: Shape
    table_location: str | None
    shelf: Shelf

    def of_removed(self, before: FindTree) -> list[pa.Table]:
        """Return tasks for the files that went: the rows that were live in them."""
        files = _data(self.changed.removed)
        if not files.num_rows:
            return []
        deletes = _deletes_of(before(), oldest=_oldest(files))
        deletes = deletes.with_data_dvs(_data_dvs(self.changed.removed))
        return [self.tasks(DELETE, files, deletes)]

    def of_added(self, after: FindTree) -> list[pa.Table]:
        """Return tasks for the files that came: the rows that are live in them."""
        files = _data(self.changed.added)
        if not files.num_rows:
            return []
        deletes = _deletes_of(after(), oldest=_oldest(files))
        deletes = deletes.with_data_dvs(_data_dvs(self.changed.added))
        return [self.tasks(INSERT, files, deletes)]

    def of_kept(self, before: FindTree, after: FindTree) -> list[pa.Table]:
        """Return tasks for files that stayed while the deletes on them changed."""
        new, old = by_kind(self.changed.added), by_kind(self.changed.removed)
        moving = _names(_data(self.changed.added), _data(self.changed.removed))
        targets = _names(new.data_dvs, old.data_dvs, column="referenced_file")
        targets = without(targets, moving).unique()
        if not len(targets) and not new.equality.num_rows and not new.positions.num_rows:
            return []
        tree = before()
        general = _deletes_of(tree)
        files = self._touched(tree, targets, moving, new, general)
        if not files.num_rows:
            return []
        held = _affiliated(tree, files).with_data_dvs(general.data_dvs, old.data_dvs)
        held = replace(general, data_dvs=held.data_dvs)
        had = data_dvs_of(files, held.data_dvs, root_file=tree.root_file)
        has = data_dvs_of(files, new.data_dvs, root_file=tree.root_file)
        tasks = self.tasks(DELETE, files, held, within=new)
        found = [tasks.filter(_is_within(tasks))]
        lost = pc.and_(
            pc.is_in(files["location"], value_set=_names(old.data_dvs, column="referenced_file")),
            # A DV that takes the place of another has its rows, so it is never smaller.
            pc.less(pc.fill_null(has["dv_cardinality"], 0), had["dv_cardinality"]),
        )
        back = only(files, lost)
        if back.num_rows:
            now = _deletes_of(after()).with_data_dvs(new.data_dvs)
            found.append(self.tasks(INSERT, back, now, within=old))
        return found

    def _touched(
        self, tree: Tree, targets: pa.Array, moving: pa.Array, new: Deletes, general: Deletes
    ) -> Entries:
        """Return the data files that stay and that changed deletes apply to."""
        equality = entry.concat([new.equality, general.equality])
        positions = entry.concat([new.positions, general.positions])
        columns = {*_FILE, "content_type", *columns_for(equality, positions, self.shape)}
        columns |= _identities(self.shape)
        only_data_dvs = not new.equality.num_rows and not new.positions.num_rows
        left = len(targets)
        parts = []
        for part in live_parts(tree.root, tree.reader, root_file=tree.root_file, columns=columns):
            data = _data(part)
            hit = pc.is_in(data["location"], value_set=targets)
            left -= pc.sum(hit).as_py() or 0
            if not only_data_dvs:
                flags = hit.to_numpy().copy()
                flags[equality_pairs(data, new.equality, self.shape).files] = True
                flags[self._reached_by_position(data, new.positions)] = True
                hit = pc.and_not(pa.array(flags), pc.is_in(data["location"], value_set=moving))
            parts.append(only(data, hit))
            if only_data_dvs and not left:
                break
        return entry.concat(parts)

    def _reached_by_position(self, files: Entries, deletes: Entries) -> Rows:
        found = position_pairs(
            files,
            deletes,
            self.shape,
            has_data_dv=np.zeros(files.num_rows, np.bool_),
            table_location=self.table_location,
        )
        return found.files

    def tasks(
        self, change: str, files: Entries, deletes: Deletes, *, within: Deletes | None = None
    ) -> pa.Table:
        size = files.num_rows
        made: dict[str, object] = {CHANGE_TYPE: pa.repeat(change, size)}
        made |= {name: files[name] for name in (*_FILE, LEAF, POSITION)}
        made |= self._pointers(files, deletes, "")
        made["residual"] = pa.repeat(pa.scalar(0, pa.int32()), size)
        if within is None:
            within = deletes.none()
        made |= self._pointers(files, within, _WITHIN)
        made |= {name: files[name] for name in _identities(self.shape) & set(files.column_names)}
        return pa.table(made)

    def _pointers(self, files: Entries, deletes: Deletes, prefix: str) -> dict[str, object]:
        found = pointers(
            files,
            deletes,
            self.shape,
            self.shelf,
            root_file=self.table_location or "root",
            table_location=self.table_location,
        )
        return {prefix + name: values for name, values in found.items()}


def _is_within(tasks: pa.Table) -> pa.ChunkedArray:
    found = pc.is_valid(tasks[_WITHIN + "dv_location"])
    for name in _POINTERS:
        some = pc.greater(pc.list_value_length(tasks[_WITHIN + name]), 0)
        found = pc.or_(found, pc.fill_null(some, False))
    return found


def _identities(shape: Shape) -> set[str]:
    """Return the stats that tell values of partition columns, which files may not hold."""
    fields = {each.stats_field for each in shape.expressions.values() if each.is_identity}
    return {column(field_id, stat) for field_id in fields for stat in STATS}


def _data(entries: Entries) -> Entries:
    return only(entries, is_data_file(entries))


def _data_dvs(entries: Entries) -> Entries:
    return only(entries, is_data_dv(entries))


def _names(*tables: Entries, column: str = "location") -> pa.Array:
    chunks = [chunk for table in tables for chunk in table[column].chunks]
    return pa.chunked_array(chunks, pa.string()).combine_chunks()


def _oldest(files: Entries) -> int:
    return int(pc.min(files["sequence_number"]).as_py() or 0)


def _deletes_of(tree: Tree, *, oldest: int = 0) -> Deletes:
    """Return live deletes that may apply to files as old as that, DVs of flushed files aside."""
    live = only(tree.root, is_live(tree.root))
    own = only(live, is_content(live, *DELETE_FILES))
    # What a manifest holds is never younger than itself, and deletes never reach ahead.
    leaves = [
        leaf
        for leaf in leaves_in(live)
        if leaf.content_type == Content.DELETE_MANIFEST
        and leaf.referenced_file is None
        and (leaf.sequence_number is None or leaf.sequence_number >= oldest)
    ]
    return by_kind(entry.concat([own, *_live_in(tree, leaves)]))


def _affiliated(tree: Tree, files: Entries) -> Deletes:
    """Return the deletes in manifests that are affiliated with the leaves of these files."""
    owners = set(files[LEAF].unique().to_pylist()) - {None}
    leaves = [
        leaf
        for leaf in leaves_in(only(tree.root, is_live(tree.root)))
        if leaf.content_type == Content.DELETE_MANIFEST and leaf.referenced_file in owners
    ]
    return by_kind(entry.concat([tree.root.slice(0, 0), *_live_in(tree, leaves)]))


def _live_in(tree: Tree, leaves: Collection[Leaf]) -> list[Entries]:
    if not leaves:
        return []
    removed = read_manifest_dvs(tree.root, tree.reader, root_file=tree.root_file)
    return [live_in_leaf(leaf, removed.get(leaf.location), tree.reader) for leaf in leaves]
