"""The SQL catalog: names and heads in PyIceberg's and Iceberg JDBC's tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

from icetree.catalog import sql_layout as layout
from icetree.catalog.base import (
    N,
    Namespace,
    Outcome,
    Stale,
    Swap,
    Swapped,
    TableName,
    Unknown,
    ViewName,
)
from icetree.catalog.database import Database, Duplicate, Key, Row, Transaction
from icetree.catalog.names import (
    EXISTS,
    check_properties,
    dotted,
    key_of,
    location_of,
    moved_on,
    new_key_of,
    no_such,
)
from icetree.errors import (
    AlreadyExists,
    CommitUnknown,
    CorruptTable,
    InvalidInput,
    NotFound,
    Unavailable,
    Unsupported,
)


class _Lost(Exception):
    """One of several swaps lost its race."""

    def __init__(self, table: TableName, row: Row | None) -> None:
        super().__init__(table)
        self.table = table
        self.row = row


class SqlCatalog:
    """A catalog in a database, shared with any other client that knows the layout.

    Safe for threads, processes and forked children. Each call is one transaction.
    """

    def __init__(
        self, name: str, database: Database, properties: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._database = database
        self._typed = layout.prepare(database, properties or {})

    @property
    def name(self) -> str:
        return self._name

    def namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        if parent:
            rows = self._below(self._database, dotted(parent))
            self._require(rows, parent)
        else:
            rows = self._database.rows(layout.ALL_NAMESPACES, (self._name, self._name))
        depth = len(parent) + 1
        known = (tuple(row["namespace"].split(".")) for row in rows if row["namespace"])
        return sorted({at[:depth] for at in known if len(at) >= depth})

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        check_properties(properties)
        text = dotted(namespace)
        try:
            with self._database.write() as transaction:
                if self._below(transaction, text):
                    raise AlreadyExists(f"namespace {text} exists already")
                for key, value in {**properties, EXISTS: "true"}.items():
                    transaction.run(layout.PUT_PROPERTY, (self._name, text, key, value))
        except Duplicate:
            raise AlreadyExists(f"namespace {text} exists already") from None

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        text = dotted(namespace)
        rows = self._database.rows(layout.GET_PROPERTIES, (self._name, text))
        if not rows:
            self._require(self._below(self._database, text), namespace)
        found = {row["property_key"]: row["property_value"] for row in rows}
        found.pop(EXISTS, None)
        return found

    def update_namespace(
        self, namespace: Namespace, *, put: Mapping[str, str], remove: Collection[str]
    ) -> None:
        check_properties(put, remove)
        text = dotted(namespace)
        # The mark is written anew each time: a namespace made by PyIceberg may lack it, and
        # would be gone with its last property.
        marked = {**put, EXISTS: "true"}
        with self._database.write() as transaction:
            self._require(self._below(transaction, text), namespace)
            for key in (*remove, *marked):
                transaction.run(layout.DROP_PROPERTY, (self._name, text, key))
            for key, value in marked.items():
                transaction.run(layout.PUT_PROPERTY, (self._name, text, key, value))

    def drop_namespace(self, namespace: Namespace) -> None:
        text = dotted(namespace)
        with self._database.write() as transaction:
            below = self._below(transaction, text)
            self._require(below, namespace)
            # Views count too: their rows would be left in a namespace that is gone.
            inside = transaction.rows(layout.LIST, (self._name, text))
            if inside or any(row["namespace"] != text for row in below):
                raise InvalidInput(f"namespace {text} is not empty")
            transaction.run(layout.DROP_PROPERTIES, (self._name, text))

    def tables(self, namespace: Namespace) -> list[TableName]:
        return self._named(TableName, namespace)

    def views(self, namespace: Namespace) -> list[ViewName]:
        return self._named(ViewName, namespace)

    def _named(self, kind: type[N], namespace: Namespace) -> list[N]:
        text = dotted(namespace)
        rows = self._database.rows(layout.LIST, (self._name, text))
        if not rows:
            self._require(self._below(self._database, text), namespace)
        return sorted(kind(namespace, row["table_name"]) for row in rows if _kind(row) == kind.kind)

    def create(self, table: TableName, metadata_location: str) -> None:
        location_of(metadata_location)
        try:
            with self._database.write() as transaction:
                self._insert(transaction, table, metadata_location)
        except Duplicate:
            raise self._taken(table) from None
        except CommitUnknown:
            if not self._was_created(table, metadata_location):
                raise

    def load(self, table: TableName) -> str:
        rows = self._database.rows(layout.LOAD, self._key(table))
        return self._head(table, rows[0] if rows else None)

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        key = self._key(table)
        location_of(to)
        try:
            swapped, row = self._database.swap(key, expected=expected, to=to)
        except CommitUnknown as error:
            return Unknown(reason=str(error))
        return Swapped() if swapped else Stale(metadata_location=self._head(table, row))

    def swap_all(self, swaps: Sequence[Swap]) -> Outcome:
        try:
            with self._database.write() as transaction:
                # In one order, so that no two wait for each other's rows.
                for each in sorted(swaps, key=lambda swap: key_of(swap.table)):
                    self._swap_in(transaction, each)
        except _Lost as lost:
            return Stale(metadata_location=self._head(lost.table, lost.row))
        except Duplicate:
            raise AlreadyExists("a table that was to be made exists already") from None
        except CommitUnknown as error:
            return Unknown(reason=str(error))
        return Swapped()

    def _swap_in(self, transaction: Transaction, swap: Swap) -> None:
        """Do one of several swaps, or undo them all."""
        location_of(swap.to)
        if swap.expected is None:
            self._insert(transaction, swap.table, swap.to)
            return
        key = self._key(swap.table)
        if not transaction.run(layout.SWAP, (swap.to, swap.expected, *key, swap.expected)):
            rows = transaction.rows(layout.LOAD, key)
            raise _Lost(swap.table, rows[0] if rows else None)

    def turn_taken(self, table: TableName) -> bool:
        return self._database.turn_taken(self._key(table))

    def turn(self, table: TableName, *, wait_s: float) -> AbstractContextManager[bool]:
        return self._database.turn(self._key(table), wait_s=wait_s)

    def drop(self, table: TableName, *, expected: str | None = None) -> None:
        key = self._key(table)
        with self._database.write() as transaction:
            self._require_there(transaction, table, key)
            if expected is None:
                transaction.run(layout.DROP, key)
            elif not transaction.run(layout.DROP_EXPECTED, (*key, expected)):
                raise moved_on(table)

    def rename(self, table: TableName, to: TableName) -> None:
        key = self._key(table)
        text, name = new_key_of(to)
        try:
            with self._database.write() as transaction:
                self._require_there(transaction, table, key)
                self._require(self._below(transaction, text), to.namespace)
                if transaction.rows(layout.LOAD, (self._name, text, name)):
                    raise AlreadyExists(f"{to} exists already")
                transaction.run(layout.RENAME, (text, name, *key))
        except Duplicate:
            raise AlreadyExists(f"{to} exists already") from None

    def close(self) -> None:
        self._database.close()

    def _insert(self, transaction: Transaction, table: TableName, metadata_location: str) -> None:
        text, name = new_key_of(table)
        self._require(self._below(transaction, text), table.namespace)
        row = (self._name, text, name, metadata_location)
        if self._typed:
            transaction.run(layout.INSERT_TYPED, (*row, table.kind.upper()))
        elif table.kind == TableName.kind:
            transaction.run(layout.INSERT, row)
        else:
            raise Unsupported(
                f"the database of catalog {self._name} has the first layout, which holds no views: "
                "connect with jdbc.schema-version=v1 to bring it to the next"
            )

    def _key(self, table: TableName) -> Key:
        return (self._name, *key_of(table))

    def _head(self, table: TableName, row: Row | None) -> str:
        if row is None or _kind(row) != table.kind:
            raise no_such(table, self._name, _kind(row) if row else None)
        location = row["metadata_location"]
        if not location:
            raise CorruptTable(
                f"catalog {self._name}, {table.kind} {table}", "its row has no metadata_location"
            )
        return str(location)

    def _require_there(self, transaction: Transaction, table: TableName, key: Key) -> None:
        rows = transaction.rows(layout.LOAD, key)
        if not rows or _kind(rows[0]) != table.kind:
            raise no_such(table, self._name, _kind(rows[0]) if rows else None)

    def _taken(self, table: TableName) -> AlreadyExists:
        rows = self._database.rows(layout.LOAD, self._key(table))
        return AlreadyExists(f"{_kind(rows[0]) if rows else table.kind} {table} exists already")

    def _below(self, where: Database | Transaction, text: str) -> list[Row]:
        """Return the namespaces at and below one, as far as rows tell of them."""
        prefix = f"{text}."
        one = (self._name, text, len(prefix), prefix)
        return where.rows(layout.NAMESPACES, one * 2)

    def _require(self, found: list[Row], namespace: Namespace) -> None:
        if not found:
            raise NotFound(f"there is no namespace {'.'.join(namespace)} in catalog {self._name}")

    def _was_created(self, table: TableName, metadata_location: str) -> bool:
        """Tell whether a create whose answer was lost went through; AlreadyExists."""
        try:
            found = self.load(table)
        except (NotFound, Unavailable):
            return False
        if found != metadata_location:
            raise AlreadyExists(f"{table.kind} {table} exists already")
        return True


def _kind(row: Row) -> str:
    """Return what a row is of, in words."""
    return str(row.get(layout.TYPE) or TableName.kind).lower()
