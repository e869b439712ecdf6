"""PostgreSQL as the catalog's database: for writers on many machines."""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

import psycopg
from psycopg import errors as pg
from psycopg.rows import dict_row

from icetree.catalog import sql_layout as layout
from icetree.catalog.database import Duplicate, Key, Pool, Row
from icetree.catalog.patience import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, TURN_TIMEOUT_S
from icetree.catalog.postgres_address import Address, address_of
from icetree.catalog.postgres_patience import PatientConnection
from icetree.catalog.turns import number_of
from icetree.errors import CommitUnknown, IcetreeError, Unavailable

#: Writers other than swaps take turns: what they check (is the namespace empty?) stays true.
_TURN = "SELECT pg_advisory_xact_lock(4920737461)"
#: Swaps of one table take turns where they would lose otherwise.
_SWAP_TURN = "SELECT pg_advisory_xact_lock(?)"
_NO_TURN = "SELECT pg_try_advisory_xact_lock_shared(?) AS free"

# One round trip: the update, and the row as it was when the statement began.
_SWAP = (
    f"WITH won AS ({layout.SWAP} RETURNING 1)"
    f" SELECT (SELECT count(*) FROM won) AS won, t.* FROM ({layout.LOAD}) AS t"
)
#: How much longer than the server's own limit its answer may take.
_GRACE_S: Final = 2.0


