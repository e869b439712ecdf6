"""Namespaces and tables as paths and bodies name them; a name that could be read twice is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from icetree.catalog.base import Namespace, TableName, ViewName
from icetree.errors import InvalidInput
from icetree.serve.protocol.bodies import Body

#: What parts the levels of a namespace in a path.
SEPARATOR: Final = "\x1f"


def decoded(segment: str) -> str:
    """Return a segment of a path, decoded once; InvalidInput for what is no text."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(f"{segment[:80]!r} in the path is no UTF-8") from None


def namespace_in_path(segment: str) -> Namespace:
    """Read a namespace from a path or a query, where it is decoded already."""
    return namespace_of(segment.split(SEPARATOR))


def namespace_of(levels: Sequence[str]) -> Namespace:
    """Return a namespace, by its levels."""
    if not levels:
        raise InvalidInput("a namespace has at least one level")
    return tuple(_part(each, "a level of a namespace") for each in levels)


def table_of(namespace: Namespace, name: str) -> TableName:
    """Return a table's name in a namespace."""
    return TableName(namespace, _part(name, "a table's name"))


def view_of(namespace: Namespace, name: str) -> ViewName:
    """Return a view's name in a namespace."""
    return ViewName(namespace, _part(name, "a view's name"))


class Identifier(Body, frozen=True, kw_only=True):
    """A table's name in a body."""

    namespace: list[str]
    name: str

    @property
    def table(self) -> TableName:
        """The name, checked."""
        return table_of(namespace_of(self.namespace), self.name)


def dotted(namespace: Namespace) -> str:
    """Return a namespace in the words of a lake."""
    return ".".join(namespace)


def _part(part: str, what: str) -> str:
    # A dot parts levels in a lake: `a.b` as one level would be two there, and another's.
    if not part or not part.isprintable() or any(sign in part for sign in "./\\"):
        raise InvalidInput(
            f"{part[:80]!r} is no {what.partition(' ')[2]}: {what} is printable, not empty, and has no dot or slash"
        )
    return part
