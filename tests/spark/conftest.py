"""One Spark session for all tests here: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from icetree.spark.session import local_session

#: Rows are few: compiling code for each plan would take longer than running it.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("icetree tests", shuffle_partitions=2, extra_conf=QUICK)
    yield session
    session.stop()
