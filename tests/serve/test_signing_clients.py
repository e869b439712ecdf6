"""Stock clients that have no keys of S3 read, insert and delete: the server signs for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icetree
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.jars import REPOSITORY, fetched
from tests.serve.listening import Listening, listening
from tests.serve.stock_spark import ENVIRONMENT, told
from tests.servers.s3 import shared_s3


@pytest.fixture
def lake() -> Iterator[Lake]:
    s3 = shared_s3()
    place = f"s3://{s3.new_bucket()}/lake"
    with icetree.connect("memory://", warehouse=place, properties=s3.properties()) as lake:
        lake.create_namespace("db")
        for name in ("py", "java"):
            table = lake.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
            table.append(pa.table({"id": [1, 2, 3]}))
        yield lake


@pytest.fixture
def at(lake: Lake) -> Iterator[Listening]:
    with listening(Server(lake)) as at:
        yield at


def require_signed(at: Listening) -> None:
    """Require that requests of the client were signed, and none refused."""
    told = at.ask("GET", "/metrics").read().decode()
    counts = dict(re.findall(r'tables/{table}/sign",method="POST",status="(\d+)"} (\d+)', told))
    assert {*counts} == {"200"}
    assert int(counts["200"]) > 3


def ids(lake: Lake, name: str) -> list[int]:
    table = lake.table(name)
    assert table.verify(deep=True).is_clean
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_pyiceberg_reads_appends_and_deletes(lake: Lake, at: Listening) -> None:
    paths = [str(fetched("s3fs")), str(REPOSITORY)]
    # With more threads it sends a request without its signature now and then.
    environment = {"PYTHONPATH": os.pathsep.join(paths), "PYICEBERG_MAX_WORKERS": "1"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.serve.pyiceberg_client",
            f"http://127.0.0.1:{at.port}",
            "db.py",
        ],
        cwd=REPOSITORY,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    after = [1, 3, 11, 13]
    assert json.loads(done.stdout) == [[1, 2, 3], [1, 2, 3, 11, 12, 13], after]
    assert ids(lake, "db.py") == after
    require_signed(at)


def test_spark_with_iceberg_java_selects_inserts_and_deletes(
    lake: Lake, at: Listening, tmp_path: Path
) -> None:
    settings = {
        "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.lake.header.X-Iceberg-Access-Delegation": "remote-signing",
    }
    read = "SELECT id FROM db.java ORDER BY id"
    statements = [
        read,
        "INSERT INTO db.java VALUES (11), (12), (13)",
        "DELETE FROM db.java WHERE id IN (2, 12)",
        read,
    ]
    uri = f"http://127.0.0.1:{at.port}"
    found = told(tmp_path, uri, statements, settings=settings)
    after = [1, 3, 11, 13]
    assert (found[0], found[-1]) == ([[1], [2], [3]], [[each] for each in after])
    assert ids(lake, "db.java") == after
    require_signed(at)
