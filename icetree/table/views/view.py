"""A view's handle: what it says, and the verbs that change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyiceberg.schema import Schema
from typing_extensions import Self

from icetree.catalog.base import Catalog, ViewName, parse_namespace
from icetree.errors import InvalidInput
from icetree.spec.edit import view as edit
from icetree.spec.edit.create import schema_json
from icetree.spec.edit.new_columns import SchemaLike
from icetree.spec.metadata.view import SPARK, ViewMetadata, ViewVersion
from icetree.spec.properties.values import properties_of
from icetree.spec.spelled import spelled
from icetree.store.base import Store
from icetree.surroundings import now_ms
from icetree.table.arguments import texts
from icetree.table.views.change import ViewState, change_view, newest


@spelled
class View:
    """A view of a lake, as of one of its metadata files; `lake.view(name)` gives one.

    What it changes is seen by it at once; what others change, after `refresh`.
    """

    def __init__(
        self, *, catalog: Catalog, store: Callable[[str], Store], state: ViewState
    ) -> None:
        self._catalog = catalog
        self._store = store
        self.state = state

    def __repr__(self) -> str:
        return f"View({str(self.name)!r}, {', '.join(self.texts)})"

    @property
    def name(self) -> ViewName:
        """Its full name."""
        return self.state.name

    @property
    def metadata(self) -> ViewMetadata:
        """All that it is."""
        return self.state.metadata

    @property
    def location(self) -> str:
        """The folder of its metadata files."""
        return self.metadata.location

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.metadata.schema()

    @property
    def version(self) -> ViewVersion:
        """The version that it is now."""
        return self.metadata.current

    @property
    def texts(self) -> Mapping[str, str]:
        """Its query in each dialect that it has one in."""
        return self.version.texts

    @property
    def text(self) -> str:
        """Its query in Spark's dialect; InvalidInput where it has none."""
        found = self.texts.get(SPARK)
        if found is None:
            raise InvalidInput(
                f"view {self.name} has no query in the dialect of Spark, only in that of "
                f"{', '.join(self.texts) or 'nobody'}: add one with view.replace"
            )
        return found

    @property
    def namespace(self) -> str | None:
        """Where names without a namespace are looked for in its query."""
        return ".".join(self.version.default_namespace) or None

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        return self.metadata.properties

    def refresh(self) -> Self:
        """See what others have changed; CommitConflict where it was dropped."""
        self.state = newest(self.state, self._catalog, self._store)
        return self

    def replace(
        self,
        text: str | Mapping[str, str],
        schema: SchemaLike,
        *,
        namespace: str | None = None,
        properties: Mapping[str, str] | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> Self:
        """Make it another query from now on; what it was stays in its history.

        `text` is the query in Spark's dialect, or queries by their dialects: one that it has and is
        not given is refused, unless its property `replace.drop-dialect.allowed` says otherwise.
        `properties` are set beside those that it has.
        """
        version = new_version(text, namespace, summary)
        made = schema_json(schema)
        checked = properties_of(properties or {})
        return self.change(
            lambda metadata: edit.replaced(
                metadata, version, made, properties=checked, at_ms=version.timestamp_ms
            )
        )

    def set_properties(self, properties: Mapping[str, str]) -> Self:
        """Set properties."""
        put = properties_of(properties)
        return self.change(lambda metadata: edit.with_properties(metadata, put))

    def remove_properties(self, *names: str) -> Self:
        """Remove properties; those that it has not are fine."""
        gone = texts(names, what="names")
        return self.change(lambda metadata: edit.with_properties(metadata, {}, gone))

    def rollback(self, to: int) -> Self:
        """Make a version that it remembers the current one again."""
        return self.change(partial(_as_before, id=to, at_ms=now_ms()))

    def change(self, updates: Callable[[ViewMetadata], ViewMetadata]) -> Self:
        """Make of its metadata what a function makes of it, on its newest state."""
        self.state = change_view(self.state, updates, catalog=self._catalog, store=self._store)
        return self


def new_version(
    text: str | Mapping[str, str], namespace: str | None, summary: Mapping[str, str] | None
) -> ViewVersion:
    """Return a version to be, of now."""
    return edit.view_version(
        text,
        namespace=() if namespace is None else parse_namespace(namespace),
        summary=properties_of(summary or {}),
        at_ms=now_ms(),
    )


def _as_before(metadata: ViewMetadata, *, id: int, at_ms: int) -> ViewMetadata:
    return edit.settled(metadata, edit.with_current(metadata, id, at_ms=at_ms))
