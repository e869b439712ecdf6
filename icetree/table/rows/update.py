"""UPDATE: rows that a condition is true of get new values, and stay the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from icetree.errors import InvalidInput
from icetree.rows.matching.assign import Assignment
from icetree.rows.matching.terms import Scope
from icetree.rows.schema import arrow_schema, null_array
from icetree.table.rows.change import Gone, carry_out, require_fit, with_lineage
from icetree.table.rows.condition import Condition, table_side
from icetree.table.rows.delete import found
from icetree.table.rows.target import Target


def update(target: Target, to: Mapping[str, Any], condition: Condition, *, table: str) -> int:
    """Add to the transaction that rows get new values; return how many rows do."""
    if not to:
        raise InvalidInput(f"table {table}: give at least one column to set, and its value")
    scope = Scope(sides=(table_side(target.shape),))
    setting = Assignment(to, target.shape.schema, scope, table=table)
    # A mistake shows without a row.
    require_fit(target, _updated(target, setting, _nothing(target)))
    gone = found(target, condition, list(range(target.plan.tasks.num_rows)))
    carry_out(target, gone, _new(target, setting, gone))
    return gone.count


def _nothing(target: Target) -> pa.RecordBatch:
    fields = (*target.fields, *target.lineage)
    nulls = [null_array(field.field_type, 0) for field in fields]
    return pa.RecordBatch.from_arrays(nulls, schema=arrow_schema(Schema(*fields)))


def _new(target: Target, setting: Assignment, gone: Gone) -> Iterator[pa.RecordBatch]:
    if gone:
        for _, batch in target.read(lineage=True, picked=gone):
            yield _updated(target, setting, batch)


def _updated(target: Target, setting: Assignment, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with new values; as rows they stay what they were, of this commit's age."""
    old = {field.name: batch.column(field.name) for field in target.fields}
    columns = {("target", name): values for name, values in old.items()}
    new = old | setting.values(columns, old, batch.num_rows)
    return with_lineage(target, new, batch.column(target.lineage[0].name))
