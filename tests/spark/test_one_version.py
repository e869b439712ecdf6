"""A statement sees one version of each table, however often it names it and whoever commits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.errors import CommitConflict
from tests.effort import usually
from tests.spark.busy_lake import BusyLake


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> BusyLake:
    """A table of three rows; from now on each look at it is followed by a commit of another."""
    made = BusyLake(spark, tmp_path)
    made.sql("CREATE TABLE t (id BIGINT)")
    made.sql("INSERT INTO t SELECT id FROM range(3)")
    made.catalog.looks = 100
    return made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(DISTINCT a.id), count(DISTINCT b.id) FROM t a CROSS JOIN db.t b",
        "WITH c AS (SELECT id FROM t) SELECT (SELECT count(*) FROM c), (SELECT count(*) FROM t)",
        "SELECT count(*), (SELECT count(*) FROM t) FROM t WHERE id NOT IN (SELECT -id - 9 FROM t)",
        "SELECT (SELECT count(*) FROM t), (SELECT sum(record_count) FROM t.files)",
    ],
)
def test_a_query_reads_one_version_of_a_table_that_it_names_twice(
    lake: BusyLake, text: str
) -> None:
    [row] = lake.sql(text).collect()
    assert row[0] == row[1]


def test_a_statement_has_all_that_its_lake_has(lake: BusyLake) -> None:
    moment = lake.moment()
    assert all(getattr(moment, name, None) is each for name, each in vars(lake).items())
    moment.namespace = "other"
    assert lake.namespace == moment.namespace == "other"


@pytest.mark.parametrize("looks", usually(range(3, 6), 4))
def test_rows_that_come_while_a_statement_replaces_what_it_read_are_not_lost(
    lake: BusyLake, looks: int
) -> None:
    lake.catalog.looks = looks
    with suppress(CommitConflict):
        lake.sql("INSERT OVERWRITE t SELECT id + 100 FROM t")
    lake.catalog.looks = 0
    kept = {row.id for row in lake.sql("SELECT id FROM t").collect()}
    lost = [n for n in range(1, lake.catalog.commits + 1) if not kept & {-n, 100 - n}]
    assert lost == []


def test_a_replaced_table_has_the_rows_that_its_query_read(lake: BusyLake) -> None:
    lake.catalog.looks = 0
    lake.sql("CREATE TABLE log AS SELECT id FROM t")
    # Enough for each of its looks at either table, and for a try that is lost.
    lake.catalog.looks = 6
    lake.sql("INSERT INTO log SELECT count(*) * 1000 FROM t UNION ALL SELECT count(*) FROM t")
    lake.catalog.looks = 0
    [[most], [least]] = lake.sql("SELECT id FROM log WHERE id >= 3 ORDER BY id DESC").collect()
    assert most == least * 1000


@pytest.mark.parametrize("looks", usually(range(2, 5), 3))
def test_a_changed_row_and_the_subquery_it_is_chosen_by_are_of_one_version(
    lake: BusyLake, looks: int
) -> None:
    lake.catalog.looks = looks
    with suppress(CommitConflict):
        # Of one version, no row is below the lowest.
        lake.sql("DELETE FROM t WHERE id < (SELECT min(id) FROM t)")
    lake.catalog.looks = 0
    assert lake.sql("SELECT id FROM t").count() == 3 + lake.catalog.commits


def test_a_frame_stays_at_the_snapshot_of_its_making(lake: BusyLake) -> None:
    lake.catalog.looks = 0
    whole, chosen = lake.read("db.t"), lake.sql("SELECT id FROM t WHERE id >= 0")
    lake.catalog.append("db.t")
    lake.sql("DELETE FROM t WHERE id = 1")
    lake.sql("ALTER TABLE t RENAME COLUMN id TO number")
    assert sorted(row.id for row in whole.collect()) == [0, 1, 2]
    assert sorted(row.id for row in chosen.collect()) == [0, 1, 2]
    assert sorted(row.number for row in lake.read("db.t").collect()) == [-1, 0, 2]
    # Frames of two moments are two versions, also in one query.
    assert whole.union(lake.read("db.t")).count() == 6
