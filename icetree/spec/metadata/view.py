"""Views of the Iceberg view specification: a query by name, with all that it was before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pyiceberg.schema import Schema

from icetree.errors import NotFound
from icetree.spec.noun import Int, Long, Noun
from icetree.spec.schema import columns

#: The only version of the view specification.
VIEW_FORMAT_VERSION: Final = 1
#: What a representation is that holds a query.
SQL: Final = "sql"
#: The dialect that `lake.sql` speaks.
SPARK: Final = "spark"
#: How many versions a view remembers.
HISTORY: Final = "version.history.num-entries"
DEFAULT_HISTORY: Final = 10
#: Whether a version may leave out dialects that the one before had.
DROP_DIALECT: Final = "replace.drop-dialect.allowed"


class Representation(Noun, frozen=True, kw_only=True):
    """One way to say what a view is; of types other than `sql` nothing is known here."""

    type: str
    sql: str | None = None
    dialect: str | None = None


class ViewVersion(Noun, frozen=True, kw_only=True):
    """What a view was from some time on."""

    version_id: Int
    timestamp_ms: Long
    schema_id: Int
    summary: dict[str, str]
    representations: tuple[Representation, ...]
    #: None is the catalog that has the view.
    default_catalog: str | None = None
    #: Where names without a namespace are looked for.
    default_namespace: tuple[str, ...]

    @property
    def texts(self) -> dict[str, str]:
        """The query in each dialect; what a dialect is called has no case."""
        return {
            (each.dialect or "").lower(): each.sql or ""
            for each in self.representations
            if each.type == SQL
        }

    def says_as(self, version: ViewVersion) -> bool:
        """Tell whether another is this one, but for its number and its time."""
        same = msgspec.structs.replace(
            version, version_id=self.version_id, timestamp_ms=self.timestamp_ms
        )
        return same == self


class VersionLogEntry(Noun, frozen=True, kw_only=True):
    """When a version became the current one."""

    timestamp_ms: Long
    version_id: Int


class ViewMetadata(Noun, frozen=True, kw_only=True):
    """All that a view is, as of one change; `spec.rules.view` says what makes it sound."""

    view_uuid: str
    format_version: Int
    location: str
    #: JSON objects: parsed on demand by `spec.schema.columns`.
    schemas: tuple[dict[str, Any], ...]
    current_version_id: Int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[VersionLogEntry, ...]
    properties: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def current(self) -> ViewVersion:
        """The version that the view is now."""
        return self.version(self.current_version_id)

    def version(self, version_id: int) -> ViewVersion:
        """Return a version that the view remembers; NotFound."""
        for each in self.versions:
            if each.version_id == version_id:
                return each
        raise NotFound(f"the view remembers no version {version_id}")

    def schema_json(self, version: ViewVersion | None = None) -> Mapping[str, Any]:
        """Return the columns of a version, the current one without, as JSON."""
        wanted = (version or self.current).schema_id
        for each in self.schemas:
            if each["schema-id"] == wanted:
                return each
        raise NotFound(f"the view has no schema {wanted}")

    def schema(self, version: ViewVersion | None = None) -> Schema:
        """Return the columns of a version, of the current one without."""
        return columns.parsed(self.schema_json(version))
