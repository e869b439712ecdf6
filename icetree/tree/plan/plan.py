"""Planning a scan: from a root and a predicate to tasks, still in Arrow.

Deletes come first, because what they need decides which columns of the data leaves are read.
Of each leaf only the row groups and entries that may match come out, by the one rule of `prune`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyroaring import BitMap

from icetree.errors import CorruptTable
from icetree.spec.arrays import every
from icetree.spec.entry import entry
from icetree.spec.entry.entry import (
    BASE_COLUMNS,
    POSITION,
    Content,
    Entries,
    is_content,
    is_data_dv,
    only,
)
from icetree.spec.entry.stats import parse_column
from icetree.spec.schema.shape import Shape
from icetree.tree.live import LEAF, is_live_in, placed
from icetree.tree.manifest_dvs import read_manifest_dvs, require_owners
from icetree.tree.plan.delete_stats import judged, judged_groups
from icetree.tree.plan.deletes import columns_for
from icetree.tree.plan.pointers import Deletes, Shelf, by_kind, pointers
from icetree.tree.plan.survey import survey
from icetree.tree.plan.tasks import DELETES, FILE_COLUMNS, Metrics, Plan
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Predicate
from icetree.tree.prune.prune import columns_needed, may_match, residuals
from icetree.tree.reading import Leaf, Reader

#: Columns of a data DV's entry.
_DATA_DV: Final = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "sequence_number",
    "dv_offset",
    "dv_size_in_bytes",
    "referenced_file",
    "partition_spec_id",
    "key_metadata",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRead:
    """What came of reading one leaf."""

    #: Live entries that may match, with `leaf` and `position`.
    entries: Entries
    #: How many entries were read and looked at.
    scanned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafCall:
    """What is asked of each leaf; also known by its parts, to whoever asks elsewhere."""

    read: ReadLeaf
    reader: Reader
    predicate: Predicate
    #: None for all.
    columns: Collection[str] | None
    #: Manifest DVs, by leaf.
    removed: Mapping[str, BitMap]

    def __call__(self, leaf: Leaf) -> LeafRead:
        """Return the leaf's live entries that may match."""
        removed = self.removed.get(leaf.location)
        return self.read(leaf, self.reader, self.predicate, columns=self.columns, removed=removed)


#: Applies a function to each leaf and yields the answers in order, perhaps side by side.
Run: TypeAlias = Callable[[Callable[[Leaf], "LeafRead"], Iterable[Leaf]], Iterable["LeafRead"]]


def plan(
    root: Entries,
    reader: Reader,
    shape: Shape,
    predicate: BooleanExpression = AlwaysTrue(),  # noqa: B008 (a singleton without state)
    **how: Any,
) -> Plan:
    """Return the files that may hold rows matching the predicate, each with its deletes.

    `how` is as for `Planner`.
    """
    return Planner(root, reader, shape, predicate, **how).whole()


