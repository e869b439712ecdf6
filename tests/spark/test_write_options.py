"""Options of a write: each is kept, or refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.errors import InvalidInput, Unsupported
from icetree.spark import SparkLake, local
from icetree.spark.source.options import options
from icetree.spark.write.options import Options


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SparkLake:
    """A table of numbers by parity, in descending order."""
    made = local(tmp_path, spark=spark)
    made.sql("CREATE NAMESPACE db")
    made.sql("CREATE TABLE db.t (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    made.sql("ALTER TABLE db.t WRITE ORDERED BY id DESC")
    return made


def test_what_a_write_says_holds_for_that_write_alone(lake: SparkLake) -> None:
    rows = lake.spark.range(0, 1000, 1, 1).selectExpr("id", "id % 2 AS p")
    write = lake.write("db.t", rows).options(
        {
            "target-file-size-bytes": 4000,
            "compression-codec": "GZIP",
            "distribution-mode": "none",
            "use-table-distribution-and-ordering": "false",
            "fanout-enabled": "false",
            "snapshot-property.Job": "seven",
            "isolation-level": "snapshot",
            "check-nullability": True,
        }
    )
    write.append()
    files = lake.sql("SELECT record_count, sort_order_id FROM db.t.files").collect()
    assert len(files) >= 4
    assert {row.sort_order_id for row in files} == {0}
    [snapshot] = lake.table("db.t").history()
    assert (snapshot.summary or {})["Job"] == "seven"
    first = lake.sql("SELECT id FROM db.t WHERE _pos = 0 AND id < 2").count()
    assert first == 2
    assert lake.read("db.t").count() == 1000
    lake.write("db.t", rows).append()
    assert lake.sql("SELECT DISTINCT sort_order_id FROM db.t.files").count() == 2


def test_a_statement_takes_options_too(lake: SparkLake) -> None:
    lake.sql("INSERT INTO db.t VALUES (1, 1)")
    lake.sql("ALTER TABLE db.t CREATE BRANCH side")
    lake.sql("INSERT INTO db.t WITH ('branch' = 'side', 'output-spec-id' = '0') SELECT 2, 0")
    assert lake.read("db.t").count() == 1
    assert lake.read("db.t", at="side").count() == 2
    with pytest.raises(InvalidInput, match="output-spec-id=9: there are"):
        lake.sql("INSERT INTO db.t WITH ('output-spec-id' = '9') SELECT 2, 0")
    with pytest.raises(Unsupported, match="options are not for reading"):
        lake.sql("SELECT * FROM db.t WITH ('split-size' = 5)")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("traget-file-size-bytes", "5", "did you mean 'target-file-size-bytes'"),
        ("anything", "5", "there are advisory-partition-size, branch"),
        ("use-table-distribution-and-ordering", "maybe", "allowed are true and false"),
        ("check-nullability", "false", "only 'true'"),
        ("check-ordering", "true", "matched by name"),
        ("validate-from-snapshot-id", "7", "since the write began"),
        ("overwrite-mode", "dynamic", "replace_partitions"),
        ("output-spec-id", "one", "number of a spec"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(name: str, value: str, told: str) -> None:
    with pytest.raises((InvalidInput, Unsupported), match=told):
        Options().option(name, value)


def test_names_of_options_are_read_in_any_case() -> None:
    read = Options().option("MERGE-SCHEMA", True).option("Branch", "B")
    assert read.merges
    assert read.how == {"branch": "B"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wher", "did you mean 'where'"),
        ("snapshot-id", "say it with option 'at'"),
        ("target-file-size-bytes", "lake.write takes it"),
        ("zzz", "there are catalog"),
    ],
)
def test_the_portable_format_says_what_it_does_not_know(name: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        options({name: "1"})
