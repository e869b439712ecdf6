"""Iceberg Java in a bare JVM, without Spark: it starts in a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from icetree.spark.java import java_home
from tests.jars import fetched

_SMALL = [
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dslf4j.internal.verbosity=ERROR",
]


@contextmanager
def iceberg_java() -> Iterator[Any]:
    """Yield a JVM that knows Iceberg's classes, and end it."""
    jars = Path(pyspark.__file__).parent / "jars"
    [py4j] = jars.glob("py4j*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{fetched('iceberg-java')}:{jars}/*",
        javaopts=_SMALL,
        java_path=str(java_home() / "bin" / "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    found = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=found)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
