"""Planning with I/O: leaves read side by side, and answers of leaves kept for the next plan."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyroaring import BitMap

from icetree.spec.metadata import TableMetadata
from icetree.spec.snapshot import Snapshot
from icetree.table.files import TableFiles
from icetree.table.parallel import in_order
from icetree.tree.plan import LeafRead, Planner, read_leaf
from icetree.tree.predicates import Predicate
from icetree.tree.reading import Leaf, Reader

#: Answers of more bytes than this are not kept: a filter that matches most files is read anew.
_KEEP_BYTES = 256 * 1024
_KEEP = 1_000


def planner(
    files: TableFiles,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    where: BooleanExpression = AlwaysTrue(),  # noqa: B008 (a singleton without state)
    *,
    schema_id: int | None = None,
    **how: Any,
) -> Planner:
    """Return a planner over a snapshot of a table, `how` as for `tree.plan.Planner`.

    A leaf never changes, so what a filter finds in it is worked out once: planning again after a
    small commit reads the new root and whatever that commit changed.
    """
    schema_id = metadata.current_schema_id if schema_id is None else schema_id
    shape = metadata.shape(schema_id)
    known = partial(_read_once, files, f"{schema_id} {where!r}")
    return Planner(
        files.root(snapshot, shape, schema_id=schema_id),
        files.reader(shape),
        shape,
        where,
        root_file=(snapshot.root_manifest if snapshot else None) or "root",
        table_location=metadata.location,
        run=in_order,
        read=known,
        **how,
    )


def _read_once(
    files: TableFiles,
    asked: str,
    leaf: Leaf,
    reader: Reader,
    predicate: Predicate,
    *,
    columns: Collection[str] | None,
    removed: BitMap | None = None,
) -> LeafRead:
    """Do `read_leaf`, unless the same was asked of the leaf before."""
    key = (
        "leaf answers",
        files.location,
        leaf.location,
        leaf.sequence_number,
        asked,
        None if columns is None else frozenset(columns),
        None if removed is None else removed.serialize(),
    )
    return files.cache.derive(
        key,
        partial(read_leaf, leaf, reader, predicate, columns=columns, removed=removed),
        most=_KEEP,
        worth=lambda read: read.entries.nbytes <= _KEEP_BYTES,
    )
