"""A catalog of each kind, empty but for what a test puts in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icetree.catalog.base import Catalog, TableName
from icetree.catalog.config import Config, open_catalog
from tests.servers.postgres import PostgresServer, shared_server

EVENTS = TableName(("db",), "events")


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    return shared_server()


@pytest.fixture
def sqlite_uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def postgres_uri(postgres: PostgresServer) -> str:
    return postgres.new_schema()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    uri = (
        "memory://"
        if request.param == "memory"
        else request.getfixturevalue(f"{request.param}_uri")
    )
    yield from opened(uri)


@pytest.fixture(params=["sqlite", "postgres"])
def sql_uri(request: pytest.FixtureRequest) -> str:
    uri: str = request.getfixturevalue(f"{request.param}_uri")
    return uri


def config(uri: str, name: str = "main", **properties: str) -> Config:
    return Config(name=name, uri=uri, warehouse=None, properties=properties)


def opened(uri: str, name: str = "main", **properties: str) -> Iterator[Catalog]:
    catalog = open_catalog(config(uri, name, **properties))
    yield catalog
    catalog.close()
