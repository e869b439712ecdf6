"""The first metadata of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyiceberg.schema import Schema

from icetree.errors import InvalidInput
from icetree.spec.edit import identifiers
from icetree.spec.edit.new_columns import Ids, SchemaLike, as_struct, struct_json
from icetree.spec.edit.sort import read_keys
from icetree.spec.edit.terms import Term, read_term
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.location import leads_up, no_name
from icetree.spec.metadata.layout import (
    FIRST_PARTITION_ID,
    UNSORTED,
    PartitionField,
    PartitionSpec,
    SortOrder,
)
from icetree.spec.metadata.metadata import TableMetadata, new_table
from icetree.spec.properties.values import properties_of
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema.tree import walk

#: Accepted as a property, as Iceberg's users expect, but never stored as one.
_VERSION_PROPERTY: Final = "format-version"


def table_metadata(
    schema: SchemaLike,
    *,
    location: str,
    uuid: str,
    at_ms: int,
    partition_by: Iterable[str] = (),
    order_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """Return the metadata of a new, empty v4 table; InvalidInput says what cannot be.

    Columns are numbered from 1, whatever ids they came with. `partition_by` has transforms such
    as "days(ts)"; `order_by` has keys such as "ts desc nulls last".
    """
    made = schema_json(schema)
    keys = read_keys(_texts(order_by, "order_by"), made)
    metadata = new_table(
        table_uuid=uuid,
        location=location,
        schema=made,
        at_ms=at_ms,
        spec=PartitionSpec(spec_id=0, fields=_fields(_texts(partition_by, "partition_by"), made)),
        sort_order=SortOrder(order_id=1, fields=keys) if keys else UNSORTED,
        properties=_checked(properties or {}),
    )
    if leads_up(location):
        raise InvalidInput(no_name(location))
    if (broken := broken_rule(metadata)) is not None:
        raise InvalidInput(f"such a table could not be read again: {broken}")
    return metadata


def schema_json(schema: SchemaLike) -> dict[str, Any]:
    """Return a schema as the first of a table: JSON with ids from 1."""
    ids = Ids(0)
    made = struct_json(as_struct(schema), ids)
    if isinstance(schema, Schema) and schema.identifier_field_ids:
        places = {place.id: place for place in walk(made)}
        chosen = (ids.renumbered[id] for id in schema.identifier_field_ids)
        made["identifier-field-ids"] = sorted(identifiers.required_id(places[id]) for id in chosen)
    return {**made, "schema-id": 0}


def _texts(given: Iterable[str], what: str) -> list[str]:
    if isinstance(given, str):
        raise InvalidInput(f"{what} is a list of texts: [{given!r}]")
    return list(given)


def _fields(terms: list[str], schema: Mapping[str, Any]) -> tuple[PartitionField, ...]:
    columns = {place.name: place.id for place in walk(schema)}
    seen: list[Term] = []
    for text in terms:
        term = read_term(text, schema)
        for other in seen:
            same = (other.source_ids, other.transform) == (term.source_ids, term.transform)
            if same or other.name == term.name:
                raise InvalidInput(f"partition_by has {text!r} twice")
            if term.is_time and other.is_time and term.source_ids == other.source_ids:
                raise InvalidInput(
                    f"{text!r} and {other.name!r} partition by the same time twice; "
                    "the finer one is enough"
                )
        if term.transform != "identity" and term.name in columns:
            raise InvalidInput(
                f"partition field {term.name!r} ({text}) would have the name of a column; "
                "rename the column"
            )
        seen.append(term)
    return tuple(
        PartitionField(
            source_id=term.source_ids[0] if len(term.source_ids) == 1 else None,
            source_ids=term.source_ids if len(term.source_ids) > 1 else None,
            field_id=FIRST_PARTITION_ID + at,
            name=term.name,
            transform=term.transform,
        )
        for at, term in enumerate(seen)
    )


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    properties = properties_of(given)
    if properties.get(_VERSION_PROPERTY, str(FORMAT_VERSION)) != str(FORMAT_VERSION):
        raise InvalidInput(
            f"tables are created with format version {FORMAT_VERSION}, "
            f"not {properties[_VERSION_PROPERTY]}"
        )
    return {name: value for name, value in properties.items() if name != _VERSION_PROPERTY}
