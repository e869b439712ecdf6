"""Turns: who has one, who waits, and that nothing rests on them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from icetree.catalog.base import Catalog, Swapped, TableName
from icetree.catalog.config import Config, open_catalog
from icetree.catalog.turns import by_file, number_of
from tests.catalog.conftest import EVENTS

OTHER = TableName(("db",), "other")


def test_one_has_the_turn_of_a_table_at_a_time(catalog: Catalog) -> None:
    assert not catalog.turn_taken(EVENTS)
    with catalog.turn(EVENTS, wait_s=1) as first:
        assert first
        assert catalog.turn_taken(EVENTS)
        with catalog.turn(EVENTS, wait_s=0.05) as second:
            assert not second
    assert not catalog.turn_taken(EVENTS)


def test_tables_have_turns_of_their_own(catalog: Catalog) -> None:
    with catalog.turn(EVENTS, wait_s=1) as one, catalog.turn(OTHER, wait_s=1) as two:
        assert one
        assert two


def test_who_waits_has_the_turn_once_it_is_given_back(catalog: Catalog) -> None:
    had: list[bool] = []

    def wait() -> None:
        with catalog.turn(EVENTS, wait_s=30) as turn:
            had.append(turn)

    with catalog.turn(EVENTS, wait_s=1):
        waiting = Thread(target=wait)
        waiting.start()
        assert had == []
    waiting.join(30)
    assert had == [True]


def test_a_turn_ends_with_an_error(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="broken"), catalog.turn(EVENTS, wait_s=1):
        raise ValueError("broken")
    assert not catalog.turn_taken(EVENTS)


def test_a_swap_needs_no_turn(catalog: Catalog) -> None:
    catalog.create_namespace(("db",), {})
    catalog.create(EVENTS, "m0")
    with catalog.turn(EVENTS, wait_s=1):
        assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_turn_ends_with_its_process(kind: str, request: pytest.FixtureRequest) -> None:
    uri = request.getfixturevalue(f"{kind}_uri")
    code = (
        "import sys, time\n"
        "from icetree.catalog.base import TableName\n"
        "from icetree.catalog.config import Config, open_catalog\n"
        f"catalog = open_catalog(Config(name='main', uri={uri!r}, warehouse=None, properties={{}}))\n"
        "with catalog.turn(TableName(('db',), 'events'), wait_s=1) as had:\n"
        "    print(had, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        catalog = open_catalog(Config(name="main", uri=uri, warehouse=None, properties={}))
        assert catalog.turn_taken(EVENTS)
        child.send_signal(signal.SIGKILL)
        child.wait()
    with catalog.turn(EVENTS, wait_s=30) as had:
        assert had
    catalog.close()


def test_who_goes_on_without_a_turn_keeps_no_connection_for_it(postgres_uri: str) -> None:
    catalog = open_catalog(Config(name="main", uri=postgres_uri, warehouse=None, properties={}))
    stuck = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction (aborted)'"
    with (
        catalog.turn(EVENTS, wait_s=1) as first,
        catalog.turn(EVENTS, wait_s=0.05) as second,
        psycopg.connect(postgres_uri) as another,
    ):
        assert first
        assert not second
        assert another.execute(stuck).fetchone() == (0,)
    catalog.close()


def test_where_no_file_can_be_made_there_are_no_turns(tmp_path: Path) -> None:
    with by_file(tmp_path / "missing" / "turns", number_of("t"), wait_s=60) as had:
        assert not had
