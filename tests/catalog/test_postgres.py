"""What is PostgreSQL's own: restarts, lost connections, waiting for a row."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from icetree.catalog.base import Catalog, Stale, Swapped, TableName, Unknown
from icetree.catalog.config import open_catalog
from icetree.catalog.postgres import PostgresDatabase
from icetree.catalog.sql import SqlCatalog
from icetree.errors import AlreadyExists, CommitUnknown, InvalidInput, NotFound, Unavailable
from tests.catalog.conftest import EVENTS, config, opened
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Wire, wire_to


@pytest.fixture
def catalog(postgres_uri: str) -> Iterator[Catalog]:
    for catalog in opened(postgres_uri):
        catalog.create_namespace(("db",), {})
        catalog.create(EVENTS, "m0")
        yield catalog


@pytest.fixture
def wire(postgres: PostgresServer) -> Iterator[Wire]:
    with wire_to(postgres.port) as wire:
        yield wire


@pytest.fixture
def wired(
    catalog: Catalog, postgres_uri: str, postgres: PostgresServer, wire: Wire
) -> Iterator[Catalog]:
    assert catalog
    yield from opened(postgres_uri.replace(f":{postgres.port}/", f":{wire.port}/"))


def test_an_address_may_name_a_driver(catalog: Catalog, postgres_uri: str) -> None:
    assert catalog
    for scheme in ("postgresql+psycopg", "postgresql+psycopg2", "postgres"):
        for same in opened(postgres_uri.replace("postgresql", scheme, 1)):
            assert same.load(EVENTS) == "m0"


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_a_restart_of_the_server_goes_unnoticed(
    catalog: Catalog, postgres: PostgresServer, end: str
) -> None:
    getattr(postgres, end)()
    postgres.start()
    assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()
    assert catalog.load(EVENTS) == "m1"


def test_a_server_that_is_down_is_told_without_the_password(
    catalog: Catalog, postgres: PostgresServer, postgres_uri: str
) -> None:
    password = postgres_uri.split(":")[2].partition("@")[0]
    postgres.stop()
    try:
        for call in (
            lambda: catalog.load(EVENTS),
            lambda: catalog.swap(EVENTS, expected="m0", to="m1"),
            lambda: catalog.drop(EVENTS),
            lambda: open_catalog(config(postgres_uri)),
        ):
            with pytest.raises(Unavailable) as caught:
                call()
            assert password not in str(caught.value)
    finally:
        postgres.start()
    assert catalog.load(EVENTS) == "m0"


def test_a_swap_whose_answer_is_lost_is_unknown_and_asking_again_tells(
    wired: Catalog, catalog: Catalog, wire: Wire
) -> None:
    wire.cut_answer = b"WITH won"
    assert isinstance(wired.swap(EVENTS, expected="m0", to="m1"), Unknown)
    give_up = time.monotonic() + 10
    while catalog.load(EVENTS) == "m0" and time.monotonic() < give_up:
        time.sleep(0.01)
    assert wired.swap(EVENTS, expected="m0", to="m1") == Stale(metadata_location="m1")


def test_a_swap_whose_request_is_lost_is_unknown_and_can_be_asked_for_again(
    wired: Catalog, wire: Wire
) -> None:
    wire.cut_request = b"WITH won"
    assert isinstance(wired.swap(EVENTS, expected="m0", to="m1"), Unknown)
    assert wired.load(EVENTS) == "m0"
    assert wired.swap(EVENTS, expected="m0", to="m1") == Swapped()


def test_a_create_whose_answer_is_lost_is_looked_up(
    wired: Catalog, catalog: Catalog, wire: Wire
) -> None:
    new = TableName(("db",), "new")
    wire.cut_answer = b"COMMIT\0"
    try:
        wired.create(new, "n0")
    except CommitUnknown:
        # The server had not got to it when it was asked.
        time.sleep(0.5)
    assert catalog.load(new) == "n0"


def test_a_create_that_never_arrived_stays_unknown(wired: Catalog, wire: Wire) -> None:
    new = TableName(("db",), "new")
    wire.cut_request = b"COMMIT\0"
    with pytest.raises(CommitUnknown):
        wired.create(new, "n0")
    with pytest.raises(NotFound):
        wired.load(new)


def test_a_create_lost_before_its_commit_changed_nothing(wired: Catalog, wire: Wire) -> None:
    wire.cut_request = b"INSERT"
    with pytest.raises(Unavailable):
        wired.create(TableName(("db",), "new"), "n0")
    with pytest.raises(AlreadyExists):
        wired.create(EVENTS, "n0")


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_a_swap_that_waited_for_the_winner_learns_the_new_head(
    catalog: Catalog, postgres_uri: str, isolation: str
) -> None:
    with psycopg.connect(postgres_uri, autocommit=True) as admin:
        admin.execute(
            f"ALTER ROLE icetree SET default_transaction_isolation = '{isolation}'".encode()
        )
    try:
        for waiting in opened(postgres_uri):
            _race(waiting, postgres_uri)
    finally:
        with psycopg.connect(postgres_uri, autocommit=True) as admin:
            admin.execute("ALTER ROLE icetree RESET default_transaction_isolation")
    assert catalog.load(EVENTS) == "rival"


def _race(waiting: Catalog, uri: str) -> None:
    outcomes = []
    with psycopg.connect(uri) as rival:
        rival.execute("UPDATE iceberg_tables SET metadata_location = 'rival'")
        thread = threading.Thread(
            target=lambda: outcomes.append(waiting.swap(EVENTS, expected="m0", to="ours"))
        )
        thread.start()
        give_up = time.monotonic() + 10
        with psycopg.connect(uri, autocommit=True) as watch:
            blocked = b"SELECT count(*) FROM pg_locks WHERE NOT granted"
            while watch.execute(blocked).fetchone() == (0,) and time.monotonic() < give_up:
                time.sleep(0.01)
    thread.join()
    assert outcomes == [Stale(metadata_location="rival")]


def test_a_swap_that_waits_too_long_changes_nothing(catalog: Catalog, postgres_uri: str) -> None:
    impatient = SqlCatalog("main", PostgresDatabase(postgres_uri, request_timeout_s=0.3))
    with psycopg.connect(postgres_uri) as rival:
        rival.execute("UPDATE iceberg_tables SET metadata_location = 'rival'")
        with pytest.raises(Unavailable, match="nothing changed"):
            impatient.swap(EVENTS, expected="m0", to="m1")
        rival.rollback()
    assert catalog.load(EVENTS) == "m0"
    impatient.close()


def test_more_threads_than_connections_take_turns(postgres_uri: str, catalog: Catalog) -> None:
    assert catalog
    narrow = SqlCatalog("main", PostgresDatabase(postgres_uri, most=1))
    heads: list[str] = []
    threads = [threading.Thread(target=lambda: heads.append(narrow.load(EVENTS))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heads == ["m0"] * 5
    narrow.close()


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        open_catalog(config("postgresql://host/db?no-such-option=1"))
