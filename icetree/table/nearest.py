"""What to say to somebody who named a table that is not there."""

from __future__ import annotations

from typing import Final

from icetree.catalog.base import Catalog, Namespace, TableName
from icetree.errors import NotFound
from icetree.spec.texts import nearest

#: So many names are told where none is near.
_MOST: Final = 8


def instead_of(table: TableName, catalog: Catalog) -> str:
    """Return a hint at the tables that there are, or at the namespaces, to follow the refusal."""
    try:
        names = {each.name: str(each) for each in catalog.tables(table.namespace)}
    except NotFound:
        return _other_namespace(table.namespace, catalog)
    inside = ".".join(table.namespace)
    near = nearest(table.name, names)
    if near is not None:
        return f"; did you mean {names[near]}?"
    if not names:
        return f"; namespace {inside} has no tables"
    return f"; there are {_some([*names.values()])}"


def namespaces_instead_of(namespace: Namespace, catalog: Catalog) -> str:
    """Return a hint at the namespaces that there are, to follow the refusal of one."""
    known = [".".join(each) for each in catalog.namespaces()]
    if not known:
        return "; the catalog is empty"
    near = nearest(".".join(namespace), known)
    return f"; did you mean {near}?" if near is not None else f"; there are {_some(known)}"


def _other_namespace(namespace: Namespace, catalog: Catalog) -> str:
    known = [".".join(each) for each in catalog.namespaces()]
    if not known:
        return "; the catalog is empty"
    near = nearest(".".join(namespace), known)
    if near is not None:
        return f", nor a namespace {'.'.join(namespace)}; did you mean {near}?"
    return f"; there are the namespaces {_some(known)}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_MOST]) + (", …" if len(names) > _MOST else "")
