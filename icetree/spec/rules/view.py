"""What makes view metadata sound: every rule, once, for reading and for writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from icetree.errors import InvalidInput
from icetree.spec.location import leads_up, no_name
from icetree.spec.metadata.view import SQL, VIEW_FORMAT_VERSION, ViewMetadata, ViewVersion
from icetree.spec.schema import columns

_HIGHEST: Final = 2**31 - 1


def broken_view_rule(metadata: ViewMetadata) -> str | None:
    """Return the first rule the metadata breaks, in words, None when it is sound."""
    for rule in _RULES:
        for broken in rule(metadata):
            return broken
    return None


def _itself(metadata: ViewMetadata) -> Iterator[str]:
    if metadata.format_version != VIEW_FORMAT_VERSION:
        yield f"format-version {metadata.format_version} is not {VIEW_FORMAT_VERSION}"
    if not metadata.location:
        yield "location is empty"
    elif leads_up(metadata.location):
        yield no_name(metadata.location)
    try:
        UUID(metadata.view_uuid)
    except ValueError:
        yield f"view-uuid {metadata.view_uuid[:60]!r} is none"


def _schemas(metadata: ViewMetadata) -> Iterator[str]:
    ids = [schema.get("schema-id") for schema in metadata.schemas]
    if not all(isinstance(id, int) and not isinstance(id, bool) for id in ids):
        yield "a schema has no schema-id"
        return
    yield from _twice(Counter(map(str, ids)), "schemas have schema-id")
    yield from filter(None, map(_broken_schema, metadata.schemas))


def _broken_schema(schema: Mapping[str, Any]) -> str | None:
    try:
        require_view_schema(schema)
    except InvalidInput as error:
        return f"schema {schema['schema-id']}: {error}"
    return None


def require_view_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no schema; ids mean nothing in one of a view, and Spark counts from 0."""
    columns.require_shallow(schema)
    found = columns.parsed({**schema, "schema-id": 0})
    for id in found.field_ids:
        if not 0 <= id <= _HIGHEST:
            raise InvalidInput(f"column id {id} is none: they go from 0 to {_HIGHEST}")


def _versions(metadata: ViewMetadata) -> Iterator[str]:
    if not metadata.versions:
        yield "there are no versions"
        return
    ids = Counter(each.version_id for each in metadata.versions)
    yield from _twice(Counter(map(str, ids.elements())), "versions have version-id")
    if metadata.current_version_id not in ids:
        yield f"current-version-id {metadata.current_version_id} is not among the versions"
    schemas = {schema["schema-id"] for schema in metadata.schemas}
    for each in metadata.versions:
        where = f"version {each.version_id}"
        if each.schema_id not in schemas:
            yield f"{where} names schema {each.schema_id}, which is not among the schemas"
        yield from (f"{where}: {broken}" for broken in broken_version_rules(each))


def broken_version_rules(version: ViewVersion) -> Iterator[str]:
    """Yield the rules that a version breaks by itself."""
    if not version.representations:
        yield "it has no representations"
    dialects: Counter[str] = Counter()
    for each in version.representations:
        if each.type != SQL:
            continue
        if not each.sql or not each.dialect:
            yield "a representation of type sql lacks its sql or its dialect"
        dialects[(each.dialect or "").lower()] += 1
    yield from _twice(dialects, "queries have dialect")


def _twice(counted: Counter[str], what: str) -> Iterator[str]:
    yield from (f"several {what} {each!r}" for each, count in counted.items() if count > 1)


_RULES: Final[tuple[Callable[[ViewMetadata], Iterator[str]], ...]] = (_itself, _schemas, _versions)