class Planner:
    """A scan being planned: what the root tells, and the deletes, are known; leaves come next.

    `stats_columns` keeps the files' stats in the tasks: all, or those of these names, and then those
    of delete files too. With `every_row` the predicate chooses files
    alone: tasks are of all their rows, with every delete of theirs, where otherwise deletes are left
    out whose rows cannot match. `table_location` lets path bounds of old
    position delete files be used. `run` may read leaves side by side, and `read` may know the
    answer of a leaf from before: leaves never change.
    """

    def __init__(
        self,
        root: Entries,
        reader: Reader,
        shape: Shape,
        predicate: BooleanExpression | Predicate = AlwaysTrue(),  # noqa: B008 (no state)
        *,
        root_file: str = "root",
        case_sensitive: bool = True,
        stats_columns: bool | frozenset[str] = False,
        every_row: bool = False,
        table_location: str | None = None,
        run: Run = map,
        read: ReadLeaf | None = None,
    ) -> None:
        self._reader, self._shape, self._run = reader, shape, run
        self._read = read or read_leaf
        self._root_file, self._table_location = root_file, table_location
        self._stats_columns = stats_columns
        self._named = stats_columns if isinstance(stats_columns, frozenset) else frozenset[str]()
        self._bound = (
            predicate
            if isinstance(predicate, Predicate)
            else bind(predicate, shape, case_sensitive=case_sensitive)
        )
        self._of_rows = Predicate() if every_row else self._bound
        self._top = survey(root, self._bound, shape, every_row=every_row)
        leaves = (*self._top.data_leaves, *self._top.delete_leaves)
        self._removed = _removed(root, reader, leaves, root_file)
        self._delete_reads = list(run(self._deletes_in, self._top.delete_leaves))
        found = [self._top.deletes, *(read.entries for read in self._delete_reads)]
        self._deletes = by_kind(entry.concat(found))
        self._columns = (
            None
            if stats_columns is True
            else _columns_to_read(self._deletes, self._bound, shape) | self._named
        )

    @property
    def equality_deletes(self) -> pa.Table:
        """Every equality delete that may matter to some file, as `tasks.DELETES` tells."""
        return self._deletes.equality.select(DELETES.names)

    @property
    def data_dvs(self) -> Entries:
        """Every data DV that may matter to some file."""
        return self._deletes.data_dvs

    @property
    def position_deletes(self) -> Entries:
        """Every position delete file of v2 that may matter to some file."""
        return self._deletes.positions

    def whole(self) -> Plan:
        """Return the plan, all leaves read."""
        reads = list(self._run(self._files, self._top.data_leaves))
        files = [_at_root(self._top.files, self._columns), *(read.entries for read in reads)]
        return self._plan(entry.concat(files), [*self._delete_reads, *reads], self._top.metrics)

    def parts(self) -> Iterator[Plan]:
        """Yield the plan in parts that stand by themselves: the root's files, then leaf by leaf.

        A part's metrics count what came with it; those of the root come with the first.
        """
        at_root = _at_root(self._top.files, self._columns)
        yield self._plan(at_root, self._delete_reads, self._top.metrics)
        for read in self._run(self._files, self._top.data_leaves):
            if read.entries.num_rows or read.scanned:
                yield self._plan(read.entries, [read], Metrics())

    @property
    def _files(self) -> LeafCall:
        return LeafCall(
            read=self._read,
            reader=self._reader,
            predicate=self._bound,
            columns=self._columns,
            removed=self._removed,
        )

    def _deletes_in(self, leaf: Leaf) -> LeafRead:
        removed = self._removed.get(leaf.location)
        return _read_deletes(leaf, self._reader, self._of_rows, removed, self._shape)

    def _plan(self, files: Entries, reads: list[LeafRead], counted: Metrics) -> Plan:
        shelf = Shelf(stats_columns=self._named)
        pointing = pointers(
            files,
            self._deletes,
            self._shape,
            shelf,
            root_file=self._root_file,
            table_location=self._table_location,
        )
        codes, left = residuals(files, self._of_rows)
        told = self._told(files)
        tasks = pa.table(
            {
                **{name: files[name] for name in (*FILE_COLUMNS, LEAF, POSITION)},
                **pointing,
                "residual": codes,
                **{name: files[name] for name in told},
            }
        )
        return Plan(
            tasks=tasks,
            deletes=shelf.table(),
            residuals=left,
            metrics=replace(
                counted,
                leaf_entries_scanned=sum(read.scanned for read in reads),
                leaf_entries_skipped=sum(read.scanned - read.entries.num_rows for read in reads),
                data_files=tasks.num_rows,
                delete_files=shelf.count,
                dvs=tasks.num_rows - tasks["dv_location"].null_count,
            ),
        )

    def _told(self, files: Entries) -> list[str]:
        """Return the stats columns that are kept."""
        if not self._stats_columns:
            return []
        names = files.schema.names
        return [name for name in names if parse_column(name) and name in (self._named or names)]


