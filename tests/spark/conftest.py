"""One Spark session for all tests here: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from icetree.spark.session import local_session
from tests.jars import REPOSITORY, place_of

#: Rows are few: compiling code for each plan would take longer than running it.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.python.daemon.module": "tests.spark.workers",
    "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # A session gets its jars when it starts; where they are missing, only tests on S3 are, too.
    jars = ",".join(map(str, sorted(place_of("s3a").glob("*.jar"))))
    conf = {**QUICK, **({"spark.jars": jars} if jars else {})}
    session = local_session("icetree tests", shuffle_partitions=2, extra_conf=conf)
    yield session
    session.stop()
