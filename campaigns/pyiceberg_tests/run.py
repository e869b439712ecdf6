"""Start what the tests talk to, prepare their tables, run them, and judge."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from campaigns.pyiceberg_tests import outcomes as plugin
from campaigns.pyiceberg_tests.expected import CHANGED, DIFFER, LEFT_OUT
from campaigns.pyiceberg_tests.servers import serving, spark_connect, store
from campaigns.pyiceberg_tests.shipped import readdressed
from campaigns.pyiceberg_tests.verdict import Verdict, judged, outcomes, pattern

#: Those of the catalog itself, which need no Spark and take less than a minute.
QUICK: Final = (
    "test_catalog.py",
    "test_partition_evolution.py",
    "test_rest_catalog.py",
    "test_rest_schema.py",
    "test_sort_order_update.py",
    "test_statistics_operations.py",
)


def run(source: Path, python: str, folder: Path, *, quick: bool, asked: Sequence[str]) -> Verdict:
    """Run the tests of an unpacked package by another Python, and judge what became of them.

    Logs and the tests as they ran are left in the folder. `asked` is handed to pytest.
    """
    with ExitStack() as stack:
        s3 = stack.enter_context(store())
        rest = stack.enter_context(serving(folder, s3.properties()))
        # Where nobody listens, for what is not there.
        places = {"localhost:8181": rest, "localhost:9000": f"127.0.0.1:{s3.port}"}
        if not quick:
            spark = spark_connect(folder, rest, s3.properties())
            places["localhost:15002"] = stack.enter_context(spark)
        at = readdressed(source, folder / "pyiceberg", {**places, **CHANGED})
        if not quick:
            _run([python, "dev/provision.py"], at, folder / "provision.log")
        told = folder / "outcomes.jsonl"
        told.unlink(missing_ok=True)
        tests = [f"tests/integration/{each}" for each in QUICK] if quick else ["tests/integration"]
        command = [python, "-m", "pytest", "-p", "outcomes", "-p", "no:cacheprovider", "--tb=short"]
        subprocess.run(
            [*command, "--quiet", *(asked or tests)],
            cwd=at,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(plugin.__file__).parent),
                plugin.FILE: str(told),
                plugin.LEFT_OUT: pattern(LEFT_OUT),
            },
            check=False,  # what failed is judged by name
        )
        return judged(outcomes(told), DIFFER, LEFT_OUT)


def _run(command: list[str], at: Path, log: Path) -> None:
    with log.open("w") as writing:
        ended = subprocess.run(command, cwd=at, stdout=writing, stderr=writing, check=False)
    if ended.returncode:
        raise RuntimeError(f"the tests' tables could not be made: see {log}")
