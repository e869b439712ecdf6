"""How a branch of a table is, by its tree alone: what `optimize` decides by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue

from icetree.spec.entry.entry import MANIFESTS, is_content, is_live
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.short import short
from icetree.table.maintain.compact.options import options_of
from icetree.table.scan.planning import planner
from icetree.tree.overlap import overlap

if TYPE_CHECKING:
    from icetree.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a branch of a table is."""

    data_files: int
    data_bytes: int
    rows: int
    #: Rows that DVs mark as deleted.
    deleted_rows: int
    #: The column that rows are sorted by, and how many files of full size share a part of the range
    #: of one, on average.
    sort_column: str | None
    sort_overlap: float | None
    leaves: int
    root_entries: int
    snapshots: int

    __repr__ = short


def health_of(table: Table, branch: str) -> Health:
    """Look at a branch: its plan and its root, no data."""
    metadata, head = table.metadata, table.state.head(branch)
    plan = planner(
        table.files, metadata, head, AlwaysTrue(), stats_columns=True, every_row=True
    ).whole()
    root, files = table.files.root(head, metadata.shape()), plan.tasks
    column = sort_column(metadata)
    return Health(
        data_files=files.num_rows,
        data_bytes=total(files["file_size_in_bytes"]),
        rows=total(files["record_count"]),
        deleted_rows=total(files["dv_cardinality"]),
        sort_column=None if column is None else metadata.schema().find_column_name(column),
        sort_overlap=None if column is None else overlap_of(files, column, metadata),
        leaves=total(pc.and_(is_content(root, *MANIFESTS), is_live(root))),
        root_entries=root.num_rows,
        snapshots=sum(1 for _ in table.history()),
    )


def overlap_of(files: pa.Table, column: int, metadata: TableMetadata) -> float | None:
    """Return how far files of full size lie across each other: small ones are sorted in any case."""
    least = options_of(None, metadata).rules.min_bytes
    full = files.filter(pc.greater_equal(files["file_size_in_bytes"], least))
    return overlap(full, column, metadata.shape())


def sort_column(metadata: TableMetadata) -> int | None:
    """Return the column that rows are sorted by first, as it is."""
    order = next(
        each for each in metadata.sort_orders if each.order_id == metadata.default_sort_order_id
    )
    first = order.fields[0] if order.fields else None
    return first.sources[0] if first is not None and first.transform == "identity" else None


def total(numbers: pa.ChunkedArray) -> int:
    """Return the sum of numbers, 0 of none."""
    return pc.sum(numbers).as_py() or 0
