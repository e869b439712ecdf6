"""What a client makes of a view: a new one, or changes of one, in the words of the protocol."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from icetree.catalog.base import ViewName
from icetree.codec.nouns import Broken
from icetree.codec.view import decode, encode, read_version
from icetree.errors import AlreadyExists, CommitConflict, CorruptTable, InvalidInput
from icetree.serve.access.places import is_same, place_of_new_view
from icetree.serve.call import Call
from icetree.serve.commit.actions import (
    Action,
    AddSchema,
    AssignUUID,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import Identifier, view_of
from icetree.serve.protocol.request import Answer
from icetree.serve.views.views import shown_view
from icetree.spec.edit.view import (
    LAST_ADDED,
    new_view,
    settled,
    with_current,
    with_properties,
    with_schema,
    with_version,
)
from icetree.spec.metadata.view import VIEW_FORMAT_VERSION, ViewMetadata, ViewVersion
from icetree.surroundings import new_uuid, now_ms

#: How many updates and requirements a request may have: each may add a version.
_MOST: Final = 100


class CreateView(Body, frozen=True, kw_only=True):
    """A view to be."""

    name: str
    schema: dict[str, Any]
    view_version: dict[str, Any]
    location: str | None = None
    properties: dict[str, str] | None = msgspec.field(default_factory=dict)


class AddViewVersion(Action, tag="add-view-version", frozen=True, kw_only=True):
    view_version: dict[str, Any]


class SetCurrentViewVersion(Action, tag="set-current-view-version", frozen=True, kw_only=True):
    view_version_id: int


ViewAction: TypeAlias = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


class AssertViewUUID(Body, tag_field="type", tag="assert-view-uuid", frozen=True, kw_only=True):
    """It is this very view."""

    uuid: str


class CommitView(Body, frozen=True, kw_only=True):
    """What a client commits to a view."""

    identifier: Identifier | None = None
    requirements: list[AssertViewUUID] = msgspec.field(default_factory=list)
    updates: list[ViewAction] = msgspec.field(default_factory=list)


_create = reads(CreateView)
_commit = reads(CommitView)


def create_view(call: Call) -> Answer:
    """Make a view."""
    asked = _create(call.request.body)
    name = view_of(call.namespace, asked.name)
    _require_free(call, name)
    # A namespace that is not there is told before anything is written.
    call.lake.catalog.namespace_properties(call.namespace)
    metadata = new_view(
        replace(_version(asked.view_version), version_id=1),
        asked.schema,
        location=place_of_new_view(call.lake, name, asked.location),
        uuid=new_uuid(),
        properties=asked.properties or {},
    )
    _require_loadable(metadata)
    return shown_view(call.lake.make_view(str(name), metadata))


def commit_view(call: Call) -> Answer:
    """Change a view: what the client requires of it holds, then its updates are made in their order."""
    asked = _commit(call.request.body)
    if len(asked.updates) > _MOST or len(asked.requirements) > _MOST:
        raise InvalidInput(f"a change of a view has {_MOST} updates and requirements at most")
    name = call.view_name
    if asked.identifier is not None and str(asked.identifier.table) != str(name):
        raise InvalidInput(f"the body is about {asked.identifier.table}, the path about {name}")
    return shown_view(call.view().change(partial(_changed, asked=asked)))


def _changed(metadata: ViewMetadata, *, asked: CommitView) -> ViewMetadata:
    """Return what a view becomes; CommitConflict where it is not the one that is meant."""
    for requirement in asked.requirements:
        if requirement.uuid != metadata.view_uuid:
            raise CommitConflict(
                f"Requirement failed: view UUID has changed: expected {requirement.uuid}, found "
                f"{metadata.view_uuid}; load it again"
            )
    step = _Step(metadata=metadata)
    for each in asked.updates:
        step = _updated(step, each)
    after = settled(metadata, step.metadata)
    _require_loadable(after)
    return after


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """A view on its way through updates, and what was added last."""

    metadata: ViewMetadata
    schema_id: int | None = None
    version_id: int | None = None


def _updated(step: _Step, update: ViewAction) -> _Step:
    metadata = step.metadata
    match update:
        case AddSchema(schema=schema):
            metadata, id = with_schema(metadata, schema)
            return replace(step, metadata=metadata, schema_id=id)
        case AddViewVersion(view_version=raw):
            version = _version(raw)
            version = replace(
                version, schema_id=_meant(version.schema_id, step.schema_id, "schema")
            )
            metadata, id = with_version(metadata, version)
            return replace(step, metadata=metadata, version_id=id)
        case SetCurrentViewVersion(view_version_id=asked):
            metadata = with_current(
                metadata, _meant(asked, step.version_id, "version"), at_ms=now_ms()
            )
        case SetProperties(updates=put):
            metadata = with_properties(metadata, put)
        case RemoveProperties(removals=gone):
            metadata = with_properties(metadata, {}, gone)
        case _:
            _require_unchanged(metadata, update)
    return replace(step, metadata=metadata)


def _require_unchanged(metadata: ViewMetadata, update: ViewAction) -> None:
    """Refuse updates of what a view is for good: its UUID, its format version and its place."""
    match update:
        case AssignUUID(uuid=uuid) if uuid != metadata.view_uuid:
            raise InvalidInput("assign-uuid: a view keeps its UUID")
        case UpgradeFormatVersion(format_version=version) if version != VIEW_FORMAT_VERSION:
            raise InvalidInput(f"views are of format version {VIEW_FORMAT_VERSION}")
        case SetLocation(location=place) if not is_same(place, metadata.location):
            raise InvalidInput(f"set-location: the view stays at {metadata.location!r}")


def _meant(asked: int, last: int | None, what: str) -> int:
    if asked != LAST_ADDED:
        return asked
    if last is None:
        raise InvalidInput(f"no {what} was added that {LAST_ADDED} could mean")
    return last


def _version(raw: dict[str, Any]) -> ViewVersion:
    try:
        return read_version(raw, "view-version")
    except Broken as error:
        raise InvalidInput(f"the body cannot be read: {error}") from None


def _require_free(call: Call, name: ViewName) -> None:
    for kind, taken in (("table", call.lake.table_exists), ("view", call.lake.view_exists)):
        if taken(str(name)):
            raise AlreadyExists(f"{kind} {name} exists already")


def _require_loadable(metadata: ViewMetadata) -> None:
    """Refuse metadata whose bytes would not be read again."""
    try:
        decode(encode(metadata), file="the view")
    except CorruptTable as error:
        raise InvalidInput(f"nobody could load the view after that: {error}") from None
