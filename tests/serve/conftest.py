"""A lake with a namespace, and servers over it; a catalog that waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import icetree
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.edge import Slow


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    uri = f"sqlite:///{tmp_path}/c.db"
    with icetree.connect(uri, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture
def client(lake: Lake) -> Client:
    return Client(Server(lake))


@pytest.fixture
def slow() -> Iterator[Slow]:
    catalog = Slow()
    yield catalog
    catalog.go.set()
