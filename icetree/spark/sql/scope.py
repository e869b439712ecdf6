"""Where the names of a query are looked for: those of a statement, and those of a view's own query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from icetree.errors import InvalidInput
from icetree.spark.sql.names import TableRef, find_among, find_view_among

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake
    from icetree.spec.metadata.view import ViewVersion

#: So many views may a view be read through, and so many may a statement read in all.
_DEEPEST: Final = 50
_MOST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a query can name, and through which views of the lake it is read."""

    #: Where names without a namespace are looked for.
    namespace: str | None = None
    #: A view of the lake is the same in every session: it knows nothing of temporary ones.
    is_lasting: bool = False
    #: What the lake's own catalog may be called.
    catalogs: frozenset[str] = frozenset()
    #: The views of the lake that lead here, outermost first.
    path: tuple[str, ...] = ()
    #: All that the statement has met so far.
    met: list[str] = field(default_factory=list)

    def table(self, lake: SparkLake, parts: Sequence[str]) -> TableRef | None:
        """Return the table that a name stands for."""
        return find_among(lake, self._names(parts))

    def view(self, lake: SparkLake, parts: Sequence[str]) -> str | None:
        """Return the full name of the view of the lake that a name stands for."""
        return find_view_among(lake, self._names(parts))

    def in_full(self) -> Scope:
        """Return the scope of a text of the session in which every name is a full one."""
        return replace(self, namespace=None, is_lasting=False, catalogs=frozenset())

    def within(self, name: str, version: ViewVersion, catalog: str) -> Scope:
        """Return the scope of a view's own query; InvalidInput where the view reads itself."""
        if name in self.path:
            way = " → ".join((*self.path[self.path.index(name) :], name))
            raise InvalidInput(f"view {name} reads itself ({way}): replace one of these views")
        if len(self.path) >= _DEEPEST or len(self.met) >= _MOST:
            raise InvalidInput(
                f"view {self.path[0] if self.path else name} reads too many views: {_MOST} are "
                f"read at most, {_DEEPEST} through each other"
            )
        self.met.append(name)
        return Scope(
            namespace=".".join(version.default_namespace) or None,
            is_lasting=True,
            catalogs=frozenset({catalog, version.default_catalog or catalog}),
            path=(*self.path, name),
            met=self.met,
        )

    def _names(self, parts: Sequence[str]) -> list[list[str]]:
        """Return the full names that one can mean, the likeliest first."""
        found = [[*parts]]
        if self.namespace is not None and (len(parts) == 1 or not self.is_lasting):
            # As in Spark, a name of several parts is a full one first.
            found.insert(0 if len(parts) == 1 else 1, [*self.namespace.split("."), *parts])
        if parts[0] in self.catalogs:
            found.append([*parts[1:]])
        return found
