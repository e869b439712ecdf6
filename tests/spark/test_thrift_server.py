"""Tools that speak JDBC read views of tables, through Spark's own Thrift server, as the docs tell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import icetree
from icetree.spark.java import java_home
from tests.apart import apart
from tests.jars import REPOSITORY
from tests.servers.postgres import free_port

SNIPPET = re.compile(
    r"^```py\n(import icetree\.spark\n.*?thriftserver.*?)^```", re.MULTILINE | re.DOTALL
)
PORT = "10000"


@pytest.mark.long
def test_a_tool_reads_the_rows_that_are_left_of_a_table(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.mkdir()
    with icetree.connect(f"sqlite:///{place}/catalog.db", warehouse=place / "warehouse") as lake:
        lake.create_namespace("shop")
        table = lake.create_table(
            "shop.orders", pa.schema([("id", pa.int64()), ("v", pa.string())])
        )
        table.append(pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}))
        table.delete("id = 2")
    found = apart(_asked, tmp_path, "SELECT id, v FROM orders WHERE id > 0 ORDER BY id")
    # Before them stands what it asks for.
    assert found.split()[-3:] == ["id,v", "1,a", "3,c"]


def _asked(folder: Path, query: str) -> str:
    """Do what the docs say in a folder, and return what Spark's own client prints."""
    os.chdir(folder)
    spark_home = str(Path(pyspark.__file__).parent)
    os.environ |= {"JAVA_HOME": str(java_home()), "SPARK_HOME": spark_home}
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    [snippet] = SNIPPET.findall((REPOSITORY / "docs" / "spark.md").read_text())
    port, names = str(free_port()), dict[str, object]()
    exec(snippet.replace(PORT, port), names)
    beeline = [Path(sys.executable).parent / "beeline", "-u", f"jdbc:hive2://127.0.0.1:{port}/"]
    told = subprocess.run(
        [*beeline, "--silent=true", "--outputformat=csv2", "-e", query],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    names["spark"].stop()  # type: ignore[attr-defined]
    return told.stdout
