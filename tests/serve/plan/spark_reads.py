"""A program: stock Iceberg Java on Spark reads served tables, beside the same rows in Parquet files.

Arguments: the runtime jar, the server, a JSON file of questions, a file for the answers. A question
is a table, a file with the rows that icetree reads there, a snapshot or none, and a condition.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icetree.spark.session import local_session
from tests.spark.settings import INTERPRETED


def main(jar: str, uri: str, questions: str, answers: str) -> None:
    """Ask everything, and write the answers down: what Spark found, and what it was to find."""
    spark = _session(jar, uri)
    found = [_answer(spark, each) for each in json.loads(Path(questions).read_text())]
    Path(answers).write_text(json.dumps(found))
    spark.stop()


def _session(jar: str, uri: str) -> SparkSession:
    settings = {
        "spark.jars": jar,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": uri,
        "spark.sql.adaptive.enabled": "false",
        **INTERPRETED,
    }
    return local_session("iceberg java", shuffle_partitions=1, extra_conf=settings)


def _answer(spark: SparkSession, question: dict[str, Any]) -> list[Any]:
    at = "" if question["at"] is None else f" VERSION AS OF {question['at']}"
    served = spark.sql(f"SELECT * FROM lake.{question['table']}{at}")
    plain = spark.read.parquet(question["rows"])
    return [_told(each, question) for each in (served, plain)]


def _told(rows: DataFrame, question: dict[str, Any]) -> Any:
    if question["where"]:
        rows = rows.where(question["where"])
    picked = rows.selectExpr(*question["select"])
    return sorted(repr(row) for row in picked.collect())


if __name__ == "__main__":
    main(*sys.argv[1:])
