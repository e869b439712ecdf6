"""Tables in ORC and Avro on Spark: read and changed by all statements, as those in Parquet are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from campaigns.fuzz import sound_lake
from icetree.errors import InvalidInput, Unsupported
from icetree.spark import SparkLake, local
from icetree.spark.write.options import Options
from icetree.spec.entry.entry import Entry
from tests.effort import usually
from tests.rows.lake import files


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SparkLake:
    made = local(tmp_path, spark=spark)
    made.sql("CREATE NAMESPACE db")
    return made


def ends(lake: SparkLake) -> set[str]:
    return {name.rpartition(".")[2] for name in files(lake.table("db.t"))}


@pytest.mark.parametrize("mode", usually(["merge-on-read", "copy-on-write"], "merge-on-read"))
def test_statements_change_rows_of_every_format_side_by_side(lake: SparkLake, mode: str) -> None:
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    lake.sql(
        "CREATE TABLE db.t (id BIGINT, s STRING, m MAP<STRING, INT>) "
        f"TBLPROPERTIES ('write.format.default' = 'avro', {modes})"
    )
    lake.sql("INSERT INTO db.t VALUES (1, 'a', map('k', 1)), (2, 'b', NULL), (3, NULL, NULL)")
    rows = lake.spark.sql(
        "SELECT id, 'o' AS s, CAST(NULL AS MAP<STRING, INT>) AS m FROM range(4, 7)"
    )
    lake.write("db.t", rows).option("write-format", "orc").append()
    lake.write("db.t", rows.selectExpr("id + 3 AS id", "s", "m")).option(
        "write-format", "parquet"
    ).append()
    assert ends(lake) == {"avro", "orc", "parquet"}
    assert lake.read("db.t").count() == 9
    lake.sql("ALTER TABLE db.t RENAME COLUMN s TO t")
    lake.sql("ALTER TABLE db.t ADD COLUMN s STRING DEFAULT 'new'")
    lake.sql("DELETE FROM db.t WHERE id IN (2, 5, 8)")
    lake.sql("UPDATE db.t SET s = 'seen' WHERE id IN (1, 6)")
    lake.sql(
        "MERGE INTO db.t USING (SELECT explode(array(3, 4, 99)) AS k) ON id = k "
        "WHEN MATCHED THEN UPDATE SET t = 'merged' WHEN NOT MATCHED THEN INSERT (id, t) VALUES (k, 'in')"
    )
    rows = sorted(tuple(row) for row in lake.sql("SELECT id, t, s FROM db.t").collect())
    assert rows == [
        (1, "a", "seen"),
        (3, "merged", "new"),
        (4, "merged", "new"),
        (6, "o", "seen"),
        (7, "o", "new"),
        (9, "o", "new"),
        (99, "in", "new"),
    ]
    ids = {row[0]: row[1] for row in lake.sql("SELECT id, _row_id FROM db.t").collect()}
    assert {id: ids[id] for id in (1, 3, 4, 6, 7, 9)} == {1: 0, 3: 2, 4: 3, 6: 5, 7: 6, 9: 8}
    table = lake.table("db.t")
    assert (
        sorted(
            tuple(row.values())
            for row in table.scan(columns=["id", "t", "s"]).to_arrow().to_pylist()
        )
        == rows
    )
    assert table.verify(deep=True).is_clean


def test_a_file_that_ends_its_reader_ends_a_query_and_no_worker(lake: SparkLake) -> None:
    table = lake.create_table("db.t", sound_lake.table().metadata.schema())
    deadly = Path(__file__).parents[1] / "fuzz" / "corpus" / "orc" / "text-of-fewer-bytes-than-none"
    place = Path(table.location) / "data" / "x.orc"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(deadly.read_bytes())
    size = place.stat().st_size
    file = {"location": "data/x.orc", "file_format": "orc", "record_count": 30}
    table.append_files([Entry(**file, file_size_in_bytes=size)])
    with pytest.raises(Exception, match=r"data/x\.orc: Arrow's ORC reader dies of it"):
        lake.read("db.t").collect()
    table.delete_files(["data/x.orc"])
    rows = lake.spark.range(3).selectExpr("id")
    lake.write("db.t", rows).option("write-format", "orc").append()
    assert lake.read("db.t").count() == 3


def test_options_of_compression_are_those_of_the_format_that_is_written(lake: SparkLake) -> None:
    lake.sql("CREATE TABLE db.t (id BIGINT) TBLPROPERTIES ('write.format.default' = 'orc')")
    metadata = lake.table("db.t").metadata
    said = Options().option("compression-codec", "ZSTD")
    assert said.over(metadata).properties["write.orc.compression-codec"] == "zstd"
    said = said.option("write-format", "AVRO").option("compression-level", 3)
    assert said.over(metadata).properties["write.avro.compression-level"] == "3"
    with pytest.raises(Unsupported, match="compression-level: orc has none"):
        Options().option("compression-level", 3).over(metadata)
    fast = Options().option("compression-strategy", "SPEED")
    assert fast.over(metadata).properties["write.orc.compression-strategy"] == "speed"
    with pytest.raises(Unsupported, match="compression-strategy: parquet has none"):
        fast.option("write-format", "parquet").over(metadata)
    with pytest.raises(InvalidInput, match="allowed are parquet, orc, avro"):
        lake.write("db.t", lake.spark.range(3)).option("write-format", "csv").append()
