"""Options of a write: each is kept, or refused with a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import icetree
from icetree.errors import CommitConflict, InvalidInput, Unsupported
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


def files(lake: SparkLake) -> dict[str, int]:
    """Return the sizes of the table's data files, by their paths."""
    found = lake.sql("SELECT file_path, file_size_in_bytes FROM db.t.files").collect()
    return dict(found)


def codecs(lake: SparkLake) -> set[str]:
    """Return how the pages of the table's Parquet files are packed."""
    footers = [pq.read_metadata(path.removeprefix("file:")) for path in files(lake)]
    return {footer.row_group(0).column(0).compression for footer in footers}


def ids(lake: SparkLake) -> set[int]:
    return {row.id for row in lake.read("db.t").collect()}


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
    assert codecs(lake) == {"GZIP"}
    lake.write("db.t", rows).append()
    assert codecs(lake) == {"GZIP", "ZSTD"}
    assert lake.sql("SELECT DISTINCT sort_order_id FROM db.t.files").count() == 2


def test_rows_meet_in_files_as_a_write_says(lake: SparkLake) -> None:
    rows = lake.spark.range(0, 1000, 1, 4).selectExpr("id", "id % 2 AS p")
    made = {}
    for how in (
        {"distribution-mode": "hash"},
        {"distribution-mode": "none"},
        # Rows of both partitions come in turns: a writer has both open, whatever it is told.
        {"distribution-mode": "none", "fanout-enabled": "false"},
        {"distribution-mode": "none", "fanout-enabled": "true"},
    ):
        before = len(files(lake))
        lake.write("db.t", rows).options(how).append()
        made[tuple(how.values())] = len(files(lake)) - before
    assert made == {("hash",): 2, ("none",): 8, ("none", "false"): 8, ("none", "true"): 8}
    with pytest.raises(InvalidInput, match=r"distribution-mode.*allowed are"):
        lake.write("db.t", rows).option("distribution-mode", "maybe").append()


@pytest.mark.parametrize("level", ["serializable", "SNAPSHOT"])
def test_what_is_a_conflict_a_write_says(lake: SparkLake, tmp_path: Path, level: str) -> None:
    lake.sql("INSERT INTO db.t VALUES (1, 1)")
    place, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse")

    def beside(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with icetree.connect(place, warehouse=warehouse) as others:
            others.append("db.t", pa.table({"id": [5], "p": [1]}))
        yield from batches

    rows = (
        lake.spark.range(0, 1, 1, 1)
        .selectExpr("id", "1L AS p")
        .mapInArrow(beside, "id long, p long")
    )
    write = lake.write("db.t", rows).option("isolation-level", level)
    if level == "serializable":
        with pytest.raises(CommitConflict):
            write.overwrite("p = 1")
        assert ids(lake) == {1, 5}
    else:
        write.overwrite("p = 1")
        assert ids(lake) == {0, 5}
    with pytest.raises(InvalidInput, match="'none' is no isolation level"):
        lake.write("db.t", lake.spark.range(1)).option("isolation-level", "none").append()


def test_files_in_orc_are_packed_as_a_write_says(lake: SparkLake) -> None:
    lake.sql("CREATE OR REPLACE TABLE db.t (s STRING)")
    words = "concat_ws(' ', id * id % 9973, id * 7 % 101, id % 13) AS s"
    rows = lake.spark.range(0, 20_000, 1, 1).selectExpr(words)
    sizes = {}
    for strategy in ("speed", "compression"):
        before = files(lake)
        write = lake.write("db.t", rows).option("write-format", "orc")
        write.options({"compression-codec": "zlib", "compression-strategy": strategy}).append()
        [sizes[strategy]] = [size for name, size in files(lake).items() if name not in before]
    assert sizes["compression"] < sizes["speed"]
    with pytest.raises(InvalidInput, match=r"compression-strategy.*allowed are speed, compression"):
        write.option("compression-strategy", "tight").append()


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
