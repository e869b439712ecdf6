"""The example for Spark of the page on the server, run by a stock Spark."""

from __future__ import annotations

import re
from pathlib import Path

import icetree
from tests.jars import fetched
from tests.serve.processes import running
from tests.serve.stock_spark import ran
from tests.serve.test_docs import example


def test_the_example_of_spark_runs_in_a_session_of_its_settings(tmp_path: Path) -> None:
    program = example("py spark")
    # These are of a Spark as it starts, and so of the one that is there.
    assert f'"spark.jars", "{fetched("iceberg-java").name}"' in program
    extensions = re.findall(r'"spark.sql.extensions",\s*"([\w.]+)"', program)
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        with running(tmp_path) as server:
            here = program.replace("127.0.0.1:8181", server.uri.removeprefix("http://"))
            assert here != program
            # Nobody has written since the column came.
            orders = "lake.shop.orders"
            settings, rows, ids = ran(
                tmp_path,
                here,
                [
                    "SET spark.sql.extensions",
                    f"SELECT note FROM {orders}",
                    f"SELECT id FROM {orders} WHERE note IS NULL AND day = DATE'2026-01-01'",
                ],
            )
        assert [each[1] for each in settings] == extensions
        assert (rows, ids) == ([[None]], [[1]])
        table = lake.table("shop.orders")
        assert table.scan().to_arrow()["n"].to_pylist() == [11]
        assert table.verify(deep=True).findings == ()
