"""No catalog keeps anyone waiting for long: what cannot answer is an error, and soon."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from icetree.catalog.base import Catalog, Stale, Swapped, Unknown
from icetree.catalog.config import open_catalog
from icetree.catalog.postgres_patience import PatientConnection
from icetree.errors import InvalidInput, Unavailable
from tests.catalog.conftest import EVENTS, config, opened
from tests.effort import usually
from tests.servers.naughty import ANSWERS, naughty
from tests.servers.postgres import PostgresServer

#: Far above what any of these take, far below for ever: machines are busy at times.
SOON_S = 30


@contextmanager
def soon() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < SOON_S


@pytest.mark.parametrize(
    # Who waits for one of a wrong protocol waits as for one that is silent.
    "kind",
    usually(["refuses", *ANSWERS], "refuses", *(ANSWERS.keys() - {"ssh"})),
)
def test_an_address_that_is_no_database_is_told_in_one_sentence(kind: str) -> None:
    with naughty(kind) as port:
        where = config(
            f"postgresql://me:hunter%402@127.0.0.1:{port}/db", **{"catalog.connect-timeout": "2"}
        )
        with soon(), pytest.raises(Unavailable) as told:
            open_catalog(where)
    message = str(told.value)
    assert f"127.0.0.1:{port}/db" in message
    assert "hunter" not in message
    assert "\n" not in message


def test_the_next_host_is_asked_when_the_first_is_silent(
    postgres_uri: str,
) -> None:
    with naughty("silent") as port:
        both = postgres_uri.replace("@", f"@127.0.0.1:{port},")
        for catalog in opened(both, **{"catalog.connect-timeout": "2"}):
            catalog.create_namespace(("db",), {})
            assert catalog.namespaces() == [("db",)]


@pytest.fixture
def frozen(postgres_uri: str, postgres: PostgresServer) -> Iterator[Catalog]:
    """A catalog whose server stands still after it was opened."""
    patience = {"catalog.connect-timeout": "2", "catalog.request-timeout": "1"}
    for catalog in opened(postgres_uri, **patience):
        catalog.create_namespace(("db",), {})
        catalog.create(EVENTS, "m0")
        postgres.freeze()
        try:
            yield catalog
        finally:
            postgres.thaw()


def test_a_read_from_a_frozen_server_is_given_up(frozen: Catalog, postgres: PostgresServer) -> None:
    with soon(), pytest.raises(Unavailable, match="no answer for 3 s"):
        frozen.load(EVENTS)
    with soon(), pytest.raises(Unavailable, match=f"127.0.0.1:{postgres.port}/.*timeout"):
        frozen.load(EVENTS)
    postgres.thaw()
    assert frozen.load(EVENTS) == "m0"


@pytest.mark.parametrize(
    "change",
    [
        lambda catalog: catalog.drop(EVENTS),
        pytest.param(
            lambda catalog: catalog.create_namespace(("other",), {}), marks=pytest.mark.long
        ),
    ],
)
def test_a_change_that_a_frozen_server_never_began_is_given_up(
    frozen: Catalog, postgres: PostgresServer, change: Callable[[Catalog], None]
) -> None:
    with soon(), pytest.raises(Unavailable):
        change(frozen)
    postgres.thaw()
    assert frozen.load(EVENTS) == "m0"


def test_a_swap_that_a_frozen_server_took_is_unknown_and_asking_again_tells(
    frozen: Catalog, postgres: PostgresServer
) -> None:
    with soon():
        assert isinstance(frozen.swap(EVENTS, expected="m0", to="m1"), Unknown)
    postgres.thaw()
    again = frozen.swap(EVENTS, expected="m0", to="m1")
    # Whichever of the two the server came to first, there was one swap.
    assert again in (Swapped(), Stale(metadata_location="m1"))
    assert frozen.load(EVENTS) == "m1"


def test_what_needs_no_waiting_is_answered(postgres_uri: str) -> None:
    def at_once() -> Generator[int, int, str]:
        return "done"
        yield

    with PatientConnection.connect(postgres_uri) as connection:
        assert connection.wait(at_once()) == "done"


def _hold_lock(path: str, locked: Event, done: Event) -> None:
    raw = sqlite3.connect(path)
    raw.execute("BEGIN EXCLUSIVE")
    locked.set()
    done.wait(60)
    raw.rollback()
    raw.close()


@pytest.mark.parametrize("how", ["?timeout=0.5", ""])
def test_a_database_file_that_another_process_keeps_locked_is_given_up(
    tmp_path: Path, how: str
) -> None:
    path = tmp_path / "catalog.db"
    patience = {} if how else {"catalog.request-timeout": "0.5"}
    for catalog in opened(f"sqlite:///{path}{how}", **patience):
        catalog.create_namespace(("db",), {})
        catalog.create(EVENTS, "m0")
        spawn = multiprocessing.get_context("spawn")
        locked, done = spawn.Event(), spawn.Event()
        other = spawn.Process(target=_hold_lock, args=(str(path), locked, done))
        other.start()
        try:
            assert locked.wait(60)
            with soon(), pytest.raises(Unavailable, match=f"{path} stayed locked.*nothing changed"):
                catalog.swap(EVENTS, expected="m0", to="m1")
        finally:
            done.set()
            other.join(60)
        assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()


@pytest.mark.parametrize("name", ["catalog.connect-timeout", "catalog.request-timeout"])
@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_that_cannot_pass_is_refused(name: str, value: str, postgres_uri: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        open_catalog(config(postgres_uri, **{name: value}))


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hun%ter@127.0.0.1/db",
        "postgresql://me:hun@ter@127.0.0.1/db",
        "postgresql://me:hun/ter@127.0.0.1/db",
        "postgresql://me:12/hunter@127.0.0.1/db",
        "postgresql://me:hun:ter@127.0.0.1:hunter/db",
    ],
)
def test_an_address_with_a_sign_left_as_it_is_is_refused_without_a_word_of_it(address: str) -> None:
    with soon(), pytest.raises(InvalidInput) as told:
        open_catalog(config(address))
    message = str(told.value)
    assert "%40 for @" in message
    assert "hun" not in message
    assert "ter@" not in message


def test_a_closed_port_is_told_within_the_documented_time_for_a_connection() -> None:
    #: `catalog.connect-timeout` where nobody sets it, as docs/connecting.md has it.
    documented_s = 5
    with naughty("refuses") as port:
        started = time.monotonic()
        with pytest.raises(Unavailable, match="refused"):
            open_catalog(config(f"postgresql://me@127.0.0.1:{port}/db"))
        assert time.monotonic() - started < documented_s
