"""The program of docs/cluster.md, as spark-submit runs it: with what is installed and nothing else."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta, timezone
from itertools import chain
from pathlib import Path

import pyarrow as pa

import icetree
from tests.jars import fetched
from tests.servers.postgres import shared_server
from tests.servers.s3 import shared_s3
from tests.spark.cluster.driver import Place, environment, settings
from tests.spark.cluster.standalone import SMALLEST, installed, spark_home
from tests.test_docs import ROOT

_PAGE = ROOT / "docs" / "cluster.md"
_CATALOG = "PYICEBERG_CATALOG__DEFAULT__URI"


def test_the_program_of_the_page_runs_by_spark_submit(tmp_path: Path) -> None:
    s3 = shared_s3()
    place = Place(
        master=SMALLEST,
        catalog=shared_server().new_schema(),
        bucket=s3.new_bucket(),
        properties=s3.properties(),
        jars=tuple(map(str, sorted(fetched("s3a").glob("*.jar")))),
        folder=tmp_path,
        python=installed(tmp_path / "python"),
        home=spark_home(tmp_path / "spark"),
    )
    now = datetime.now(timezone.utc)
    rows = pa.table({"id": [1, 2], "at": [now - timedelta(days=500), now]})
    with icetree.connect(
        place.catalog, warehouse=place.warehouse, properties=place.properties
    ) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.events", rows.schema)
        lake.append("shop.events", rows)
        _submit(place)
        assert lake.table("shop.events").scan().to_arrow()["id"].to_pylist() == [2]


def _submit(place: Place) -> None:
    """Run the program, with this place's addresses instead of the page's, and see that it succeeds."""
    page = _PAGE.read_text()
    assert f"export {_CATALOG}=" in page
    program = page.partition("```py\n")[2].partition("```")[0]
    for told, here in (
        ("s3://example-lake/warehouse", place.warehouse),
        ('{"s3.region": "eu-central-1"}', repr(place.properties)),
    ):
        assert told in program
        program = program.replace(told, here)
    (place.folder / "nightly.py").write_text(program)
    around = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
        **environment(place),
        "PYSPARK_DRIVER_PYTHON": str(place.python),
        _CATALOG: place.catalog,
    }
    set_to = (("--conf", f"{name}={value}") for name, value in settings(place).items())
    submit = [place.home / "bin" / "spark-submit", *chain.from_iterable(set_to), "nightly.py"]
    ran = subprocess.run(
        submit, cwd=place.folder, env=around, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
