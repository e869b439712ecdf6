"""The one small interface of catalogs, and the outcomes of a swap."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from icetree.errors import InvalidInput, NotFound
from icetree.spec.texts import storable

#: A namespace: its levels, outermost first.
Namespace: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table's full name."""

    #: What has such a name, in words.
    kind: ClassVar[str] = "table"

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


@dataclass(frozen=True, slots=True, order=True)
class ViewName(TableName):
    """A view's full name, which no table has at the same time.

    A catalog does with it what it does with a table's, on the view; as a name it is not equal to one.
    """

    kind: ClassVar[str] = "view"


def parse_name(text: str) -> TableName:
    """Read `db.events` or `a.b.events`: at least one namespace, no empty part."""
    *namespace, name = storable(text, what="table name").split(".")
    if not namespace or not name or not all(namespace):
        raise InvalidInput(f"{text!r} is no table name: write namespace.table, as in db.events")
    return TableName(tuple(namespace), name)


def parse_view_name(text: str) -> ViewName:
    """Read a view's name, as `parse_name` does a table's."""
    found = parse_name(text)
    return ViewName(found.namespace, found.name)


def parse_namespace(text: str) -> Namespace:
    """Read `db` or `a.b`."""
    levels = tuple(storable(text, what="namespace").split("."))
    if not all(levels):
        raise InvalidInput(f"{text!r} is no namespace: write db, or a.b for a nested one")
    return levels


N = TypeVar("N", bound=TableName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The table's head is now the new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Another commit came first; nothing was changed."""

    metadata_location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The answer was lost: the swap may have happened, or may still happen."""

    reason: str


Outcome: TypeAlias = Swapped | Stale | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One of several swaps that happen together; what expects nothing makes its table."""

    table: TableName
    expected: str | None
    to: str


class Catalog(Protocol):
    """Names tables and holds each one's head: the location of its newest metadata.json.

    Views are named and held in the same way: whatever takes a `TableName` takes a `ViewName`.

    Every method may raise InvalidInput for a name that cannot be one, and Unavailable when the
    catalog cannot be reached or stays busy; either way nothing was changed. One that changes
    something raises CommitUnknown when its answer was lost; `swap` returns Unknown instead.
    """

    @property
    def name(self) -> str:
        """The catalog's own name."""

    def namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the namespaces directly below `parent`, sorted."""

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Make a namespace; AlreadyExists."""

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties; NotFound."""

    def update_namespace(
        self, namespace: Namespace, *, put: Mapping[str, str], remove: Collection[str]
    ) -> None:
        """Set and remove properties in one step; NotFound."""

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an empty namespace; NotFound, InvalidInput when it holds something."""

    def tables(self, namespace: Namespace) -> list[TableName]:
        """Return the tables directly in a namespace, sorted; NotFound."""

    def views(self, namespace: Namespace) -> list[ViewName]:
        """Return the views directly in a namespace, sorted; NotFound."""

    def create(self, table: TableName, metadata_location: str) -> None:
        """Make a table; AlreadyExists, NotFound for its namespace, CommitUnknown.

        Unsupported for a view where the catalog's layout has no place for one.
        """

    def load(self, table: TableName) -> str:
        """Return the location of the table's newest metadata.json; NotFound."""

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        """Make `to` the head if `expected` still is; NotFound when the table is gone.

        After Unknown the same swap may be asked for again: it happens once at most, and if it
        did already, the answer is Stale with `to`, or with a head made on top of it.
        """

    def swap_all(self, swaps: Sequence[Swap]) -> Outcome:
        """Do every swap or none; NotFound, and AlreadyExists for a table that is to be made.

        Stale tells one of the heads that are others. After Unknown all or none of them happened.
        """

    def turn_taken(self, table: TableName) -> bool:
        """Tell whether another has a turn just now; False too where that cannot be learnt."""

    def turn(self, table: TableName, *, wait_s: float) -> AbstractContextManager[bool]:
        """Wait for a turn to commit, among those who ask for one; yields whether it was had.

        Advice alone: who has none may swap all the same. It ends with the block, and with the
        process. Raises nothing: a catalog that cannot give turns gives none.
        """

    def drop(self, table: TableName, *, expected: str | None = None) -> None:
        """Remove the name, if `expected` still is its head, or whatever its head is without.

        No file is touched. NotFound; CommitConflict, and nothing changed, where the head is another.
        """

    def rename(self, table: TableName, to: TableName) -> None:
        """Give a table another name; NotFound, AlreadyExists, NotFound for the namespace."""

    def close(self) -> None:
        """Let go of connections; the catalog cannot be used afterwards."""


def every_table(catalog: Catalog) -> list[TableName]:
    """Return all tables of a catalog, sorted."""
    return _in_every_namespace(catalog, catalog.tables)


def every_view(catalog: Catalog) -> list[ViewName]:
    """Return all views of a catalog, sorted."""
    return _in_every_namespace(catalog, catalog.views)


def _in_every_namespace(catalog: Catalog, listed: Callable[[Namespace], Iterable[N]]) -> list[N]:
    found: list[N] = []
    left = catalog.namespaces()
    while left:
        each = left.pop()
        # What is dropped meanwhile is not there any more.
        with suppress(NotFound):
            found += listed(each)
            left += catalog.namespaces(each)
    return sorted(found)
