"""Settings of Spark for tests, whose rows are few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tests.jars import REPOSITORY

#: Compiling code for each plan takes longer than to run it on a few rows, and what better compilers
#: make of Spark itself pays off only after a test run has ended. Most of what is made is garbage soon.
#: Classes of jars are taken as they are, which a sixth of a start goes by: the cluster's Java and the
#: demo's still look at each, at the one that is compiled from our source, too.
INTERPRETED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -Xmn600m "
    "-XX:CompileThresholdScaling=4 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.sql.codegen.wholeStage": "false",
    # Nobody looks at the plans that are told to a user interface.
    "spark.sql.ui.explainMode": "simple",
}
#: Where rows are many it is the other way round.
COMPILED = {"spark.sql.codegen.wholeStage": "true"}
QUICK = {
    **INTERPRETED,
    "spark.python.daemon.module": "tests.spark.workers",
    "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
}


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    was = spark.conf.get(name)
    assert was is not None
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, was)
