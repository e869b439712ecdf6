"""Spark shows no secret of a lake: not in plans, errors, settings or text forms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icetree.errors import IcetreeError
from icetree.spark import SparkLake, connect
from icetree.spark.source import register
from icetree.spark.source.options import options
from tests.effort import usually
from tests.laws.secrets_told import ACCESS_KEY, PASSWORD, SECRET_KEY, TOKEN, Told
from tests.servers.naughty import naughty

KEYS = {
    "s3.access-key-id": ACCESS_KEY,
    "s3.secret-access-key": SECRET_KEY,
    "s3.session-token": TOKEN,
}


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        yield told
    told.show(out.getvalue(), err.getvalue())
    assert told.leaks() == []


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkLake]:
    lake = connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "w"),
        properties=KEYS,
        spark=spark,
    )
    lake.sql("CREATE NAMESPACE db")
    lake.sql("CREATE TABLE db.t (id BIGINT, s STRING)")
    lake.sql("INSERT INTO db.t VALUES (1, 'a'), (2, 'b')")
    yield lake
    lake.close()


def test_a_lake_and_its_frames_show_no_secret(lake: SparkLake, told: Told, tmp_path: Path) -> None:
    told.show(lake, lake.table("db.t"), lake)
    rows = lake.read("db.t")
    told.show(rows, rows.collect())
    rows.explain(extended=True)
    for statement in (
        "DESCRIBE TABLE EXTENDED db.t",
        "SHOW TBLPROPERTIES db.t",
        "SHOW CREATE TABLE db.t",
        "SELECT * FROM db.t.files",
    ):
        try:
            told.show(lake.sql(statement).collect())
        except IcetreeError as error:  # noqa: PERF203  # whether it is known or not
            told.show(error)
    told.show([each for each in lake.spark.sparkContext.getConf().getAll() if "icetree" in each[0]])
    assert told.files(lake.store, str(tmp_path / "w")) > 3


def test_the_data_source_shows_no_secret(lake: SparkLake, told: Told, tmp_path: Path) -> None:
    register(lake.spark)
    given = {"catalog": f"sqlite:///{tmp_path}/catalog.db", **KEYS}
    told.show(options({**given, "path": "db.t"}))
    rows = lake.spark.read.format("icetree").options(**given).load("db.t")
    told.show(rows, rows.collect())
    rows.explain(extended=True)
    rows.write.format("icetree").options(**given).mode("append").save("db.t")


@pytest.mark.parametrize("kind", usually(["refuses", "closes", "echo"], "echo"))
def test_an_error_on_spark_shows_no_secret(
    kind: str, spark: SparkSession, lake: SparkLake, told: Told, tmp_path: Path
) -> None:
    register(spark)
    with naughty(kind) as port:
        bad = f"postgresql://me:{PASSWORD.replace('%', '%25').replace('@', '%40')}@127.0.0.1:{port}"
        told.fails(lambda: connect(bad, spark=spark))
        frames = spark.read.format("icetree")
        for given in (
            {"catalog": bad},
            {
                "catalog": f"sqlite:///{tmp_path}/catalog.db",
                "warehouse": "s3://bucket/lake",
                "s3.endpoint": f"http://127.0.0.1:{port}",
                "s3.retry.num-retries": "0",
                **KEYS,
            },
        ):
            try:
                told.show(frames.options(**given).load("db.t").collect())
            except PySparkException as error:  # noqa: PERF203  # each is tried
                told.show(error)
        elsewhere = {**KEYS, "s3.endpoint": f"http://127.0.0.1:{port}", "s3.retry.num-retries": "0"}
        remote = connect(
            f"sqlite:///{tmp_path}/other.db",
            warehouse="s3://bucket/lake",
            properties=elsewhere,
            spark=spark,
        )
        remote.create_namespace("db")
        told.fails(lambda: remote.sql("CREATE TABLE db.t (id BIGINT)"))
    assert lake
