"""A program: stock Iceberg Java on Spark, which knows of a server's address and nothing else.

It runs by itself because a Spark session gets its jars when it starts, which is what takes long: so it does
one thing after the other that it is asked for, each in a session of its own. An argument names the jars.
A line of input is JSON with the statements, the settings of their session, and a file for the answers (the
rows of each statement); a line of output says that they are there, or what went wrong. In place of settings
there may be a program, which makes its session by itself.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark.session import local_session
from tests.spark.settings import INTERPRETED


def main(jars: str) -> None:
    """Do what each line asks for."""
    # Java may print what it likes: to where errors go.
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = {
        "spark.jars": jars,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.adaptive.enabled": "false",
        # Iceberg Java cannot read a field alone of the structs in lists of its metadata tables.
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
        **INTERPRETED,
    }
    spark = local_session("stock", shuffle_partitions=1, extra_conf=settings)
    for line in sys.stdin:
        asked = json.loads(line)
        wrong = None
        try:
            session = spark.newSession()
            if "program" in asked:
                _run(asked["program"], session)
            told = _told(session, asked.get("settings", {}), asked["statements"])
            Path(asked["answers"]).write_text(json.dumps(told, default=str))
        except Exception:
            wrong = traceback.format_exc()
        print(json.dumps({"wrong": wrong}), file=said, flush=True)
    spark.stop()


def _run(program: str, session: SparkSession) -> None:
    """Run a program to which a session is the one that there is."""
    before = SparkSession._instantiatedSession
    SparkSession._instantiatedSession = session
    try:
        exec(compile(program, "program", "exec"), {})
    finally:
        SparkSession._instantiatedSession = before


def _told(spark: SparkSession, settings: dict[str, str], statements: list[str]) -> list[Any]:
    """Return the rows that each statement answers."""
    for name, value in settings.items():
        spark.conf.set(name, value)
    return [[list(row) for row in spark.sql(each).collect()] for each in statements]


if __name__ == "__main__":
    main(*sys.argv[1:])
