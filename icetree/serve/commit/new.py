"""New tables: made at once, or staged and made by the commit that ends their transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from icetree.catalog.base import TableName
from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.serve.access.places import is_free, place_of_new, require_confined, require_place
from icetree.serve.call import Call
from icetree.serve.commit.actions import (
    AddSchema,
    AddSortOrder,
    AddSpec,
    AnyAction,
    AssignUUID,
    Order,
    SetLocation,
    Spec,
)
from icetree.serve.commit.lasting import require_loadable
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import table_of
from icetree.serve.protocol.request import Answer
from icetree.serve.tables import require_version, shown_after, shown_staged
from icetree.spec.edit.by_ids import metadata_by_ids, numbered_anew
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.values import properties_of
from icetree.surroundings import new_uuid, now_ms
from icetree.table.naming import give_name
from icetree.table.properties import check_properties
from icetree.table.table import Table

A = TypeVar("A", bound=AnyAction)

#: Accepted as properties, as Iceberg's users expect, but never stored: a new table is v4.
_NOT_KEPT: Final = frozenset({"format-version"})


class CreateTable(Body, frozen=True, kw_only=True):
    """A table to be."""

    name: str
    schema: dict[str, Any]
    location: str | None = None
    partition_spec: Spec | None = None
    write_order: Order | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = msgspec.field(default_factory=dict)


_create = reads(CreateTable)


def create_table(call: Call) -> Answer:
    """Make a table; or tell what it would be, for a client that fills it before it is made."""
    require_version(call)
    asked = _create(call.request.body)
    name = table_of(call.namespace, asked.name)
    if _exists(call, name):
        raise AlreadyExists(f"table {name} exists already")
    # A namespace that is not there is told before anything is written.
    call.lake.catalog.namespace_properties(call.namespace)
    metadata = _metadata(call, name, asked)
    if asked.stage_create:
        return shown_staged(call, metadata)
    made = call.lake.stage_table(str(name), metadata)
    give_name(call.lake.catalog, name, made.state.metadata_location, made.files.store)
    return shown_after(call, name, made)


def staged(call: Call, name: TableName, updates: Sequence[AnyAction]) -> Table:
    """Return the first state of a table that a client staged, as its updates tell it."""
    if _exists(call, name):
        raise AlreadyExists(f"table {name} exists already")
    call.lake.catalog.namespace_properties(name.namespace)
    schema = _first(updates, AddSchema)
    if schema is None:
        raise InvalidInput("a new table needs a schema: send add-schema")
    spec, order = _first(updates, AddSpec), _first(updates, AddSortOrder)
    uuid, place = _first(updates, AssignUUID), _first(updates, SetLocation)
    metadata = metadata_by_ids(
        schema.schema,
        fields=[each.noun() for each in spec.spec.fields] if spec else [],
        keys=[each.noun() for each in order.sort_order.fields] if order else [],
        location=_place(call, name, place.location if place else None),
        uuid=_uuid(uuid.uuid) if uuid else new_uuid(),
        at_ms=now_ms(),
        properties={},
    )
    require_loadable(metadata)
    return call.lake.stage_table(str(name), metadata)


def _metadata(call: Call, name: TableName, asked: CreateTable) -> TableMetadata:
    properties = _kept(asked.properties or {})
    location = place_of_new(call.lake, name, asked.location)
    require_confined(properties.items(), location)
    fields = asked.partition_spec.fields if asked.partition_spec else []
    keys = asked.write_order.fields if asked.write_order else []
    schema, numbered, sorted_by = numbered_anew(
        asked.schema, [each.noun() for each in fields], [each.noun() for each in keys]
    )
    metadata = metadata_by_ids(
        schema,
        fields=numbered,
        keys=sorted_by,
        location=location,
        uuid=new_uuid(),
        at_ms=now_ms(),
        properties=properties,
    )
    check_properties(metadata.properties, metadata)
    require_loadable(metadata)
    return metadata


def _place(call: Call, name: TableName, asked: str | None) -> str:
    """Return where a table that was staged goes: its client may have written data files there."""
    if asked is None:
        return place_of_new(call.lake, name, None)
    require_place(call.lake, name, asked)
    if not is_free(call.lake, asked.rstrip("/")):
        raise InvalidInput(f"there is a table at {asked!r} already: stage this one again")
    return asked.rstrip("/")


def _uuid(asked: str) -> str:
    try:
        return str(UUID(asked))
    except ValueError:
        raise InvalidInput(f"assign-uuid: {asked[:60]!r} is no UUID") from None


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in properties_of(properties).items() if name not in _NOT_KEPT
    }


def _exists(call: Call, name: TableName) -> bool:
    try:
        call.lake.catalog.load(name)
    except NotFound:
        return False
    return True


def _first(updates: Sequence[AnyAction], kind: type[A]) -> A | None:
    return next((each for each in updates if isinstance(each, kind)), None)
