"""Opening a lake on Spark: on a catalog's address, or in a folder of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark.lake import SparkLake
from icetree.spark.session import local_session
from icetree.store.places import local_folder


def connect(
    uri: str | None = None,
    *,
    warehouse: str | None = None,
    spark: SparkSession | None = None,
    **properties: Any,
) -> SparkLake:
    """Open a catalog and the warehouse its tables live in, on a Spark session.

    It is what `icetree.connect` opens, with rows at scale. Without `spark` it is the session that
    is active, or else a local one.
    """
    given = properties if warehouse is None else {**properties, "warehouse": warehouse}
    session = spark or SparkSession.getActiveSession() or local_session()
    return SparkLake(session, uri, **given)


def local(folder: str | Path, *, spark: SparkSession | None = None) -> SparkLake:
    """Open a lake in a folder of this machine: local Spark, SQLite, files beside it."""
    place = Path(local_folder(folder))
    place.mkdir(parents=True, exist_ok=True)
    session = local_session() if spark is None else spark
    return SparkLake(session, f"sqlite:///{place}/catalog.db", warehouse=str(place / "warehouse"))
