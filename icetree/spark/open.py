"""Opening a lake on Spark: on a catalog's address, or in a folder of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark.kept import Kept
from icetree.spark.lake import SparkLake
from icetree.spark.session import local_session
from icetree.spec.spelled import spelled_out
from icetree.store.places import local_folder
from icetree.table.lake import connection_properties, open_lake


@spelled_out()
def connect(
    uri: str | None = None,
    *,
    warehouse: str | None = None,
    spark: SparkSession | None = None,
    properties: Mapping[str, Any] | None = None,
) -> SparkLake:
    """Open a catalog and the warehouse its tables live in, on a Spark session.

    It is what `icetree.connect` opens, with rows at scale. Without `spark` it is the session that
    is active, or else a local one.
    """
    session = spark or SparkSession.getActiveSession() or local_session()
    return _opened(session, uri, connection_properties(warehouse, properties))


@spelled_out()
def local(folder: str | Path, *, spark: SparkSession | None = None) -> SparkLake:
    """Open a lake in a folder of this machine: local Spark, SQLite, files beside it."""
    place = Path(local_folder(folder))
    place.mkdir(parents=True, exist_ok=True)
    session = local_session() if spark is None else spark
    warehouse = {"warehouse": str(place / "warehouse")}
    return _opened(session, f"sqlite:///{place}/catalog.db", warehouse)


def _opened(session: SparkSession, uri: str | None, properties: Mapping[str, Any]) -> SparkLake:
    return SparkLake(
        session, open_lake(uri, properties), kept=Kept(address=uri, properties=properties)
    )