class ReadLeaf(Protocol):
    """As `read_leaf`."""

    def __call__(
        self,
        leaf: Leaf,
        reader: Reader,
        predicate: Predicate,
        *,
        columns: Collection[str] | None,
        removed: BitMap | None = None,
    ) -> LeafRead:
        """Return a leaf's live entries that may match."""


def read_leaf(
    leaf: Leaf,
    reader: Reader,
    predicate: Predicate,
    *,
    columns: Collection[str] | None,
    removed: BitMap | None = None,
    told: Callable[[pa.Table], pa.Table] | None = None,
) -> LeafRead:
    """Return a leaf's live entries that may match: a step that needs nothing but its arguments.

    `told`, where given, leaves out of row groups and entries what a filter may not rely on.
    """
    scanned = 0

    def may(stats: pa.Table) -> pa.BooleanArray:
        return may_match(stats if told is None else told(stats), predicate)

    def keep(stats: pa.Table) -> pa.BooleanArray:
        nonlocal scanned
        if POSITION in stats.schema.names:  # those of entries, not of row groups
            scanned = stats.num_rows
        return may(stats)

    found = reader.leaf(leaf, columns=columns, keep=keep if predicate.conjuncts else None)
    kept = is_live_in(leaf, found, removed)
    if predicate.conjuncts:
        kept = pc.and_(kept, may(found))
    entries = placed(only(found, kept), leaf=leaf.location)
    return LeafRead(entries=entries, scanned=max(scanned, found.num_rows))


def _removed(
    root: Entries, reader: Reader, leaves: Collection[Leaf], root_file: str
) -> dict[str, BitMap]:
    """Return the manifest DVs of these leaves; those of others are not even decoded."""
    manifest_dvs = is_content(root, Content.MANIFEST_DV)
    if not pc.any(manifest_dvs).as_py():
        return {}
    require_owners(root, root_file=root_file)
    named = pa.array([leaf.location for leaf in leaves], pa.string())
    wanted = pc.or_(pc.invert(manifest_dvs), pc.is_in(root["referenced_file"], value_set=named))
    plain = only(root.select(list(BASE_COLUMNS)), wanted)
    return read_manifest_dvs(plain, reader, root_file=root_file)


def _read_deletes(
    leaf: Leaf, reader: Reader, predicate: Predicate, removed: BitMap | None, shape: Shape
) -> LeafRead:
    """Return a delete manifest's live entries that may matter.

    An affiliated one is skipped with its data manifest, so it may hold nothing that could apply
    to files elsewhere.
    """
    affiliated = leaf.referenced_file is not None
    columns = {*_DATA_DV, "status", POSITION} if affiliated else None

    def told(read: pa.Table) -> pa.Table:
        is_groups = POSITION not in read.schema.names
        return judged_groups(read, shape) if is_groups else judged(read, shape)

    read = read_leaf(
        leaf,
        reader,
        predicate,
        columns=columns,
        removed=removed,
        told=None if affiliated else told,
    )
    if affiliated and not every(_is_dv_of_a_file(read.entries)):
        raise CorruptTable(leaf.location, "an affiliated delete manifest may hold data DVs only")
    return read


def _is_dv_of_a_file(entries: Entries) -> pa.BooleanArray:
    return pc.and_(is_data_dv(entries), pc.is_valid(entries["referenced_file"]))


def _columns_to_read(deletes: Deletes, predicate: Predicate, shape: Shape) -> set[str]:
    matched = columns_for(deletes.equality, deletes.positions, shape)
    return {*FILE_COLUMNS, "content_type", "status", POSITION, *matched, *columns_needed(predicate)}


def _at_root(files: Entries, columns: Collection[str] | None) -> Entries:
    if columns is not None:
        files = files.select([name for name in files.schema.names if name in columns])
    return placed(files, leaf=None)
