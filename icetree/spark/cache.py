"""Rows that Spark keeps in memory for a lake: of which table or view, and of which version."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from icetree.table.table import Table


@dataclass(slots=True, kw_only=True)
class Held:
    """A table or view whose rows are kept, at the version they were read at."""

    level: StorageLevel
    #: The tables that its rows come from.
    tables: frozenset[str]
    #: None until somebody asks for them again.
    rows: DataFrame | None = None
    #: The table, as it was then; none for a view.
    table: Table | None = None

    def keep(self, rows: DataFrame, table: Table | None = None) -> DataFrame:
        """Keep these rows, and return them."""
        self.rows, self.table = rows.persist(self.level), table
        return rows

    def let_go(self) -> None:
        """Forget the rows, to be read anew when they are asked for."""
        if self.rows is not None:
            self.rows.unpersist()
        self.rows = self.table = None


class Cache:
    """What is held, by a table's name or a view's mark."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}

    def get(self, key: str) -> Held | None:
        """Return what is held under a key."""
        return self._held.get(key)

    def hold(self, key: str, held: Held) -> Held:
        """Hold something from now on."""
        self._held[key] = held
        return held

    def release(self, key: str) -> None:
        """Hold it no longer; nothing happens to what was never held."""
        held = self._held.pop(key, None)
        if held is not None:
            held.let_go()

    def release_all(self) -> None:
        """Hold nothing any longer."""
        for key in list(self._held):
            self.release(key)

    def outdate(self, table: str) -> None:
        """Have all that comes from a table read anew when it is next asked for."""
        for held in list(self._held.values()):
            if table in held.tables:
                held.let_go()

    def forget(self, table: str) -> None:
        """Hold a table no longer whose name is gone, nor the rows of it that others hold."""
        self.release(table)
        self.outdate(table)
