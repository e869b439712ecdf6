"""A Spark session on this machine, set up the way icetree reads and writes files."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from icetree.errors import Unsupported
from icetree.spark.java import java_home

LOOPBACK = "127.0.0.1"

#: Without this, rows of a table are read wrong: columns are matched by field id and never by name,
#: as the format asks.
READ_SETTINGS: Mapping[str, str] = {"spark.sql.parquet.fieldId.read.enabled": "true"}

#: Where pyspark prints the stacks of errors that it also raises.
_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

#: Columns that may come to those of a table: facts, lineage, marks, the row's number.
BESIDE: Final = 12
_MOST_FIELDS: Final = "spark.sql.codegen.maxFields"
_SPARKS_MOST: Final = 100
#: What `make_room` set that to; another limit is somebody's own.
_MADE_ROOM: Final = "spark.icetree.read.fields"
#: For more columns Spark is not told to generate code. What it generates takes up to 120 bytes a column,
#: and of a method of over 64 KB it runs none, so that half is left for what queries work out.
MOST_ROOM: Final = 300 + BESIDE

# Timestamps are microseconds, since Spark's own default (INT96) is no Iceberg type and has no
# statistics.
FILE_SETTINGS: Mapping[str, str] = {
    **READ_SETTINGS,
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # Otherwise statements refuse tables with a column of times.
    "spark.sql.timeType.enabled": "true",
}

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.ui.enabled": "false",
    # For tables of Spark's own, of which there are none; otherwise a folder appears where one works.
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "icetree-spark-warehouse")),
    # What is read shows its first rows in a notebook, without being asked.
    "spark.sql.repl.eagerEval.enabled": "true",
    # What fails is raised, in one line where that says it; a log would only repeat the stack.
    "spark.log.level": "FATAL",
}


def require_java(spark: SparkSession) -> None:
    """Refuse a session of Spark Connect, whose Java is elsewhere."""
    if not hasattr(spark, "_jsparkSession"):
        raise Unsupported(
            "a lake on Spark plans within the session's own Java, which a session of Spark Connect does "
            "not have: open it on a classic session, or read and write tables by "
            'spark.read.format("icetree") there'
        )


def is_roomy(spark: SparkSession, fields: int) -> bool:
    """Tell whether Spark generates code for so many columns and what comes beside, or may be told to."""
    most = int(spark.conf.get(_MOST_FIELDS, None) or _SPARKS_MOST)
    chosen = most not in (_SPARKS_MOST, _made_room(spark))
    return fields + BESIDE <= (most if chosen else MOST_ROOM)


def make_room(spark: SparkSession, fields: int = _SPARKS_MOST) -> None:
    """Have Spark generate code for so many columns and what comes beside them.

    Otherwise each row is copied, with all that is known of its file: a table of a hundred columns
    would be read slowly once a row is deleted. A limit that somebody chose stays.
    """
    wanted, most = fields + BESIDE, int(spark.conf.get(_MOST_FIELDS, None) or _SPARKS_MOST)
    if most < wanted and is_roomy(spark, fields):
        spark.conf.set(_MOST_FIELDS, str(wanted))
        spark.conf.set(_MADE_ROOM, str(wanted))


def _made_room(spark: SparkSession) -> int | None:
    told = spark.conf.get(_MADE_ROOM, None)
    return int(told) if told else None


def local_session(
    app_name: str = "icetree",
    *,
    shuffle_partitions: int = 4,
    extra_conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session that runs in this process, on all cores; `extra_conf` wins.

    Starts Java where none runs yet, and leaves `JAVA_HOME` and `PYSPARK_PYTHON` set to what it
    chose. A session that runs already is returned as it is, with the settings that can still
    change. Raises `NotFound` where the machine has no Java.
    """
    settings: dict[str, bool | float | int | str | None] = {
        **FILE_SETTINGS,
        **LOCAL_SETTINGS,
        # A bar for whoever watches; in a file it would be noise.
        "spark.ui.showConsoleProgress": str(bool(sys.stderr and sys.stderr.isatty())).lower(),
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        **(extra_conf or {}),
    }
    if SparkSession.getActiveSession() is None:
        os.environ["JAVA_HOME"] = str(java_home())
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Before any setting is read, Spark looks up the machine's name; not every machine has one.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    # What it would log is raised, too.
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master("local[*]").appName(app_name)
    return builder.config(map=settings).getOrCreate()
