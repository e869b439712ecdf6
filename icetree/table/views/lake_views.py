"""The verbs of a lake for its views: queries by name, kept where its tables are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from icetree.catalog.base import (
    Catalog,
    TableName,
    every_view,
    parse_name,
    parse_namespace,
    parse_view_name,
)
from icetree.errors import AlreadyExists, NotFound
from icetree.spec.edit.create import schema_json
from icetree.spec.edit.new_columns import SchemaLike
from icetree.spec.edit.view import new_view
from icetree.spec.metadata.view import ViewMetadata
from icetree.spec.spelled import spelled
from icetree.spec.texts import text as a_text
from icetree.store.base import Store
from icetree.surroundings import new_uuid
from icetree.table.naming import give_name
from icetree.table.nearest import instead_of, namespaces_instead_of, namespaces_told
from icetree.table.views.change import ViewState, read_view, write_view
from icetree.table.views.view import View, new_version


@spelled
class LakeViews(ABC):
    """What a lake can do with views; on Spark, `lake.sql` reads them."""

    if TYPE_CHECKING:
        catalog: Catalog

    @abstractmethod
    def _beside(self, location: str) -> Store:
        """Return the stores that a table at a location may name files in."""

    @abstractmethod
    def _place(self, table: TableName, location: str | None) -> str:
        """Return where a new table goes."""

    def views(self, namespace: str | None = None) -> list[str]:
        """Return the full names of the views in a namespace; without one, of all views."""
        if namespace is not None:
            inside = parse_namespace(namespace)
            with namespaces_told(inside, self.catalog):
                return [str(each) for each in self.catalog.views(inside)]
        return [str(each) for each in every_view(self.catalog)]

    def view(self, name: str) -> View:
        """Return a view's handle, on its newest state."""
        view = parse_view_name(name)
        try:
            at = self.catalog.load(view)
        except NotFound as error:
            raise NotFound(f"{error}{instead_of(view, self.catalog)}") from None
        metadata = read_view(self._beside(at), at)
        return self._view(ViewState(name=view, metadata=metadata, metadata_location=at))

    def view_exists(self, name: str) -> bool:
        """Tell whether a view has this name."""
        return self._has(parse_view_name(name))

    def create_view(
        self,
        name: str,
        text: str | Mapping[str, str],
        schema: SchemaLike,
        *,
        namespace: str | None = None,
        properties: Mapping[str, str] | None = None,
        summary: Mapping[str, str] | None = None,
        location: str | None = None,
        exist_ok: bool = False,
    ) -> View:
        """Give a name to a query; with `exist_ok`, a view that has the name is fine as it is.

        `text` is the query in Spark's dialect, or queries by their dialects. `schema` is what it
        finds, under the names that the view's columns have. Names in it that have no namespace are
        looked for in `namespace`.
        """
        view = parse_view_name(name)
        # A folder of its own, whoever has had the name or gets it next: a table that is purged
        # deletes what lies in its folder.
        place = self._place(TableName(view.namespace, f"{view.name}-{new_uuid()}"), location)
        metadata = new_view(
            new_version(text, namespace, summary),
            schema_json(schema),
            location=place,
            uuid=new_uuid(),
            properties=properties,
        )
        try:
            self._require_free(view)
            return self.make_view(name, metadata)
        except AlreadyExists:
            if exist_ok and self._has(view):
                return self.view(name)
            raise

    def make_view(self, name: str, metadata: ViewMetadata) -> View:
        """Make a view of metadata that is whole already."""
        view = parse_view_name(name)
        store = self._beside(metadata.location)
        at = write_view(store, metadata)
        give_name(self.catalog, view, at, store)
        return self._view(ViewState(name=view, metadata=metadata, metadata_location=at))

    def register_view(self, name: str, metadata_location: str) -> View:
        """Give a name to a view that is there already, by its newest metadata file."""
        view = parse_view_name(name)
        at = a_text(metadata_location, what="metadata_location")
        metadata = read_view(self._beside(at), at)
        with namespaces_told(view.namespace, self.catalog):
            self.catalog.create(view, at)
        return self._view(ViewState(name=view, metadata=metadata, metadata_location=at))

    def rename_view(self, name: str, to: str) -> None:
        """Give a view another name; what names it in a query names it no more."""
        view, target = parse_view_name(name), parse_view_name(to)
        try:
            self.catalog.rename(view, target)
        except NotFound as error:
            raise NotFound(f"{error}{self._missing(view, target)}") from None

    def drop_view(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove a view's name; with `missing_ok`, a name that no view has is fine.

        Its metadata files stay, by which `register_view` gives it a name again.
        """
        view = parse_view_name(name)
        try:
            self.catalog.drop(view)
        except NotFound as error:
            if self._has(view):
                raise
            if not missing_ok:
                raise NotFound(f"{error}{instead_of(view, self.catalog)}") from None

    # --- within ----------------------------------------------------------------------------

    def _view(self, state: ViewState) -> View:
        store: Callable[[str], Store] = self._beside
        return View(catalog=self.catalog, store=store, state=state)

    def _require_free(self, name: TableName) -> None:
        """Raise AlreadyExists for a name that a table or a view has, before anything is written."""
        text = str(name)
        for each in (parse_name(text), parse_view_name(text)):
            self._require_none(each)

    def _require_none(self, name: TableName) -> None:
        """Do `_require_free` for the kind that the name is of, alone."""
        if self._has(name):
            raise AlreadyExists(f"{name.kind} {name} exists: choose another name, or drop it")

    def _missing(self, name: TableName, to: TableName) -> str:
        """Return what there is, to follow that one cannot be renamed: it, or a namespace, is missing."""
        if self._has(name):
            return namespaces_instead_of(to.namespace, self.catalog)
        return instead_of(name, self.catalog)

    def _has(self, name: TableName) -> bool:
        try:
            self.catalog.load(name)
        except NotFound:
            return False
        return True
