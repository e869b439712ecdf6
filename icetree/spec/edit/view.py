"""View metadata, changed: a version added and made the current one, the oldest ones forgotten.

Each function takes metadata and returns what it becomes, so that a change that lost its race is made
again on what won.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.metadata.view import (
    DEFAULT_HISTORY,
    DROP_DIALECT,
    HISTORY,
    SPARK,
    SQL,
    VIEW_FORMAT_VERSION,
    Representation,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
)
from icetree.spec.properties.values import flag, properties_of, whole_number
from icetree.spec.rules.view import broken_version_rules, broken_view_rule, require_view_schema
from icetree.spec.schema.columns import parsed
from icetree.spec.texts import storable, text

#: In place of an id: the one that was given last.
LAST_ADDED: Final = -1
#: Entries that the log of versions keeps, the newest.
_LOG: Final = 1_000


def view_version(
    texts: str | Mapping[str, str],
    *,
    namespace: Sequence[str] = (),
    catalog: str | None = None,
    summary: Mapping[str, str] | None = None,
    at_ms: int,
) -> ViewVersion:
    """Return a version to be; a text alone is in Spark's dialect, several are by their dialects."""
    by_dialect: Any = {SPARK: texts} if isinstance(texts, str) else texts
    if not isinstance(by_dialect, Mapping) or not by_dialect:
        raise InvalidInput(f"text={texts!r}: give a query, or queries by their dialects")
    version = ViewVersion(
        version_id=1,
        timestamp_ms=at_ms,
        schema_id=LAST_ADDED,
        summary=dict(summary or {}),
        representations=tuple(
            Representation(
                type=SQL, sql=text(query, what="text"), dialect=text(dialect, what="dialect")
            )
            for dialect, query in by_dialect.items()
        ),
        default_catalog=None if catalog is None else text(catalog, what="catalog"),
        default_namespace=tuple(storable(each, what="namespace") for each in namespace),
    )
    for broken in broken_version_rules(version):
        raise InvalidInput(f"such a view cannot be: {broken}")
    return version


def new_view(
    version: ViewVersion,
    schema: Mapping[str, Any],
    *,
    location: str,
    uuid: str,
    properties: Mapping[str, str] | None = None,
) -> ViewMetadata:
    """Return the metadata of a view with one version, which has this schema, as JSON with ids."""
    made = replace(version, schema_id=0)
    return _sound(
        ViewMetadata(
            view_uuid=uuid,
            format_version=VIEW_FORMAT_VERSION,
            location=location,
            schemas=({**_columns(schema), "schema-id": 0},),
            current_version_id=version.version_id,
            versions=(made,),
            version_log=(_now(made),),
            properties=_checked(properties or {}),
        )
    )


def with_schema(metadata: ViewMetadata, schema: Mapping[str, Any]) -> tuple[ViewMetadata, int]:
    """Return the metadata with a schema, and its id; one that is there already is not added."""
    made = _columns(schema)
    for each in metadata.schemas:
        if parsed({**each, "schema-id": 0}) == parsed({**made, "schema-id": 0}):
            return metadata, int(each["schema-id"])
    id = max((int(each["schema-id"]) for each in metadata.schemas), default=-1) + 1
    return replace(metadata, schemas=(*metadata.schemas, {**made, "schema-id": id})), id


def with_version(metadata: ViewMetadata, version: ViewVersion) -> tuple[ViewMetadata, int]:
    """Return the metadata with a version, and its id; one that says the same is used again.

    The id is the next one, whatever it came with: others would leave none for those to come.
    """
    for broken in broken_version_rules(version):
        raise InvalidInput(f"such a view cannot be: {broken}")
    for each in metadata.versions:
        if each.says_as(version):
            return metadata, each.version_id
    id = max(each.version_id for each in metadata.versions) + 1
    added = replace(version, version_id=id)
    return replace(metadata, versions=(*metadata.versions, added)), id


