"""What the tests talk to: a store, `icetree serve`, and Spark with nothing but Iceberg Java."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

import icetree
from icetree.spark.java import java_home
from tests.jars import place_of
from tests.servers.s3 import S3Server

#: The keys and the bucket that the tests name.
ACCESS_KEY, SECRET_KEY, BUCKET = "admin", "password", "warehouse"

_CONNECT: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


@contextmanager
def store() -> Iterator[S3Server]:
    """Run an S3 server that knows the tests' keys and has their bucket."""
    server = S3Server(access_key=ACCESS_KEY, secret_key=SECRET_KEY)
    try:
        server.start()
        server.new_bucket(BUCKET)
        yield server
    finally:
        server.remove()


def catalog_in(folder: Path) -> str:
    """Return the address of the catalog that is served."""
    return f"sqlite:///{folder}/catalog.db"


@contextmanager
def serving(folder: Path, properties: Mapping[str, str]) -> Iterator[str]:
    """Run `icetree serve` over a new SQLite catalog, as people do; yields its host and port."""
    catalog, warehouse = catalog_in(folder), f"s3://{BUCKET}"
    with icetree.connect(catalog, warehouse=warehouse, properties=properties) as lake:
        lake.create_namespace("default")
    command = [sys.executable, "-m", "icetree", "--catalog", catalog, "--warehouse", warehouse]
    for key, value in properties.items():
        command += ["--property", f"{key}={value}"]
    log = folder / "server.log"
    with log.open("w") as writing:
        server = subprocess.Popen(
            [*command, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=writing, text=True
        )
    try:
        assert server.stdout is not None  # it is a pipe
        for line in server.stdout:
            if found := re.search(r"http://([\w.]+:\d+)", line):
                yield found[1]
                break
        else:
            raise RuntimeError(f"icetree serve did not start: {log.read_text()}")
    finally:
        server.terminate()
        server.communicate(timeout=60)


@contextmanager
def spark_connect(folder: Path, rest: str, properties: Mapping[str, str]) -> Iterator[str]:
    """Run Spark Connect with Iceberg Java, which knows the catalog's address; yields its own."""
    port = _free_port()
    jars = [place_of("iceberg-java"), *sorted(place_of("s3a").glob("*.jar"))]
    if not jars[0].exists() or len(jars) == 1:
        raise RuntimeError("Spark needs jars: run `make iceberg-java s3a`, which takes Maven")
    settings = _settings(rest, properties) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", _CONNECT]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    surroundings = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = folder / "spark.log"
    with log.open("w") as writing:
        spark = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=writing,
            stderr=writing,
            cwd=folder,
            env=surroundings,
        )
    try:
        give_up = time.monotonic() + 180
        while not _answers(port):
            if spark.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"Spark Connect did not start: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        spark.terminate()
        spark.wait(60)


def _settings(rest: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return what PyIceberg's own Spark is set to, with Hadoop's S3 for that of AWS's bundle."""
    return {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.rest": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.rest.type": "rest",
        "spark.sql.catalog.rest.uri": f"http://{rest}",
        "spark.sql.catalog.rest.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "spark.sql.catalog.rest.cache-enabled": "false",
        "spark.sql.defaultCatalog": "rest",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.hadoop.fs.s3.impl": _S3A,
        "spark.hadoop.fs.s3a.endpoint": properties["s3.endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": properties["s3.region"],
        "spark.hadoop.fs.s3a.access.key": properties["s3.access-key-id"],
        "spark.hadoop.fs.s3a.secret.key": properties["s3.secret-access-key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True
