"""Overwriting by a filter: rows that match go, these come, in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.types import UnknownType

from icetree.errors import InvalidInput
from icetree.filters.text import predicate_text
from icetree.rows.project import leaf_of
from icetree.rows.read.filter import row_filter
from icetree.rows.write.fit import ArrowData, fitted, without_untyped
from icetree.spec.arrays import every
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.columns import field_path
from icetree.table.commit.adding import is_arrow_data
from icetree.table.commit.counts import RowCounts, rows_of
from icetree.table.rows.change import mark
from icetree.table.rows.condition import Condition
from icetree.table.rows.delete import found
from icetree.table.rows.target import Target
from icetree.tree.prune import prune
from icetree.tree.prune.bind import bind

if TYPE_CHECKING:
    from icetree.table.transaction import New


def overwrite(
    target: Target, add: New, whole: list[int], part: list[int], *, strict: bool
) -> RowCounts:
    """Add to the transaction that rows of some files go, and all of others, and new ones come.

    Return how many. Where it is `strict`, all that is new must match the target's filter too.
    """
    gone = found(target, Condition(filter=target.filter), part)
    if is_arrow_data(add):
        new = target.transaction.write(_matching(target, add) if strict else add)
    else:
        new = target.transaction.entries_of(add)
        if strict:
            _require_match(target, new)
    mark(target, gone, new, whole)
    known = RowCounts(inserted=rows_of(new), deleted=gone.count)
    return known + RowCounts(deleted=target.rows_in(whole))


def _require_match(target: Target, files: Entries) -> None:
    sure = prune.must_match(files, bind(target.filter, target.shape))
    for location in files["location"].filter(pc.invert(sure))[:1].to_pylist():
        raise InvalidInput(
            f"table {target.transaction.table_name}: {location} may hold rows that do not match "
            f"{predicate_text(target.filter)}: leave it out, or say strict=False"
        )


def _matching(target: Target, rows: ArrowData) -> Iterator[pa.RecordBatch]:
    name = target.transaction.table_name
    otherwise = ", or say strict=False"
    return matching(rows, target.filter, target.shape.schema, name=name, otherwise=otherwise)


def matching(
    rows: ArrowData,
    where: BooleanExpression,
    schema: Schema,
    *,
    name: str,
    otherwise: str = "",
) -> Iterator[pa.RecordBatch]:
    """Yield rows that match, and refuse others: they would stay when the same is overwritten again."""
    fields = [each for each in schema.fields if not isinstance(each.field_type, UnknownType)]
    test = row_filter(where, schema)
    stored = without_untyped(rows, schema.fields, table=name)
    for batch in fitted(stored, fields, table=name):

        def values(field_id: int, batch: pa.RecordBatch = batch) -> pa.Array:
            for field in fields:
                path = field_path(field, field_id)
                if path is not None:
                    return leaf_of(batch.column(field.name), path)
            return pa.nulls(batch.num_rows)  # a column without a type yet has no values

        if not every(test.mask(values, batch.num_rows)):
            raise InvalidInput(
                f"table {name}: a new row does not match {predicate_text(where)}, so it would stay "
                f"when the same is overwritten again: filter the rows first{otherwise}"
            )
        yield batch
