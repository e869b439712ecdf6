"""SQLite as the catalog's database: a file, durable, for many processes on one machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from icetree.catalog import sql_layout as layout
from icetree.catalog.database import Duplicate, Key, Pool, Row
from icetree.catalog.patience import REQUEST_TIMEOUT_S
from icetree.catalog.turns import by_file, number_of, taken_by_file
from icetree.errors import CommitUnknown, CorruptTable, IcetreeError, NotFound, Unavailable
from icetree.surroundings import between, elapsed_s, wait


class SqliteDatabase:
    """A database file; writers wait for each other up to `timeout_s`, readers for nobody."""

    def __init__(self, path: str | Path, *, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._path = Path(path).absolute()
        # Turns are no locks of the database's own: the swap itself needs those.
        self._turns = self._path.with_name(f"{self._path.name}-turns")
        self._timeout_s = timeout_s
        if not self._path.parent.is_dir():
            raise NotFound(f"the folder of the catalog database {self._path} does not exist")
        self._pool: Pool[_Connection] = Pool(
            lambda: self._connect("rw"), _Connection.close, most=64, wait_s=timeout_s
        )
        self._pool.add(self._connect("rwc"))

    def rows(self, sql: str, values: Sequence[object]) -> list[Row]:
        connection = self._pool.take(self._is_current)
        healthy = False
        try:
            found = connection.rows(sql, values)
            healthy = True
            return found
        finally:
            self._pool.give_back(connection, broken=not healthy)

    @contextmanager
    def write(self) -> Iterator[_Connection]:
        connection = self._pool.take(self._is_current)
        healthy = False
        try:
            self._begin(connection)
            try:
                yield connection
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.raw.execute("ROLLBACK")
                    healthy = True
                raise
            self._commit(connection)
            healthy = True
        finally:
            self._pool.give_back(connection, broken=not healthy)

    def swap(self, key: Key, *, expected: str, to: str) -> tuple[bool, Row | None]:
        with self.write() as transaction:
            if transaction.run(layout.SWAP, (to, expected, *key, expected)):
                return True, None
            rows = transaction.rows(layout.LOAD, key)
        return False, rows[0] if rows else None

    def turn_taken(self, key: Key) -> bool:
        return taken_by_file(self._turns, number_of(*key))

    def turn(self, key: Key, *, wait_s: float) -> AbstractContextManager[bool]:
        return by_file(self._turns, number_of(*key), wait_s=wait_s)

    def columns(self, table: str) -> frozenset[str]:
        rows = self.rows("SELECT name FROM pragma_table_info(?)", (table,))
        return frozenset(row["name"] for row in rows)

    def close(self) -> None:
        self._pool.close()

    def _connect(self, mode: str) -> _Connection:
        uri = f"file:{quote(str(self._path))}?mode={mode}"
        try:
            raw = sqlite3.connect(
                uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False
            )
            raw.row_factory = _by_name
            connection = _Connection(raw=raw, path=self._path, inode=_inode(self._path))
        except sqlite3.Error as error:
            raise _translated(error, self._path) from error
        try:
            # Journal mode stays with the file; a file system that cannot do WAL keeps its own
            # mode, which is as durable, only slower.
            self._patiently(connection, "PRAGMA journal_mode=WAL")
            raw.execute("PRAGMA synchronous=FULL")
            raw.execute("PRAGMA fullfsync=1")
            raw.execute(f"PRAGMA busy_timeout={int(self._timeout_s * 1000)}")
        except BaseException as error:
            raw.close()
            if isinstance(error, sqlite3.Error):
                raise _translated(error, self._path) from error
            raise
        return connection

    def _begin(self, connection: _Connection) -> None:
        try:
            connection.raw.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _translated(error, self._path) from error

    def _commit(self, connection: _Connection) -> None:
        try:
            connection.raw.execute("COMMIT")
        except sqlite3.Error as error:
            if _is_locked(error):
                # Without WAL a commit waits for readers; not having begun, it can be undone.
                with suppress(sqlite3.Error):
                    connection.raw.execute("ROLLBACK")
                    raise _translated(error, self._path) from error
            raise CommitUnknown(f"{self._path}: {error} while committing") from error

    def _patiently(self, connection: _Connection, sql: str) -> None:
        """Run a statement that SQLite's own waiting does not cover."""
        give_up = elapsed_s() + self._timeout_s
        while not self._tried(connection, sql, last=elapsed_s() > give_up):
            wait(between(0.001, 0.01))

    def _tried(self, connection: _Connection, sql: str, *, last: bool) -> bool:
        try:
            connection.raw.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            if last or not _is_locked(error):
                raise
            return False
        return True

    def _is_current(self, connection: _Connection) -> bool:
        """Tell whether the file a connection holds is the one at the path, and not a deleted one."""
        return connection.inode == _inode(self._path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connection:
    raw: sqlite3.Connection
    path: Path
    inode: int | None

    def rows(self, sql: str, values: Sequence[object]) -> list[Row]:
        try:
            return self.raw.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        try:
            return self.raw.execute(sql, values).rowcount
        except sqlite3.IntegrityError as error:
            raise Duplicate(str(error)) from error
        except sqlite3.Error as error:
            if "duplicate column" in str(error) or "already exists" in str(error):
                raise Duplicate(str(error)) from error
            raise _translated(error, self.path) from error

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.raw.close()


def _by_name(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}


def _inode(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - on the path of every call
    except OSError:
        return None


def _is_locked(error: sqlite3.Error) -> bool:
    # The error code is on the exception only since Python 3.11.
    return "locked" in str(error) or "busy" in str(error)


def _translated(error: sqlite3.Error, path: Path) -> IcetreeError:
    """Return the error for a statement that took no effect."""
    if _is_locked(error):
        return Unavailable(f"the catalog {path} stayed locked by another writer; nothing changed")
    if isinstance(
        error, sqlite3.OperationalError | sqlite3.InterfaceError | sqlite3.ProgrammingError
    ):
        return Unavailable(f"the catalog {path} could not be used: {error}; nothing changed")
    return CorruptTable(str(path), f"SQLite cannot read it: {error}")
