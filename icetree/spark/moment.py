"""A lake as one statement sees it: every table at the version in which it was found first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from icetree.spark.lake import Lake

if TYPE_CHECKING:
    from icetree.table.table import Table


class Moment(Lake):
    """A lake for the time of a statement.

    Whatever the statement asks of a table, once or often, is asked of one handle: what it reads of
    the table is of one version, and what it commits is checked against all that came after that.
    """

    def __init__(self, lake: Lake, *, reads_cache: bool = False) -> None:
        # Nothing is opened anew: it has what the lake has.
        vars(self).update(vars(lake))
        self._lake = lake
        self.reads_cache = reads_cache
        self._tables: dict[str, Table] = {}

    @property
    def namespace(self) -> str | None:
        """Where names without a namespace are looked for: in the lake's own."""
        return self._lake.namespace

    @namespace.setter
    def namespace(self, name: str | None) -> None:
        self._lake.namespace = name

    @override
    def handle(self, name: str) -> Table:
        """Return the one handle of a table."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._lake.handle(name)
        return found
