"""Somebody who asks, and what they may do in which namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icetree.catalog.base import Namespace

#: In place of a namespace: all of them.
EVERYWHERE: Final[Namespace] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """A client; what it may do in a namespace it may do in those below, too."""

    name: str
    reads: frozenset[Namespace] = frozenset()
    writes: frozenset[Namespace] = frozenset()

    def may_read(self, namespace: Namespace) -> bool:
        """Tell whether it may read tables of a namespace."""
        return self.may_write(namespace) or _covers(self.reads, namespace)

    def may_write(self, namespace: Namespace) -> bool:
        """Tell whether it may change a namespace and its tables."""
        return _covers(self.writes, namespace)

    def may_see(self, namespace: Namespace) -> bool:
        """Tell whether it may know of a namespace: it may read it, or one below."""
        depth = len(namespace)
        below = any(each[:depth] == namespace for each in self.reads | self.writes)
        return below or self.may_read(namespace)


#: Whoever it is, where a server asks nobody for a name.
ANYONE: Final = Who(name="anyone", writes=frozenset({EVERYWHERE}))


def _covers(granted: frozenset[Namespace], namespace: Namespace) -> bool:
    return any(namespace[: len(each)] == each for each in granted)
