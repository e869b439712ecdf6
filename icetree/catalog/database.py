"""What the SQL catalog asks of a database, and the connections it keeps open."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import BoundedSemaphore, Lock
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

from icetree.errors import Unavailable

#: A row by column name. Rows are read whole (`SELECT *`), so that a column which an older layout
#: lacks is a missing key and not an error, even if another process adds it meanwhile.
Row: TypeAlias = dict[str, Any]
#: catalog_name, table_namespace, table_name: the primary key of `iceberg_tables`.
Key: TypeAlias = tuple[str, str, str]


class Duplicate(Exception):
    """A row, table or column of that name is there already; the transaction is undone."""


class Transaction(Protocol):
    """Statements that take effect together. Parameters are written `?`."""

    def rows(self, sql: str, values: Sequence[object]) -> list[Row]:
        """Return what a query finds."""

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Carry out a statement and return how many rows it changed; Duplicate."""


class Database(Protocol):
    """A database that holds the layout. Every method may raise Unavailable: nothing changed."""

    def rows(self, sql: str, values: Sequence[object]) -> list[Row]:
        """Return what a query finds, outside any transaction."""

    def write(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that other `write`s wait for; an exception inside undoes it.

        CommitUnknown when the answer to its COMMIT was lost.
        """

    def swap(self, key: Key, *, expected: str, to: str) -> tuple[bool, Row | None]:
        """Point a row at its next metadata if it still names the expected one.

        Returns whether it did and, if not, the row as another left it. CommitUnknown.
        """

    def turn_taken(self, key: Key) -> bool:
        """Tell whether another has a row's turn, as `Catalog.turn_taken` says."""

    def turn(self, key: Key, *, wait_s: float) -> AbstractContextManager[bool]:
        """Wait for a row's turn, as `Catalog.turn` says."""

    def columns(self, table: str) -> frozenset[str]:
        """Return a table's column names; none when there is no such table."""

    def close(self) -> None:
        """Close every connection."""


C = TypeVar("C")


class Pool(Generic[C]):
    """Open connections, each lent to one thread at a time; a forked child starts with none."""

    def __init__(
        self, connect: Callable[[], C], close: Callable[[C], None], *, most: int, wait_s: float
    ) -> None:
        self._connect = connect
        self._close = close
        self._most = most
        self._wait_s = wait_s
        self._idle: list[C] = []
        self._closed = False
        self._renew()
        _pools.add(self)

    def take(self, usable: Callable[[C], bool] = lambda _: True) -> C:
        """Lend an idle connection that is still usable, or a new one; Unavailable."""
        if not self._slots.acquire(timeout=self._wait_s):
            raise Unavailable(
                f"all {self._most} connections to the catalog were in use for {self._wait_s:g} s"
            )
        try:
            while True:
                with self._lock:
                    if self._closed:
                        raise Unavailable("this catalog was closed")
                    if not self._idle:
                        break
                    connection = self._idle.pop()
                if usable(connection):
                    return connection
                self._close(connection)
            return self._connect()
        except BaseException:
            self._slots.release()
            raise

    def add(self, connection: C) -> None:
        """Add an idle connection that was opened outside."""
        with self._lock:
            self._idle.append(connection)

    def give_back(self, connection: C, *, broken: bool = False) -> None:
        """Take a connection back; a broken one is closed."""
        with self._lock:
            keep = not broken and not self._closed
            if keep:
                self._idle.append(connection)
        self._slots.release()
        if not keep:
            self._close(connection)

    def close_idle(self) -> None:
        """Close the connections that nobody has; who asks next gets a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._close(connection)

    def close(self) -> None:
        """Close the idle connections, and those still lent when they come back."""
        with self._lock:
            self._closed = True
        self.close_idle()

    def _renew(self) -> None:
        # Closing an inherited connection would end the parent's session or drop its file locks:
        # a child leaves them alone, and keeps them from the garbage collector.
        _inherited.extend(self._idle)
        self._idle = []
        self._lock = Lock()
        self._slots = BoundedSemaphore(self._most)


_inherited: list[object] = []
_pools: WeakSet[Pool[Any]] = WeakSet()


def _forget_inherited() -> None:
    for pool in list(_pools):
        pool._renew()  # noqa: SLF001 - the same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_inherited)
