"""What of a table relies on a column, so that the column cannot just go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.expressions import Expression


def current_partitioning(metadata: TableMetadata) -> tuple[Expression, ...]:
    """Return the expressions of the default spec, without those that are void."""
    expressions, specs = metadata.partitioning
    known = {each.expr_id: each for each in expressions}
    found = (known[id] for id in specs[metadata.default_spec_id])
    return tuple(each for each in found if each.transform != "void")


def uses(metadata: TableMetadata, schema: Mapping[str, Any], ids: Collection[int]) -> Iterator[str]:
    """Yield who uses any of the columns, each with what must be done first, in words."""
    for each in current_partitioning(metadata):
        if not set(each.source_ids).isdisjoint(ids):
            yield (
                f"the table is partitioned by {each.name!r} ({each.transform} of it); "
                f"remove {each.name!r} from the partitioning first"
            )
    for order in metadata.sort_orders:
        if order.order_id == metadata.default_sort_order_id:
            for key in order.fields:
                if not set(key.sources).isdisjoint(ids):
                    yield (
                        f"the table is sorted by {key.transform} of it; change the sort order first"
                    )
    if not set(schema.get("identifier-field-ids", ())).isdisjoint(ids):
        yield "it is an identifier field; set other identifier fields first"
