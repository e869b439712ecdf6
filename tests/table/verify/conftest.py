"""A table on a local disk with a bit of everything in it, whole again after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.table.damage import Site, make_table, open_lake


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lake")
    make_table(made)
    return made


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    with open_lake(folder) as lake:
        yield Site(table=lake.table("db.t"))
