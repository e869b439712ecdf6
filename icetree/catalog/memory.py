"""A catalog that lives and dies with its process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock

from icetree.catalog.base import (
    N,
    Namespace,
    Outcome,
    Stale,
    Swap,
    Swapped,
    TableName,
    ViewName,
)
from icetree.catalog.names import (
    check_properties,
    dotted,
    key_of,
    location_of,
    moved_on,
    new_key_of,
    no_such,
)
from icetree.catalog.turns import patiently
from icetree.errors import AlreadyExists, InvalidInput, NotFound


class MemoryCatalog:
    """Names and heads in two dicts behind a lock; the rules are those of the SQL catalogs."""

    def __init__(self, name: str = "memory") -> None:
        self._name = name
        self._lock = RLock()
        self._namespaces: dict[Namespace, dict[str, str]] = {}
        self._tables: dict[TableName, str] = {}
        self._turns: set[TableName] = set()

    @property
    def name(self) -> str:
        return self._name

    def namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        with self._lock:
            if parent:
                self._require(parent)
            depth = len(parent) + 1
            return sorted({at[:depth] for at in self._known(parent) if len(at) >= depth})

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        check_properties(properties)
        text = dotted(namespace)
        with self._lock:
            if self._known(namespace):
                raise AlreadyExists(f"namespace {text} exists already")
            self._namespaces[namespace] = dict(properties)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        with self._lock:
            self._require(namespace)
            return dict(self._namespaces.get(namespace, {}))

    def update_namespace(
        self, namespace: Namespace, *, put: Mapping[str, str], remove: Collection[str]
    ) -> None:
        check_properties(put, remove)
        with self._lock:
            self._require(namespace)
            kept = self._namespaces.get(namespace, {}).items()
            self._namespaces[namespace] = {k: v for k, v in kept if k not in remove} | dict(put)

    def drop_namespace(self, namespace: Namespace) -> None:
        with self._lock:
            self._require(namespace)
            inside = any(table.namespace == namespace for table in self._tables)
            if inside or any(len(at) > len(namespace) for at in self._known(namespace)):
                raise InvalidInput(f"namespace {dotted(namespace)} is not empty")
            del self._namespaces[namespace]

    def tables(self, namespace: Namespace) -> list[TableName]:
        with self._lock:
            self._require(namespace)
            return self._named(TableName, namespace)

    def views(self, namespace: Namespace) -> list[ViewName]:
        with self._lock:
            self._require(namespace)
            return self._named(ViewName, namespace)

    def create(self, table: TableName, metadata_location: str) -> None:
        new_key_of(table)
        location_of(metadata_location)
        with self._lock:
            self._require_free(table)
            self._tables[table] = metadata_location

    def load(self, table: TableName) -> str:
        key_of(table)
        with self._lock:
            return self._head(table)

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        key_of(table)
        location_of(to)
        with self._lock:
            head = self._head(table)
            if head != expected:
                return Stale(metadata_location=head)
            self._tables[table] = to
            return Swapped()

    def swap_all(self, swaps: Sequence[Swap]) -> Outcome:
        for each in swaps:
            (new_key_of if each.expected is None else key_of)(each.table)
            location_of(each.to)
        with self._lock:
            for each in swaps:
                if each.expected is None:
                    self._require_free(each.table)
                elif (head := self._head(each.table)) != each.expected:
                    return Stale(metadata_location=head)
            self._tables |= {each.table: each.to for each in swaps}
        return Swapped()

    def turn_taken(self, table: TableName) -> bool:
        return table in self._turns

    def turn(self, table: TableName, *, wait_s: float) -> AbstractContextManager[bool]:
        return patiently(
            lambda: self._begin_turn(table), lambda: self._turns.discard(table), wait_s=wait_s
        )

    def _begin_turn(self, table: TableName) -> bool:
        with self._lock:
            free = table not in self._turns
            self._turns.add(table)
            return free

    def drop(self, table: TableName, *, expected: str | None = None) -> None:
        key_of(table)
        with self._lock:
            if self._head(table) != (expected or self._head(table)):
                raise moved_on(table)
            del self._tables[table]

    def rename(self, table: TableName, to: TableName) -> None:
        key_of(table)
        new_key_of(to)
        with self._lock:
            head = self._head(table)
            # Whatever it is goes on being that.
            to = type(table)(to.namespace, to.name)
            self._require_free(to)
            del self._tables[table]
            self._tables[to] = head

    def close(self) -> None:
        pass

    def _head(self, table: TableName) -> str:
        try:
            return self._tables[table]
        except KeyError:
            other = next((each.kind for each in _both(table) if each in self._tables), None)
            raise no_such(table, self._name, other) from None

    def _require_free(self, table: TableName) -> None:
        self._require(table.namespace)
        for each in _both(table):
            if each in self._tables:
                raise AlreadyExists(f"{each.kind} {each} exists already")

    def _named(self, kind: type[N], namespace: Namespace) -> list[N]:
        return sorted(
            each for each in self._tables if type(each) is kind and each.namespace == namespace
        )

    def _known(self, prefix: Namespace) -> set[Namespace]:
        """Return every namespace at or below a prefix that was made, or that holds a table."""
        known = {*self._namespaces, *(table.namespace for table in self._tables)}
        return {at for at in known if at[: len(prefix)] == prefix}

    def _require(self, namespace: Namespace) -> None:
        text = dotted(namespace)
        if not self._known(namespace):
            raise NotFound(f"there is no namespace {text} in catalog {self._name}")


def _both(name: TableName) -> tuple[TableName, ViewName]:
    """Return a name as a table's and as a view's: it is one of them at most."""
    return TableName(name.namespace, name.name), ViewName(name.namespace, name.name)


class AsideCatalog(MemoryCatalog):
    """One that commits are made on before they land elsewhere, all of them or none.

    What is swapped in here is nobody's head yet: nothing may follow from it.
    """

    #: Whether each commit stores its head, with history in pages, or whoever lands them does, once.
    stores_heads: bool = True
