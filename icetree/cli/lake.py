"""Which catalog is meant, opened when a command needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icetree.errors import AlreadyExists, IcetreeError, InvalidInput, NotFound

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake
    from icetree.table.lake import Lake
    from icetree.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The catalog that the options before the command name; opened when a command needs it."""

    catalog: str | None = field(repr=False)
    warehouse: str | None
    properties: tuple[str, ...] = field(default=(), repr=False)
    debug: bool = False

    @contextmanager
    def open(self, *, create: bool = False) -> Iterator[Lake]:
        """Open the catalog, and close it at the end.

        A database file that is not there is made only with `create`: whoever looks for tables
        in it has mistyped its name.
        """
        from icetree.table.lake import open_lake

        with open_lake(self.catalog, self._given(create=create)) as connection:
            yield connection

    @contextmanager
    def making(self, name: str) -> Iterator[Lake]:
        """Open the catalog for a table to be made, with its namespace: that goes if it is refused."""
        with self.open(create=True) as connection:
            namespace, is_new = name.rpartition(".")[0], False
            if namespace:
                with suppress(AlreadyExists):
                    connection.create_namespace(namespace)
                    is_new = True
            try:
                yield connection
            except IcetreeError:
                if is_new:
                    # One that has something by now is not dropped.
                    with suppress(IcetreeError):
                        connection.drop_namespace(namespace)
                raise

    @contextmanager
    def open_on_spark(self) -> Iterator[SparkLake]:
        """Open the catalog on the Spark session that runs, or else on a local one."""
        from icetree.spark import connect

        with connect(self.catalog, properties=self._given(create=False)) as connection:
            yield connection

    def _given(self, *, create: bool) -> dict[str, str]:
        """Return what the options say of the connection."""
        from icetree.catalog.config import database_file, resolve

        given = {} if self.warehouse is None else {"warehouse": self.warehouse}
        for each in self.properties:
            key, equals, value = each.partition("=")
            if not key or not equals:
                # Only its start is shown, up to what may be the value.
                name = re.match(r"[\w.-]*", each)
                raise InvalidInput(f"--property {name[0] if name else ''}: write it as KEY=VALUE")
            given[key] = value
        file = None if create else database_file(resolve(self.catalog, given))
        if file is not None and not file.exists():
            raise NotFound(
                f"there is no catalog {file}: check --catalog, or make one with icetree create"
            )
        return given

    @contextmanager
    def table(self, name: str) -> Iterator[Table]:
        """Open a table."""
        with self.open() as connection:
            yield connection.table(name)
