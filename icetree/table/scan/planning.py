"""Planning with I/O: leaves read side by side, and answers of leaves kept for the next plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyroaring import BitMap

from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Content, Entries, is_content, is_data_dv
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.tree.plan.plan import LeafCall, LeafRead, Planner, Run, read_leaf
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Predicate
from icetree.tree.reading import Leaf, Reader

#: Bytes of answers that are kept; one of more than a sixteenth of them is read anew each time.
_KEEP_BYTES = 64 * 1024 * 1024
#: What an answer takes beside its entries: even one without any has columns.
_ANSWER_BYTES = 16 * 1024
_MATCHED = (Content.POSITION_DELETES, Content.EQUALITY_DELETES, Content.DELETE_MANIFEST)


def planner(
    files: TableFiles,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    where: BooleanExpression = AlwaysTrue(),  # noqa: B008 (a singleton without state)
    *,
    schema_id: int | None = None,
    case_sensitive: bool = True,
    stats_columns: bool | frozenset[str] = False,
    every_row: bool = False,
    run: Run | None = None,
) -> Planner:
    """Return a planner over a snapshot of a table; arguments are as for `tree.plan.Planner`.

    A leaf never changes, so what a filter finds in it is worked out once: planning again after a
    small commit reads the new root and whatever that commit changed.
    """
    shape = metadata.shape(schema_id)
    known = _Known(files, (shape.meaning, case_sensitive, repr(where)))
    bound = bind(where, shape, case_sensitive=case_sensitive)
    wanted = frozenset[str]() if isinstance(stats_columns, bool) else stats_columns
    columns = bound.columns | wanted
    root = None if stats_columns is True else _narrow_root(files, snapshot, shape, columns)
    return Planner(
        files.root(snapshot, shape, keep=True) if root is None else root,
        files.reader(shape),
        shape,
        bound,
        root_file=snapshot.root_file if snapshot else "root",
        table_location=metadata.location,
        run=side_by_side if run is None else run,
        read=known,
        stats_columns=stats_columns,
        every_row=every_row,
    )


def _narrow_root(
    files: TableFiles, snapshot: Snapshot | None, shape: Shape, columns: frozenset[str]
) -> Entries | None:
    """Return a root without stats that nobody looks at; None where all may count.

    They count where delete files are matched to data files by them.
    """
    if snapshot is None or snapshot.root_manifest is None:
        return None
    root = files.root(snapshot, shape, keep=True, stats_columns=columns)
    by_stats = pc.and_not(is_content(root, *_MATCHED), is_data_dv(root))
    return None if pc.any(by_stats).as_py() else root


@dataclass(frozen=True, slots=True)
class _Known:
    """Does `read_leaf`, unless the same was asked of the leaf before."""

    files: TableFiles
    #: Tells a filter, and the shape it is bound to, from every other.
    asked: tuple[Any, ...]

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
        return self.files.cache.derive(
            self._key(leaf, columns, removed),
            partial(read_leaf, leaf, reader, predicate, columns=columns, removed=removed),
            most=_KEEP_BYTES,
            weigh=lambda read: _ANSWER_BYTES + read.entries.nbytes,
        )

    def recall(self, call: LeafCall, leaf: Leaf) -> LeafRead | None:
        """Return the answer of a leaf from before, if it is kept."""
        removed = call.removed.get(leaf.location)
        found: LeafRead | None = self.files.cache.recall(self._key(leaf, call.columns, removed))
        return found

    def _key(
        self, leaf: Leaf, columns: Collection[str] | None, removed: BitMap | None
    ) -> tuple[Any, ...]:
        # The whole leaf: its entries inherit from what the root tells of it, and one that is
        # shared by branches may be told of in several ways.
        return (
            "leaf answers",
            self.files.location,
            leaf,
            self.asked,
            None if columns is None else frozenset(columns),
            None if removed is None else removed.serialize(),
        )


def side_by_side(call: Callable[[Leaf], LeafRead], leaves: Iterable[Leaf]) -> Iterator[LeafRead]:
    """Read leaves in threads, except those whose answers are known: these need no thread."""
    if not isinstance(call, LeafCall) or not isinstance(call.read, _Known):
        yield from in_order(call, leaves)
        return
    found = [(leaf, call.read.recall(call, leaf)) for leaf in leaves]
    fresh = iter(in_order(call, [leaf for leaf, known in found if known is None]))
    for _, known in found:
        yield next(fresh) if known is None else known
