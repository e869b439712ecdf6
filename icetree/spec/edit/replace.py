"""A table's schema and layout replaced by others; what was stays in its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from icetree.spec.edit.new_columns import Ids, SchemaLike, as_struct, struct_json
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.sort import SortEdit
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import AddSchema, SetCurrentSchema, SetProperties, Update


class Updating(Protocol):
    """Whoever takes updates one after the other, and tells what they have come to."""

    @property
    def metadata(self) -> TableMetadata: ...

    def update_metadata(self, *updates: Update) -> None: ...


def replace_layout(
    on: Updating,
    schema: SchemaLike,
    *,
    partition_by: Iterable[str] = (),
    order_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
) -> None:
    """Replace schema, partitioning and order; columns are new ones, even under an old name."""
    # First whatever rests on old columns goes.
    spec = SpecEdit(on.metadata)
    for field in spec.fields:
        spec.remove(field.name)
    on.update_metadata(*spec.updates())
    on.update_metadata(*SortEdit(on.metadata).updates())
    made = struct_json(as_struct(schema), Ids(on.metadata.last_column_id))
    newest = max(each["schema-id"] for each in on.metadata.schemas)
    on.update_metadata(AddSchema(schema={**made, "schema-id": newest + 1}), SetCurrentSchema())
    spec = SpecEdit(on.metadata)
    for term in partition_by:
        spec.add(term)
    on.update_metadata(*spec.updates())
    on.update_metadata(*SortEdit(on.metadata).by(*order_by).updates())
    if properties:
        on.update_metadata(SetProperties(updates=dict(properties)))
