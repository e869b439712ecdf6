"""Statements for stock Iceberg Java on Spark, in a process of its own that all tests of this one share."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.jars import REPOSITORY, fetched

#: Nothing of S3 is known to it: what it reaches there, the server signs.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
}


@dataclass(slots=True)
class _Shared:
    """The one that runs, if any, and what it says beside its answers."""

    running: subprocess.Popen[str] | None = None
    log: IO[str] = field(default_factory=lambda: tempfile.TemporaryFile("w+"))  # noqa: SIM115


_SHARED = _Shared()


def told(
    folder: Path,
    uri: str,
    statements: list[str],
    *,
    settings: Mapping[str, str] | None = None,
) -> list[list[list[Any]]]:
    """Run statements in a session of their own, and return the rows that each answers.

    `settings` are those of the session, beside the usual ones.
    """
    lake = "spark.sql.catalog.lake"
    usual = {
        "spark.sql.defaultCatalog": "lake",
        lake: "org.apache.iceberg.spark.SparkCatalog",
        f"{lake}.type": "rest",
        f"{lake}.uri": uri,
        f"{lake}.cache-enabled": "false",
    }
    asked = {"settings": {**usual, **(settings or {})}, "statements": statements}
    return _asked(folder, asked)


def ran(folder: Path, program: str, statements: list[str]) -> list[list[list[Any]]]:
    """Run a program that makes a session, then statements in the same; return the rows of these."""
    return _asked(folder, {"program": program, "statements": statements})


def _asked(folder: Path, asked: Mapping[str, Any]) -> list[list[list[Any]]]:
    answers = folder / "answers.json"
    spark = _spark()
    assert spark.stdin is not None
    assert spark.stdout is not None
    print(json.dumps({**asked, "answers": str(answers)}), file=spark.stdin, flush=True)
    done = spark.stdout.readline()
    assert done, f"the stock Spark has ended: {_said()[-5000:]}"
    wrong = json.loads(done)["wrong"]
    # Java tells what is wrong first, and Python where.
    assert wrong is None, f"{wrong[:2000]}…{wrong[-3000:]}"
    found: list[list[list[Any]]] = json.loads(answers.read_text())
    return found


def _spark() -> subprocess.Popen[str]:
    """Return the program that runs statements; it starts when it is first asked for."""
    if _SHARED.running is None or _SHARED.running.poll() is not None:
        jars = ",".join(str(fetched(each)) for each in ("iceberg-java", "iceberg-aws"))
        _SHARED.running = subprocess.Popen(
            [sys.executable, "-m", "tests.serve.spark_client", jars],
            cwd=REPOSITORY,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=_SHARED.log,
            text=True,
        )
        atexit.register(_end, _SHARED.running)
    return _SHARED.running


def _said() -> str:
    _SHARED.log.seek(0)
    return _SHARED.log.read()


def _end(running: subprocess.Popen[str]) -> None:
    """End it: it stops where its input does."""
    try:
        running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
