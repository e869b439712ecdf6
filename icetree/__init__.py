"""Iceberg V4 tables with an adaptive metadata tree, in Python, with Spark for the data."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from icetree.spec.spelled import spelled_out

if TYPE_CHECKING:
    from icetree import errors, spark
    from icetree.table.lake import Lake

__version__ = "0.1.0"

__all__ = ["__version__", "connect", "errors", "spark"]


def __dir__() -> list[str]:
    """Return what is public, and nothing else."""
    return __all__


def __getattr__(name: str) -> Any:
    # Rooms to walk on into; the engine is heavy, and loaded only when it is named.
    if name in ("errors", "spark"):
        return import_module(f"icetree.{name}")
    raise AttributeError(f"module 'icetree' has no attribute {name!r}")


@spelled_out()
def connect(
    uri: str | None = None,
    *,
    warehouse: str | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Lake:
    """Open a catalog and the warehouse its tables live in.

    `uri` is an address such as `sqlite:///catalog.db` or `postgresql+psycopg://host/db`, or the
    name of a catalog configured as for PyIceberg; without it, the default one is meant.
    `properties` go by PyIceberg's names, such as `s3.endpoint`.

        lake = icetree.connect("sqlite:///catalog.db", warehouse="/data/lake")
    """
    # Late, so that `import icetree` stays light.
    from icetree.table.lake import connection_properties, open_lake

    return open_lake(uri, connection_properties(warehouse, properties))
