"""What to say to somebody who named a table, a view or a namespace that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from icetree.catalog.base import Catalog, Namespace, TableName, ViewName
from icetree.errors import NotFound
from icetree.spec.texts import nearest

#: So many names are told where none is near.
_MOST: Final = 8


@contextmanager
def namespaces_told(namespace: Namespace, catalog: Catalog) -> Iterator[None]:
    """Within it, let the refusal of a namespace that is not there hint at those that are."""
    try:
        yield
    except NotFound as error:
        raise NotFound(f"{error}{namespaces_instead_of(namespace, catalog)}") from None


def instead_of(name: TableName, catalog: Catalog, *, either: bool = False) -> str:
    """Return a hint at the tables that there are, or at the namespaces, to follow the refusal of one.

    For a view's name it is one at views, and with `either` at both.
    """
    listed: list[Callable[[Namespace], Sequence[TableName]]] = []
    if either or not isinstance(name, ViewName):
        listed.append(catalog.tables)
    if either or isinstance(name, ViewName):
        listed.append(catalog.views)
    try:
        names = {each.name: str(each) for those in listed for each in those(name.namespace)}
    except NotFound:
        return _other_namespace(name.namespace, catalog)
    inside = ".".join(name.namespace)
    near = nearest(name.name, names)
    if near is not None:
        return f"; did you mean {names[near]}?"
    if not names:
        return f"; namespace {inside} has no {name.kind}s"
    return f"; there are {_some([*names.values()])}"


def namespaces_instead_of(namespace: Namespace, catalog: Catalog) -> str:
    """Return a hint at the namespaces that there are, to follow the refusal of one."""
    known = _beside(namespace, catalog)
    if not known:
        return "; the catalog is empty"
    near = nearest(".".join(namespace), known)
    return f"; did you mean {near}?" if near is not None else f"; there are {_some(known)}"


def _other_namespace(namespace: Namespace, catalog: Catalog) -> str:
    known = _beside(namespace, catalog)
    if not known:
        return "; the catalog is empty"
    near = nearest(".".join(namespace), known)
    if near is not None:
        return f", nor a namespace {'.'.join(namespace)}; did you mean {near}?"
    return f"; there are the namespaces {_some(known)}"


def _beside(namespace: Namespace, catalog: Catalog) -> list[str]:
    """Return the namespaces where one was looked for, or the outermost ones."""
    try:
        found = catalog.namespaces(namespace[:-1])
    except NotFound:
        found = []
    return [".".join(each) for each in found or catalog.namespaces()]


def _some(names: list[str]) -> str:
    return ", ".join(names[:_MOST]) + (", …" if len(names) > _MOST else "")
