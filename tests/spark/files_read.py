"""How many files a query reads, as Spark is told when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from icetree.spark.trees import kind, seq


def files_read(rows: DataFrame) -> int:
    """Return how many files a query is given to read, before rows of other tables rule out some."""
    plan = rows._jdf.queryExecution().executedPlan()
    scans = [node for node in _nodes(plan) if kind(node) == "FileSourceScanExec"]
    files = (each for scan in scans for each in scan.selectedPartitions().toPartitionArray())
    return len({file.urlEncodedPath() for file in files})


def files_opened(rows: DataFrame) -> int:
    """Return how many files a query that has run did read, for all tables together."""
    plan = rows._jdf.queryExecution().executedPlan()
    scans = [node for node in _nodes(plan) if kind(node) == "FileSourceScanExec"]
    return sum(scan.metrics().apply("numFiles").value() for scan in scans)


def _nodes(node: Any) -> Iterator[Any]:
    if kind(node) == "AdaptiveSparkPlanExec":
        node = node.executedPlan()
    yield node
    for below in (*seq(node.children()), *seq(node.subqueries())):
        yield from _nodes(below)
    if kind(node).endswith("QueryStageExec"):
        yield from _nodes(node.plan())
