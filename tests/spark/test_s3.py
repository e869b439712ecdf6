"""Tables in S3 on Spark: a real server, reached by Spark through Hadoop's S3A and by us directly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.spark import SparkLake, connect
from tests.jars import fetched
from tests.servers.s3 import shared_s3


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    fetched("s3a")
    server = shared_s3()
    bucket, reached = server.new_bucket(), server.properties()
    settings = {
        "endpoint": reached["s3.endpoint"],
        "endpoint.region": reached["s3.region"],
        "access.key": reached["s3.access-key-id"],
        "secret.key": reached["s3.secret-access-key"],
        "path.style.access": "true",
    }
    for key, value in settings.items():
        spark.conf.set(f"fs.s3a.bucket.{bucket}.{key}", value)
    catalog = tmp_path_factory.mktemp("s3") / "catalog.db"
    lake = connect(
        f"sqlite:///{catalog}", warehouse=f"s3://{bucket}/lake", properties=reached, spark=spark
    )
    lake.sql("CREATE NAMESPACE db")
    yield lake
    lake.close()


def test_rows_in_a_bucket_are_written_read_changed_and_verified(lake: SparkLake) -> None:
    # Names of folders with characters that a URI escapes: S3 must see them as they are.
    lake.sql("CREATE TABLE db.t (id BIGINT, kind STRING) PARTITIONED BY (kind)")
    rows = lake.spark.range(1000).selectExpr("id", "concat('a b/ü%', id % 3) AS kind")
    lake.write("db.t", rows).append()
    assert lake.read("db.t").count() == 1000
    assert lake.read("db.t", where="kind = 'a b/ü%1'").count() == 333

    lake.sql("DELETE FROM db.t WHERE id % 10 = 0")
    assert lake.sql("SELECT sum(id) AS n FROM db.t").first().n == 450_000  # type: ignore[union-attr]
    lake.sql("""
        MERGE INTO db.t USING (SELECT 1 AS id, 'old' AS kind UNION ALL SELECT 5000, 'new') AS s
        ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *
    """)
    assert lake.read("db.t").count() == 900
    kinds = lake.changes("db.t").groupBy("_change_type").count().collect()
    assert {row["_change_type"]: row["count"] for row in kinds} == {"INSERT": 1001, "DELETE": 101}
    assert lake.table("db.t").verify(deep=True).findings == ()


def test_a_stream_ends_in_a_bucket(lake: SparkLake, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE db.streamed (id BIGINT)")
    (tmp_path / "in").mkdir()
    lake.spark.range(100).write.parquet(str(tmp_path / "in" / "first"))
    source = lake.spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "in" / "*"))
    query = lake.write_stream(
        "db.streamed", source, checkpoint=tmp_path / "checkpoint", trigger="available-now"
    )
    query.awaitTermination()
    assert lake.read("db.streamed").count() == 100
