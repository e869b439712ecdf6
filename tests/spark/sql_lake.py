"""A lake for statements, and their results as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark import local
from icetree.spark.sql.statement import run_sql
from tests.spark.files_read import files_read


class SqlLake:
    """A lake with a namespace `db` in use."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.lake = local(folder, spark=spark)
        self.lake.create_namespace("db", exist_ok=True)
        self.lake.namespace = "db"

    def __call__(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement and return the rows it finds, sorted unless the statement sorts."""
        rows = [tuple(row) for row in run_sql(self.lake, text).collect()]
        return rows if "order by" in text.lower() else sorted(rows, key=repr)

    def files(self, text: str) -> int:
        """Return how many files a query reads."""
        return files_read(run_sql(self.lake, text))
