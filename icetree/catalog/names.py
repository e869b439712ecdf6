"""Which names, locations and properties every catalog takes: the widths of the SQL layout."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from icetree.catalog.base import Namespace, TableName
from icetree.errors import CommitConflict, InvalidInput, NotFound

NAME_WIDTH = 255
LONG_WIDTH = 1000

#: The property that marks a namespace as made on purpose; it is the layout's own.
EXISTS = "exists"


def dotted(namespace: Namespace) -> str:
    """Return a namespace as it is stored; InvalidInput when it cannot be one."""
    if not namespace or not all(namespace):
        raise InvalidInput(f"{'.'.join(namespace)!r} is no namespace: no part may be empty")
    if any("." in level for level in namespace):
        raise InvalidInput(f"{namespace!r}: a dot parts the levels of a namespace, none holds one")
    return _fits("the namespace", ".".join(namespace), NAME_WIDTH)


def key_of(table: TableName) -> tuple[str, str]:
    """Return a table's namespace and name as they are stored; InvalidInput."""
    if not table.name:
        raise InvalidInput(f"a {table.kind} in {'.'.join(table.namespace)!r} needs a name")
    return dotted(table.namespace), _fits(f"the {table.kind} name", table.name, NAME_WIDTH)


def new_key_of(table: TableName) -> tuple[str, str]:
    """Return the key of a table to be; a dot in its name would make it another's full name."""
    if "." in table.name:
        raise InvalidInput(
            f"{table.name!r} is no {table.kind} name: a dot parts it from its namespace"
        )
    return key_of(table)


def no_such(table: TableName, catalog: str, other: str | None = None) -> NotFound:
    """Return the refusal for a name that nothing of its kind has; `other` is what has it."""
    more = "" if other is None else f": it is a {other}"
    return NotFound(f"there is no {table.kind} {table} in catalog {catalog}{more}")


def moved_on(table: TableName) -> CommitConflict:
    """Return the refusal for a name whose head is not the expected one any more."""
    return CommitConflict(
        f"{table.kind} {table} is not as it was when it was looked at: look again, then decide"
    )


def location_of(metadata_location: str) -> str:
    """Return a metadata location that the layout can hold; InvalidInput."""
    if not metadata_location:
        raise InvalidInput("the location of a table's metadata is empty")
    return _fits("the metadata location", metadata_location, LONG_WIDTH)


def check_properties(put: Mapping[str, str], remove: Collection[str] = ()) -> None:
    """Raise InvalidInput for properties that cannot be stored, or contradict each other."""
    if not isinstance(put, Mapping):
        raise InvalidInput(f"properties={put!r}: give a mapping of names to texts")
    for key in (*put, *remove):
        if not key:
            raise InvalidInput("a property needs a name")
        if key == EXISTS:
            raise InvalidInput(f"the property {EXISTS!r} is the catalog's own")
        _fits("the property name", key, NAME_WIDTH)
    for key, value in put.items():
        if not isinstance(value, str):
            raise InvalidInput(f"property {key!r} is {value!r}: a property's value is a string")
        _fits(f"the value of property {key!r}", value, LONG_WIDTH)
    if both := sorted(put.keys() & set(remove)):
        raise InvalidInput(f"properties {both} cannot be both set and removed")


def _fits(what: str, text: Any, width: int) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"{what} is {text!r}: give a text")
    if len(text) > width:
        raise InvalidInput(f"{what} has {len(text)} characters, at most {width} fit: {text[:40]}…")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidInput(f"{what} holds a character that no database stores: {text!r}")
    return text
