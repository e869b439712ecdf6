"""A plugin of pytest, in PyIceberg's own surroundings: leaves out tests, and writes down the rest.

Two environment variables are its arguments: a regular expression of what is left out, and the file
that gets a line of JSON for each test: its id, what became of it, and the first line of its error.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

import pytest

LEFT_OUT: Final = "ICETREE_LEFT_OUT"
FILE: Final = "ICETREE_OUTCOMES"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply."""
    told = re.compile(os.environ[LEFT_OUT])
    left_out = [each for each in items if told.search(each.nodeid)]
    items[:] = [each for each in items if not told.search(each.nodeid)]
    config.hook.pytest_deselected(items=left_out)
    for each in left_out:
        _write(each.nodeid, "left out")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what became of a test: its call, or whatever failed or stopped before it or after."""
    if report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome, _first_error(report.longreprtext))


def _first_error(text: str) -> str:
    found = re.search(r"^E +(.+)$", text, re.MULTILINE)
    return found[1][:300] if found else ""


def _write(test: str, outcome: str, error: str = "") -> None:
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([test, outcome, error]) + "\n")
