"""A lake in a folder and a server over it, each made once for a file of tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import icetree
from icetree.table.lake import Lake
from tests.jars import REPOSITORY
from tests.serve.processes import running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def served_lake(folder: Path) -> Iterator[Lake]:
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture(scope="module")
def uri(folder: Path, served_lake: Lake) -> Iterator[str]:
    del served_lake
    with running(folder) as server:
        yield server.uri


@pytest.fixture(scope="module")
def uri_of_small_pages(folder: Path, served_lake: Lake) -> Iterator[str]:
    """A server whose answers have three tasks each."""
    del served_lake
    command = [sys.executable, "-m", "tests.serve.plan.small_pages", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)
