"""The driver on a cluster: it is a process of its own, and keeps its session between tasks.

A process can have one Spark session, and that of the tests has another.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from icetree.spark import SparkLake, connect
from icetree.spark.java import java_home
from tests.spark.cluster.standalone import QUICK_JAVA

T = TypeVar("T")
_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 120.0


class Driver:
    """A process that does one task after the other."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def start(self, task: Callable[..., T], *given: object) -> Future[T]:
        """Begin a task."""
        return self._pool.submit(_done, task, *given)

    def do(self, task: Callable[..., T], *given: object) -> T:
        """Return what a task returns."""
        return self.start(task, *given).result(300)

    def stop(self) -> None:
        """End the session and the process."""
        self.do(_stop)
        self._pool.shutdown()


def _done(task: Callable[..., T], *given: object) -> T:
    """Do a task; what Spark raises cannot leave the process, but its text can."""
    try:
        return task(*given)
    except Exception:
        raise RuntimeError(traceback.format_exc()) from None


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where everything is."""

    master: str
    catalog: str
    bucket: str
    properties: dict[str, str]
    jars: tuple[str, ...]
    folder: Path
    #: The Python of executors.
    python: Path
    #: Where Spark is.
    home: Path

    @property
    def warehouse(self) -> str:
        """Where tables are."""
        return f"s3://{self.bucket}/lake"


def settings(place: Place) -> dict[str, str]:
    """Return what a session of a cluster is set to."""
    reached = place.properties
    return {
        "spark.master": place.master,
        "spark.jars": ",".join(place.jars),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "FATAL",
        "spark.sql.shuffle.partitions": "2",
        # What was on a worker that is lost is asked for once more, and not for long.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
        "spark.locality.wait": "0",
        "spark.hadoop.fs.s3a.endpoint": reached["s3.endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": reached["s3.region"],
        "spark.hadoop.fs.s3a.access.key": reached["s3.access-key-id"],
        "spark.hadoop.fs.s3a.secret.key": reached["s3.secret-access-key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def environment(place: Place) -> dict[str, str]:
    """Return what the processes of a session find around them."""
    return {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_HOME": str(place.home),
        "PYSPARK_PYTHON": str(place.python),
    }


_OPEN: dict[str, Any] = {}


def begin(place: Place) -> None:
    """Open the lake, on a session that the cluster works for."""
    os.environ.update(environment(place))
    # Executors would look there, too.
    os.environ.pop("PYTHONPATH", None)
    spark = SparkSession.builder.config(map=settings(place)).getOrCreate()  # type: ignore[arg-type]
    lake = connect(
        place.catalog, warehouse=place.warehouse, properties=place.properties, spark=spark
    )
    lake.create_namespace("db")
    _OPEN.update(lake=lake, folder=place.folder)


def the_lake() -> SparkLake:
    """Return the lake that is open."""
    found: SparkLake = _OPEN["lake"]
    return found


def the_folder() -> Path:
    """Return the folder that all of the cluster sees."""
    found: Path = _OPEN["folder"]
    return found


def _stop() -> None:
    lake = _OPEN.pop("lake", None)
    if lake is not None:
        lake.close()
        lake.spark.stop()


def wait_for_executors(many: int) -> None:
    """Wait until so many executors are there."""
    tracker = the_lake().spark.sparkContext._jsc.sc().statusTracker()  # type: ignore[attr-defined]
    give_up = time.monotonic() + _PATIENCE_S
    # One of those that are told is the driver itself.
    while len(tracker.getExecutorInfos()) - 1 != many:
        assert time.monotonic() < give_up, "the executors did not come"
        time.sleep(0.05)
