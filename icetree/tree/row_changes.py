"""Which rows one snapshot inserted and deleted, as tasks that an engine runs.

A task is a data file and which of its rows: those that its own deletes leave and, where there
are deletes to be within, that one of these removes. So the rows that a new data DV deletes are
those of the file that were live before and are within the DV; nothing is read to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec import entry
from icetree.spec.entry import POSITION, Content, Entries, is_content, is_live, is_vector
from icetree.spec.shape import Shape
from icetree.spec.stats import column
from icetree.tree.deletes import (
    VECTOR,
    Pairs,
    columns_for,
    equality_pairs,
    position_pairs,
    vectors_of,
)
from icetree.tree.diff import Diff
from icetree.tree.live import LEAF, live_in_leaf, live_parts
from icetree.tree.partitions import STATS, Flags
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.tree.tasks import DELETES, TASK
from icetree.tree.vectors import manifest_vectors

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
        *(pa.field(_WITHIN + each.name, each.type) for each in VECTOR),
        *(TASK.field(name).with_name(_WITHIN + name) for name in _POINTERS),
    ]
)

_FILE: Final = tuple(
    name
    for name in TASK.names
    if name not in {*VECTOR.names, *_POINTERS, LEAF, POSITION, "residual"}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletes:
    """Deletes by kind: data DVs, equality deletes, position delete files of v2."""

    vectors: Entries
    equality: Entries
    positions: Entries

    def with_vectors(self, *more: Entries) -> _Deletes:
        """Return these with further DVs; of two on one file the first stands."""
        every = entry.concat([*more, self.vectors])
        names = every["referenced_file"].combine_chunks()
        first = pc.index_in(names, value_set=names).to_numpy(zero_copy_only=False)
        kept = pa.array(first == np.arange(len(names)))
        return _Deletes(
            vectors=every.filter(kept), equality=self.equality, positions=self.positions
        )


@dataclass(slots=True)
class _Shelf:
    """Delete files that tasks point to, numbered as they come."""

    tables: list[pa.Table] = field(default_factory=list)
    count: int = 0

    def lists(self, pairs: Pairs, deletes: Entries, size: int) -> pa.ListArray:
        rows = np.unique(pairs.deletes)
        numbers = np.zeros(deletes.num_rows, np.int64)
        numbers[rows] = self.count + np.arange(len(rows))
        self.tables.append(deletes.select(DELETES.names).take(pa.array(rows, pa.int64())))
        self.count += len(rows)
        return pairs.lists(size, numbers)

    def table(self) -> pa.Table:
        return pa.concat_tables([DELETES.empty_table(), *self.tables])


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
    shelf = _Shelf()
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
    shelf = _Shelf()
    context = _Context(changed=Diff(), shape=shape, table_location=None, shelf=shelf)
    tasks = context.tasks(INSERT, files, _by_kind(files.slice(0, 0)))
    own = [name for name in tasks.column_names if name in TASK.names or name in _identities(shape)]
    return RowTasks(tasks=tasks.select(own), deletes=shelf.table())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    changed: Diff
    shape: Shape
    table_location: str | None
    shelf: _Shelf

    def of_removed(self, before: FindTree) -> list[pa.Table]:
        """Return tasks for the files that went: the rows that were live in them."""
        files = _data(self.changed.removed)
        if not files.num_rows:
            return []
        deletes = _deletes_of(before(), oldest=_oldest(files))
        deletes = deletes.with_vectors(_vectors(self.changed.removed))
        return [self.tasks(DELETE, files, deletes)]

    def of_added(self, after: FindTree) -> list[pa.Table]:
        """Return tasks for the files that came: the rows that are live in them."""
        files = _data(self.changed.added)
        if not files.num_rows:
            return []
        deletes = _deletes_of(after(), oldest=_oldest(files))
        deletes = deletes.with_vectors(_vectors(self.changed.added))
        return [self.tasks(INSERT, files, deletes)]

    def of_kept(self, before: FindTree, after: FindTree) -> list[pa.Table]:
        """Return tasks for files that stayed while the deletes on them changed."""
        new, old = _by_kind(self.changed.added), _by_kind(self.changed.removed)
        moving = _names(_data(self.changed.added), _data(self.changed.removed))
        targets = _names(new.vectors, old.vectors, column="referenced_file")
        targets = targets.filter(pc.invert(pc.is_in(targets, value_set=moving))).unique()
        if not len(targets) and not new.equality.num_rows and not new.positions.num_rows:
            return []
        tree = before()
        general = _deletes_of(tree)
        files = self._touched(tree, targets, moving, new, general)
        if not files.num_rows:
            return []
        held = _affiliated(tree, files).with_vectors(general.vectors, old.vectors)
        held = _Deletes(
            vectors=held.vectors, equality=general.equality, positions=general.positions
        )
        had = vectors_of(files, held.vectors, root_file=tree.root_file)
        has = vectors_of(files, new.vectors, root_file=tree.root_file)
        tasks = self.tasks(DELETE, files, held, within=new)
        found = [tasks.filter(_is_within(tasks))]
        lost = pc.and_(
            pc.is_in(files["location"], value_set=_names(old.vectors, column="referenced_file")),
            # A DV that takes the place of another has its rows, so it is never smaller.
            pc.less(pc.fill_null(has["dv_cardinality"], 0), had["dv_cardinality"]),
        )
        back = files.filter(lost)
        if back.num_rows:
            now = _deletes_of(after()).with_vectors(new.vectors)
            found.append(self.tasks(INSERT, back, now, within=old))
        return found

    def _touched(
        self, tree: Tree, targets: pa.Array, moving: pa.Array, new: _Deletes, general: _Deletes
    ) -> Entries:
        """Return the data files that stay and that changed deletes apply to."""
        equality = entry.concat([new.equality, general.equality])
        positions = entry.concat([new.positions, general.positions])
        columns = {*_FILE, "content_type", *columns_for(equality, positions, self.shape)}
        columns |= _identities(self.shape)
        only_vectors = not new.equality.num_rows and not new.positions.num_rows
        left = len(targets)
        parts = []
        for part in live_parts(tree.root, tree.reader, root_file=tree.root_file, columns=columns):
            data = _data(part)
            hit = pc.is_in(data["location"], value_set=targets)
            left -= pc.sum(hit).as_py() or 0
            if not only_vectors:
                flags = hit.to_numpy().copy()
                flags[equality_pairs(data, new.equality, self.shape).files] = True
                flags[self._positions(data, new, np.zeros(data.num_rows, np.bool_)).files] = True
                hit = pc.and_not(pa.array(flags), pc.is_in(data["location"], value_set=moving))
            parts.append(data.filter(hit))
            if only_vectors and not left:
                break
        return entry.concat(parts)

    def _positions(self, files: Entries, deletes: _Deletes, has_vector: Flags) -> Pairs:
        return position_pairs(
            files,
            deletes.positions,
            self.shape,
            has_vector=has_vector,
            table_location=self.table_location,
        )

    def tasks(
        self, change: str, files: Entries, deletes: _Deletes, *, within: _Deletes | None = None
    ) -> pa.Table:
        size = files.num_rows
        made: dict[str, object] = {CHANGE_TYPE: pa.repeat(change, size)}
        made |= {name: files[name] for name in (*_FILE, LEAF, POSITION)}
        made |= self._pointers(files, deletes, "")
        made["residual"] = pa.repeat(pa.scalar(0, pa.int32()), size)
        if within is None:
            within = _Deletes(
                vectors=deletes.vectors.slice(0, 0),
                equality=deletes.equality.slice(0, 0),
                positions=deletes.positions.slice(0, 0),
            )
        made |= self._pointers(files, within, _WITHIN)
        made |= {name: files[name] for name in _identities(self.shape) & set(files.column_names)}
        return pa.table(made)

    def _pointers(self, files: Entries, deletes: _Deletes, prefix: str) -> dict[str, object]:
        vectors = vectors_of(files, deletes.vectors, root_file=self.table_location or "root")
        has_vector = pc.is_valid(vectors["dv_location"]).to_numpy()
        equality = equality_pairs(files, deletes.equality, self.shape)
        positions = self._positions(files, deletes, has_vector)
        size = files.num_rows
        return {
            **{prefix + name: vectors[name] for name in VECTOR.names},
            prefix + "equality_deletes": self.shelf.lists(equality, deletes.equality, size),
            prefix + "position_deletes": self.shelf.lists(positions, deletes.positions, size),
        }


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
    return entries.filter(is_content(entries, Content.DATA))


def _vectors(entries: Entries) -> Entries:
    return entries.filter(is_vector(entries))


def _names(*tables: Entries, column: str = "location") -> pa.Array:
    chunks = [chunk for table in tables for chunk in table[column].chunks]
    return pa.chunked_array(chunks, pa.string()).combine_chunks()


def _oldest(files: Entries) -> int:
    return int(pc.min(files["sequence_number"]).as_py() or 0)


def _by_kind(entries: Entries) -> _Deletes:
    vectors = is_vector(entries)
    positions = pc.and_not(is_content(entries, Content.POSITION_DELETES), vectors)
    return _Deletes(
        vectors=entries.filter(vectors),
        equality=entries.filter(is_content(entries, Content.EQUALITY_DELETES)),
        positions=entries.filter(positions),
    )


def _deletes_of(tree: Tree, *, oldest: int = 0) -> _Deletes:
    """Return live deletes that may apply to files as old as that, DVs of flushed files aside."""
    live = tree.root.filter(is_live(tree.root))
    own = live.filter(is_content(live, Content.POSITION_DELETES, Content.EQUALITY_DELETES))
    # What a manifest holds is never younger than itself, and deletes never reach ahead.
    leaves = [
        leaf
        for leaf in leaves_in(live)
        if leaf.content_type == Content.DELETE_MANIFEST
        and leaf.referenced_file is None
        and (leaf.sequence_number is None or leaf.sequence_number >= oldest)
    ]
    return _by_kind(entry.concat([own, *_live_in(tree, leaves)]))


def _affiliated(tree: Tree, files: Entries) -> _Deletes:
    """Return the deletes in manifests that are affiliated with the leaves of these files."""
    owners = set(files[LEAF].unique().to_pylist()) - {None}
    leaves = [
        leaf
        for leaf in leaves_in(tree.root.filter(is_live(tree.root)))
        if leaf.content_type == Content.DELETE_MANIFEST and leaf.referenced_file in owners
    ]
    return _by_kind(entry.concat([tree.root.slice(0, 0), *_live_in(tree, leaves)]))


def _live_in(tree: Tree, leaves: Collection[Leaf]) -> list[Entries]:
    if not leaves:
        return []
    removed = manifest_vectors(tree.root, tree.reader, root_file=tree.root_file)
    return [live_in_leaf(leaf, removed.get(leaf.location), tree.reader) for leaf in leaves]
