"""One Spark session for all tests here: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from icetree.spark.session import local_session
from tests.jars import place_of
from tests.spark.settings import COMPILED, QUICK


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # A session gets its jars when it starts; where they are missing, only tests on S3 are, too.
    jars = ",".join(map(str, sorted(place_of("s3a").glob("*.jar"))))
    conf = {**QUICK, **({"spark.jars": jars} if jars else {})}
    session = local_session("icetree tests", shuffle_partitions=2, extra_conf=conf)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """The same session, which now compiles what it runs: for many rows."""
    before = {name: spark.conf.get(name) for name in COMPILED}
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value or "")
