"""Statements for stock Iceberg Java on Spark, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.jars import REPOSITORY, fetched


def told(
    folder: Path,
    uri: str,
    statements: list[str],
    *,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[list[list[Any]]]:
    """Run statements in a Spark of its own, and return the rows that each answers.

    `settings` are those of Spark, beside the usual ones.
    """
    asked, answers = folder / "asked.json", folder / "answers.json"
    asked.write_text(json.dumps(statements))
    command = [sys.executable, "-m", "tests.serve.spark_client", str(fetched("iceberg-java")), uri]
    done = subprocess.run(
        [*command, str(asked), str(answers), json.dumps(dict(settings or {}))],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found: list[list[list[Any]]] = json.loads(answers.read_text())
    return found