def with_current(metadata: ViewMetadata, id: int, *, at_ms: int) -> ViewMetadata:
    """Return the metadata with another version as the current one, which it must know."""
    if id == metadata.current_version_id:
        return metadata
    if id not in {each.version_id for each in metadata.versions}:
        raise InvalidInput(f"the view has no version {id}: add it first")
    entry = VersionLogEntry(timestamp_ms=at_ms, version_id=id)
    return replace(metadata, current_version_id=id, version_log=(*metadata.version_log, entry))


def replaced(
    metadata: ViewMetadata,
    version: ViewVersion,
    schema: Mapping[str, Any],
    *,
    properties: Mapping[str, str] | None = None,
    at_ms: int,
) -> ViewMetadata:
    """Return a view that is something else from now on; properties are set beside those it had."""
    found, schema_id = with_schema(metadata, schema)
    found, id = with_version(found, replace(version, schema_id=schema_id))
    found = with_current(found, id, at_ms=at_ms)
    return settled(metadata, with_properties(found, properties or {}))


def with_properties(
    metadata: ViewMetadata, put: Mapping[str, str], remove: Iterable[str] = ()
) -> ViewMetadata:
    """Return the metadata with properties set and removed."""
    gone = set(remove)
    kept = {name: value for name, value in metadata.properties.items() if name not in gone}
    return replace(metadata, properties=_checked({**kept, **put}))


def settled(before: ViewMetadata, after: ViewMetadata) -> ViewMetadata:
    """Return changed metadata as it may be stored: sound, and no longer than its history may be.

    InvalidInput where a dialect would be lost that readers may rely on.
    """
    lost = before.current.texts.keys() - after.current.texts.keys()
    if lost and not flag(after.properties, DROP_DIALECT, default=False):
        raise InvalidInput(
            f"the view would lose its query for {', '.join(sorted(lost))}: give that too, or set "
            f"{DROP_DIALECT}=true"
        )
    new = {e.version_id for e in after.versions} - {e.version_id for e in before.versions}
    return _sound(_shortened(after, least=len(new | {after.current_version_id})))


def _shortened(metadata: ViewMetadata, *, least: int) -> ViewMetadata:
    """Return metadata without the oldest versions, and without the log of what went before them.

    Few versions may take turns for ever: the log has an end of its own.
    """
    metadata = replace(metadata, version_log=metadata.version_log[-_LOG:])
    most = max(least, whole_number(metadata.properties, HISTORY, default=DEFAULT_HISTORY, least=1))
    if len(metadata.versions) <= most:
        return metadata
    current = metadata.current_version_id
    newest = sorted(e.version_id for e in metadata.versions if e.version_id != current)
    kept = {current, *newest[len(newest) - (most - 1) :]}
    log: list[VersionLogEntry] = []
    for entry in metadata.version_log:
        # A history with a gap in it would tell of a time that was not.
        log = [*log, entry] if entry.version_id in kept else []
    versions = tuple(each for each in metadata.versions if each.version_id in kept)
    used = {each.schema_id for each in versions}
    schemas = tuple(each for each in metadata.schemas if each["schema-id"] in used)
    return replace(metadata, versions=versions, version_log=tuple(log), schemas=schemas)


def uuid_of(given: str) -> str:
    """Return a UUID as it is stored; InvalidInput."""
    try:
        return str(UUID(given))
    except ValueError:
        raise InvalidInput(f"{given[:60]!r} is no UUID") from None


def _columns(schema: Mapping[str, Any]) -> dict[str, Any]:
    require_view_schema(schema)
    return dict(schema)


def _now(version: ViewVersion) -> VersionLogEntry:
    return VersionLogEntry(timestamp_ms=version.timestamp_ms, version_id=version.version_id)


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    found = properties_of(properties)
    whole_number(found, HISTORY, default=DEFAULT_HISTORY, least=1)
    flag(found, DROP_DIALECT, default=False)
    return found


def _sound(metadata: ViewMetadata) -> ViewMetadata:
    if (broken := broken_view_rule(metadata)) is not None:
        raise InvalidInput(f"such a view could not be read again: {broken}")
    return metadata
