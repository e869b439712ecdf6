"""Planning a scan: from a root and a predicate to tasks, still in Arrow.

Deletes come first, because what they need decides which columns of the data leaves are read.
Of each leaf only the row groups and entries that may match come out, by the one rule of `prune`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CorruptTable
from icetree.spec import entry
from icetree.spec.entry import BASE_SCHEMA, POSITION, Content, Entries, Status
from icetree.spec.shape import Shape
from icetree.spec.stats import parse_column
from icetree.tree.bind import bind
from icetree.tree.deletes import (
    VECTOR,
    Pairs,
    columns_for,
    equality_pairs,
    position_pairs,
    vectors_of,
)
from icetree.tree.equality import prune_equality
from icetree.tree.predicates import Predicate
from icetree.tree.prune import columns_needed, may_match, residuals
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.tree.vectors import manifest_vectors

#: Columns of a task that its data file's entry has.
_FILE: Final = (
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "partition_spec_id",
    "sort_order_id",
    "sequence_number",
    "file_sequence_number",
    "first_row_id",
    "split_offsets",
    "key_metadata",
)
#: Columns of a delete file that a task points to.
_DELETE: Final = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "partition_spec_id",
    "sequence_number",
    "referenced_file",
    "split_offsets",
    "key_metadata",
    "equality_ids",
)
#: Columns of a data DV's entry.
_VECTOR: Final = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "sequence_number",
    "dv_offset",
    "dv_size_in_bytes",
    "referenced_file",
    "partition_spec_id",
)
#: Beside an entry's own columns: where it is tracked. Null `leaf` is the root.
LEAF: Final = "leaf"

#: Columns of `Plan.tasks`; stats columns follow where they were asked for.
TASK: Final = pa.schema(
    [BASE_SCHEMA.field(name) for name in _FILE]
    + [pa.field(LEAF, pa.string()), pa.field(POSITION, pa.int64())]
    + list(VECTOR)
    + [
        pa.field("equality_deletes", pa.list_(pa.int32())),
        pa.field("position_deletes", pa.list_(pa.int32())),
        pa.field("residual", pa.int32()),
    ]
)
#: Columns of `Plan.deletes`.
DELETES: Final = pa.schema([BASE_SCHEMA.field(name) for name in _DELETE])


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What planning looked at. Entries of row groups that were never read count nowhere."""

    data_leaves_total: int = 0
    data_leaves_read: int = 0
    data_leaves_skipped: int = 0
    delete_leaves_total: int = 0
    delete_leaves_read: int = 0
    delete_leaves_skipped: int = 0
    root_entries_scanned: int = 0
    root_entries_skipped: int = 0
    leaf_entries_scanned: int = 0
    leaf_entries_skipped: int = 0
    data_files: int = 0
    delete_files: int = 0
    dvs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The data files to read and what to do with their rows."""

    #: One row a data file, as `TASK` tells; the last columns point into the two lists below.
    tasks: pa.Table
    #: Equality deletes and position delete files that some task needs, as `DELETES` tells.
    deletes: pa.Table
    #: What is left to check on rows; a task's `residual` is a row number here.
    residuals: list[BooleanExpression]
    metrics: Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRead:
    """What came of reading one leaf."""

    #: Live entries that may match, with `leaf` and `position`.
    entries: Entries
    #: How many entries were read and looked at.
    scanned: int


def read_leaf(
    leaf: Leaf,
    reader: Reader,
    predicate: Predicate,
    *,
    columns: Collection[str] | None,
    removed: BitMap | None = None,
) -> LeafRead:
    """Return a leaf's live entries that may match: a step that needs nothing but its arguments."""
    found = reader.leaf(leaf, columns=columns, keep=lambda stats: may_match(stats, predicate))
    live = pc.not_equal(found["status"], int(Status.DELETED))
    if removed:
        gone = bitmap.mask(removed, leaf.record_count, file=leaf.location)
        live = pc.and_not(live, gone.take(found[POSITION].combine_chunks()))
    if predicate.conjuncts:
        live = pc.and_(live, may_match(found, predicate))
    entries = found.filter(live)
    where = pa.repeat(pa.scalar(leaf.location, pa.string()), entries.num_rows)
    return LeafRead(entries=entries.append_column(LEAF, where), scanned=found.num_rows)


def plan(
    root: Entries,
    reader: Reader,
    shape: Shape,
    predicate: BooleanExpression = AlwaysTrue(),  # noqa: B008 (it is a singleton, and frozen)
    *,
    root_file: str = "root",
    case_sensitive: bool = True,
    stats_columns: bool = False,
    table_location: str | None = None,
) -> Plan:
    """Return the files that may hold rows matching the predicate, each with its deletes.

    `stats_columns` keeps the files' stats in the tasks. `table_location` lets path bounds of old
    position delete files be used.
    """
    bound = bind(predicate, shape, case_sensitive=case_sensitive)
    scan = _Scan(root, reader, shape, bound, root_file)
    deletes = scan.deletes()
    columns = None
    if not stats_columns:
        needed = columns_for(deletes.equality, deletes.positions, shape) | columns_needed(bound)
        columns = {*_FILE, "content_type", "status", POSITION, *needed}
    files = scan.files(columns)
    return _assemble(files, deletes, scan, stats_columns, table_location)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletes:
    """Live deletes that may matter, by kind."""

    vectors: Entries
    equality: Entries
    positions: Entries


@dataclass(slots=True, kw_only=True)
class _Count:
    """Entries looked at and let go; the one thing that planning counts as it goes."""

    scanned: int = 0
    kept: int = 0
    leaves: list[int] = field(default_factory=lambda: [0, 0])


class _Scan:
    """One root being planned: its live entries by content, and the leaves that survive."""

    def __init__(
        self, root: Entries, reader: Reader, shape: Shape, predicate: Predicate, root_file: str
    ) -> None:
        self.reader, self.shape, self.predicate = reader, shape, predicate
        self.root_file = root_file
        self._live = root.filter(pc.not_equal(root["status"], int(Status.DELETED)))
        self._content = self._live["content_type"].to_numpy()
        data_leaves = self._of(Content.DATA_MANIFEST)
        self.root_files = self._kept(self._of(Content.DATA))
        self.data_leaves = leaves_in(self._kept(data_leaves))
        self.delete_leaves = self._relevant(self._of(Content.DELETE_MANIFEST))
        self.totals = (data_leaves.num_rows, len(self._rows(Content.DELETE_MANIFEST)))
        read = [leaf.location for leaf in (*self.data_leaves, *self.delete_leaves)]
        self._removed = self._vectors_on(read)
        self.scanned = self.kept = 0

    def _rows(self, *contents: Content) -> np.ndarray:
        return np.flatnonzero(np.isin(self._content, contents))

    def _of(self, *contents: Content) -> Entries:
        return self._live.take(pa.array(self._rows(*contents)))

    def _kept(self, entries: Entries) -> Entries:
        if not self.predicate.conjuncts:
            return entries
        return entries.filter(may_match(entries, self.predicate))
