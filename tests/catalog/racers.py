"""Writers in processes of their own. Imported by name, so that a fresh process can find them."""

from __future__ import annotations

import itertools
import sys

from icetree.catalog.base import Stale, Swapped, TableName
from icetree.catalog.config import Config, open_catalog

EVENTS = TableName(("db",), "events")


def swap_many(arguments: tuple[str, str, int]) -> list[tuple[str, str]]:
    """Swap the head so many times, each on top of whatever is there; return the swaps won."""
    uri, writer, count = arguments
    catalog = open_catalog(Config(name="main", uri=uri, warehouse=None, properties={}))
    head, won = catalog.load(EVENTS), []
    while len(won) < count:
        to = f"{writer}-{len(won)}"
        match catalog.swap(EVENTS, expected=head, to=to):
            case Swapped():
                won.append((head, to))
                head = to
            case Stale(metadata_location=newer):
                head = newer
            case unknown:
                raise AssertionError(unknown)
    catalog.close()
    return won


def open_and_migrate(uri: str) -> list[str]:
    """Open a catalog, asking for the newest layout; return the tables of `db`."""
    properties = {"schema_version": "v1"}
    catalog = open_catalog(Config(name="main", uri=uri, warehouse=None, properties=properties))
    found = [table.name for table in catalog.tables(("db",))] if catalog.namespaces() else []
    catalog.close()
    return found


def swap_forever(uri: str, writer: str) -> None:
    """Swap until killed, telling of each swap before and after it."""
    catalog = open_catalog(Config(name="main", uri=uri, warehouse=None, properties={}))
    head = catalog.load(EVENTS)
    for count in itertools.count():
        to = f"{writer}-{count}"
        sys.stdout.write(f"try {to}\n")
        sys.stdout.flush()
        assert catalog.swap(EVENTS, expected=head, to=to) == Swapped()
        sys.stdout.write(f"won {to}\n")
        sys.stdout.flush()
        head = to


if __name__ == "__main__":
    swap_forever(*sys.argv[1:])
