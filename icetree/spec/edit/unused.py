"""Which schemas, partition specs, sort orders and expressions of a table nothing needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from icetree.spec.metadata.layout import ExprField, PartitionField
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import (
    RemoveExpressions,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSortOrders,
    Update,
)
from icetree.spec.schema import columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What snapshots and the files in their trees speak of; None of a snapshot's schema: any."""

    schema_ids: Collection[int | None]
    spec_ids: Collection[int]
    sort_order_ids: Collection[int]
    #: Columns that equality deletes match rows by.
    column_ids: Collection[int]


def unused(metadata: TableMetadata, used: Used) -> tuple[Update, ...]:
    """Return what takes away all that is neither current nor used."""
    specs = {metadata.default_spec_id, *used.spec_ids}
    orders = {0, metadata.default_sort_order_id, *used.sort_order_ids}
    expressions = {
        field.expr_id
        for spec in metadata.partition_specs
        if spec.spec_id in specs
        for field in spec.fields
        if isinstance(field, ExprField)
    }
    sources = {*used.column_ids, *_sources(metadata, specs, orders, expressions)}
    schemas = _schemas(metadata, used, sources)
    every: tuple[Update, ...] = (
        RemovePartitionSpecs(
            spec_ids=tuple(e.spec_id for e in metadata.partition_specs if e.spec_id not in specs)
        ),
        RemoveExpressions(
            expr_ids=tuple(e.expr_id for e in metadata.expressions if e.expr_id not in expressions)
        ),
        RemoveSortOrders(
            sort_order_ids=tuple(
                e.order_id for e in metadata.sort_orders if e.order_id not in orders
            )
        ),
        RemoveSchemas(
            schema_ids=tuple(
                e["schema-id"] for e in metadata.schemas if e["schema-id"] not in schemas
            )
        ),
    )
    return tuple(each for each in every if any(getattr(each, name) for name in each.__slots__))


def _sources(
    metadata: TableMetadata, specs: set[int], orders: set[int], expressions: set[int]
) -> Iterator[int]:
    """Yield the columns that what stays is made from."""
    for spec in metadata.partition_specs:
        for field in spec.fields if spec.spec_id in specs else ():
            if isinstance(field, PartitionField):
                yield from field.sources
    for expression in metadata.expressions:
        if expression.expr_id in expressions:
            yield from expression.source_ids
    for order in metadata.sort_orders:
        for key in order.fields if order.order_id in orders else ():
            yield from key.sources


def _schemas(metadata: TableMetadata, used: Used, sources: set[int]) -> set[int]:
    """Return the schemas that stay: those in use, and for each source one that has it."""
    newest_first = sorted(metadata.schemas, key=lambda each: each["schema-id"], reverse=True)
    if None in used.schema_ids:
        return {each["schema-id"] for each in newest_first}
    kept = {metadata.current_schema_id, *(id for id in used.schema_ids if id is not None)}
    missing = set(sources)
    for schema in newest_first:
        if schema["schema-id"] in kept:
            missing -= columns.column_ids(schema)
    for schema in newest_first:
        if missing & columns.column_ids(schema):
            missing -= columns.column_ids(schema)
            kept.add(schema["schema-id"])
    return kept
