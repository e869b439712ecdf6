"""Iceberg V4 tables with an adaptive metadata tree, in Python, with Spark for the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icetree.table.connection import Connection

__version__ = "0.1.0"

__all__ = ["__version__", "connect"]


def connect(
    uri: str | None = None, *, warehouse: str | None = None, **properties: Any
) -> Connection:
    """Open a catalog and the warehouse its tables live in.

    `uri` is an address such as `sqlite:///catalog.db` or `postgresql+psycopg://host/db`, or the
    name of a catalog configured as for PyIceberg; without it, the default one is meant.

        lake = icetree.connect("sqlite:///catalog.db", warehouse="/data/lake")
    """
    # Late, so that `import icetree` stays light.
    from icetree.table.connection import open_connection

    given = properties if warehouse is None else {**properties, "warehouse": warehouse}
    return open_connection(uri, given)