class PostgresDatabase:
    """A server, through a few connections; a connection that a restart broke is replaced.

    To connect takes `connect_timeout_s` at most for each host of the address, an answer
    `request_timeout_s` and a little: the server is told to give up first, and then nothing changed.
    """

    def __init__(
        self,
        uri: str,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        most: int = 4,
    ) -> None:
        self._address = address_of(
            uri, connect_timeout_s=connect_timeout_s, request_timeout_s=request_timeout_s
        )
        self._request_timeout_s = request_timeout_s
        self._pool: Pool[_Connection] = Pool(
            self._connect, _Connection.close, most=most, wait_s=request_timeout_s
        )
        self._pool.add(self._connect())
        # Who has a turn needs another connection to swap: one pool for both could run dry.
        self._turns: Pool[_Connection] = Pool(
            self._connect, _Connection.close, most=most, wait_s=TURN_TIMEOUT_S
        )

    def rows(self, sql: str, values: Sequence[object]) -> list[Row]:
        with self._lease() as connection:
            try:
                return connection.rows(sql, values)
            except Unavailable:
                # A read has no effect: one that hit a connection broken by a restart is repeated,
                # one that met silence is not.
                if not connection.raw.closed or connection.raw.was_silent:
                    raise
        with self._lease() as connection:
            return connection.rows(sql, values)

    @contextmanager
    def write(self) -> Iterator[_Connection]:
        with self._lease() as connection:
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED")
            try:
                connection.rows(_TURN)
                yield connection
            except BaseException:
                _undo(connection)
                raise
            try:
                connection.raw.execute("COMMIT")
            except psycopg.Error as error:
                raise self._after_sending(error) from None

    def swap(self, key: Key, *, expected: str, to: str) -> tuple[bool, Row | None]:
        values = (to, expected, *key, expected, *key)
        while True:
            row = self._swap_once(values)
            if row is not None and row["won"]:
                return True, None
            if row is None or row["metadata_location"] != expected:
                return False, row
            # Another's commit went first while this one waited for its row, so the statement
            # still saw the row as it was before.
            rows = self.rows(layout.LOAD, key)
            if not rows or rows[0]["metadata_location"] != expected:
                return False, rows[0] if rows else None

    def _swap_once(self, values: Sequence[object]) -> Row | None:
        with self._lease() as connection:
            try:
                rows = connection.raw.execute(_native(_SWAP), values).fetchall()
            except (pg.SerializationFailure, pg.DeadlockDetected):
                # Where the server's default isolation is stricter, a lost race is an error.
                rows = [{"won": 0, "metadata_location": values[1]}]
            except psycopg.Error as error:
                raise self._after_sending(error) from None
            return rows[0] if rows else None

    def turn_taken(self, key: Key) -> bool:
        try:
            return not self.rows(_NO_TURN, (number_of(*key),))[0]["free"]
        except Unavailable:
            return False

    @contextmanager
    def turn(self, key: Key, *, wait_s: float) -> Iterator[bool]:
        with ExitStack() as held:
            try:
                connection = held.enter_context(self._lease(self._turns))
                connection.raw.patience_s = wait_s + _GRACE_S
                connection.run("BEGIN")
                held.callback(_undo, connection)
                connection.run(f"SET LOCAL lock_timeout = {round(wait_s * 1000)}")
                connection.rows(_SWAP_TURN, (number_of(*key),))
                had = True
            except Unavailable:
                # Who goes on without a turn keeps no connection for one.
                held.close()
                had = False
            yield had

    def columns(self, table: str) -> frozenset[str]:
        rows = self.rows(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?)"
            " AND attnum > 0 AND NOT attisdropped",
            (table,),
        )
        return frozenset(row["attname"] for row in rows)

    def close(self) -> None:
        self._pool.close()
        self._turns.close()

    def _connect(self) -> _Connection:
        try:
            # Nothing is prepared on the server: a pooler may sit between, and `SELECT *` must
            # survive a column being added.
            raw: PatientConnection[Row] = PatientConnection.connect(
                **cast("dict[str, Any]", self._address.parameters),
                autocommit=True, prepare_threshold=None, row_factory=dict_row,
            )  # fmt: skip
            raw.patience_s = self._request_timeout_s + _GRACE_S
            raw.execute(_native(f"SET statement_timeout = {round(self._request_timeout_s * 1000)}"))
        except psycopg.Error as error:
            raise Unavailable(
                f"cannot connect to the catalog at {self._address.where}: "
                f"{self._address.told(error)}; check the address, and that a PostgreSQL "
                "server answers there"
            ) from None
        return _Connection(raw=raw, address=self._address)

    @contextmanager
    def _lease(self, pool: Pool[_Connection] | None = None) -> Iterator[_Connection]:
        pool = pool or self._pool
        connection = pool.take(_Connection.is_usable)
        try:
            yield connection
        finally:
            idle = psycopg.pq.TransactionStatus.IDLE
            broken = connection.raw.closed or connection.raw.info.transaction_status != idle
            if connection.raw.was_silent:
                # The others lead to the same server, and would be as silent for as long.
                self._pool.close_idle()
            pool.give_back(connection, broken=broken)

    def _after_sending(self, error: psycopg.Error) -> IcetreeError:
        """Return the error for a statement that commits: did the server say it was undone?"""
        where, why = self._address.where, self._address.told(error)
        state = error.sqlstate or ""
        if state and not state.startswith(("08", "57P", "XX", "F0", "58")) and state != "40003":
            return Unavailable(f"the catalog at {where} refused: {why}; nothing changed")
        return CommitUnknown(f"lost the catalog at {where} while committing: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connection:
    raw: PatientConnection[Row]
    address: Address

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        try:
            return self.raw.execute(_native(sql), values).fetchall()
        except psycopg.Error as error:
            raise self._translated(error) from None

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        try:
            return self.raw.execute(_native(sql), values).rowcount
        except (pg.UniqueViolation, pg.DuplicateTable, pg.DuplicateColumn) as error:
            raise Duplicate(str(error)) from error
        except psycopg.Error as error:
            raise self._translated(error) from None

    def is_usable(self) -> bool:
        """Tell whether an idle connection is quiet: a server that left has made it readable."""
        if self.raw.closed:
            return False
        readable, _, _ = select.select([self.raw.fileno()], [], [], 0)
        return not readable

    def close(self) -> None:
        with suppress(psycopg.Error):
            self.raw.close()

    def _translated(self, error: psycopg.Error) -> Unavailable:
        """Return the error for a statement that took no effect: its transaction never ended."""
        why = self.address.told(error)
        return Unavailable(f"the catalog at {self.address.where} could not be used: {why}")


def _undo(connection: _Connection) -> None:
    with suppress(psycopg.Error):
        connection.raw.execute("ROLLBACK")


@cache
def _native(sql: str) -> bytes:
    # No statement of the layout holds a % or a ? of its own.
    return sql.replace("?", "%s").encode()
