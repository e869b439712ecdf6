"""A program: stock Iceberg Java on Spark, which knows of a server's address and nothing else.

It runs by itself because a Spark session gets its jars when it starts. Arguments: the runtime jar, the
server's address, a JSON file of statements, a file for the answers (the rows of each statement), and
more settings of Spark as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from icetree.spark.session import local_session
from tests.spark.settings import INTERPRETED


def main(jar: str, uri: str, statements: str, answers: str, more: str) -> None:
    """Run the statements one after the other, and write down what each answers."""
    settings = {
        "spark.jars": jar,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": uri,
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        **INTERPRETED,
        **json.loads(more),
    }
    spark = local_session("stock", shuffle_partitions=1, extra_conf=settings)
    asked = json.loads(Path(statements).read_text())
    told = [[list(row) for row in spark.sql(each).collect()] for each in asked]
    Path(answers).write_text(json.dumps(told, default=str))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
