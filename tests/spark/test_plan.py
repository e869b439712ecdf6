"""Planning on the executors comes to the same as planning here."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.rows.write.deletes import write_data_vectors
from icetree.spark import local
from icetree.spark.read.plan import plan
from icetree.table.table import Table


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Hold files in many leaves, some of them removed by manifest DVs, some with data DVs."""
    lake = local(tmp_path_factory.mktemp("plan"), spark=spark)
    lake.create_namespace("db")
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}
    made = lake.create_table(
        "db.t", [("id", "long"), ("p", "long")], partition_by=["p"], properties=small
    )
    for day in range(6):
        made.append(
            pa.table({"id": range(day * 40, day * 40 + 40), "p": [i % 4 for i in range(40)]})
        )
    tasks = made.scan().plan().tasks
    made.delete_files(tasks["location"].to_pylist()[:2])
    vectors = write_data_vectors(
        {tasks["location"][5].as_py(): [0, 3]},
        tasks=made.scan().plan().tasks,
        metadata=made.metadata,
        store=made.files.store,
    )
    made.row_delta(vectors)
    return made


@pytest.mark.parametrize("where", [None, "p = 2", "id > 100 and id < 130", "p = 9"])
def test_a_plan_is_the_same_wherever_leaves_are_read(
    spark: SparkSession, table: Table, where: str | None
) -> None:
    here, there = table.scan(where).plan(), plan(spark, table.scan(where), leaves_here=0)
    assert there.tasks.equals(here.tasks)
    assert there.deletes.equals(here.deletes)
    assert there.residuals == here.residuals
    assert there.metrics == here.metrics


def test_the_table_has_leaves_to_read(table: Table) -> None:
    assert table.scan().plan().metrics.data_leaves_read > 2


def test_few_leaves_start_no_job(spark: SparkSession, table: Table) -> None:
    before = spark.sparkContext.statusTracker().getJobIdsForGroup()
    plan(spark, table.scan())
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == before
