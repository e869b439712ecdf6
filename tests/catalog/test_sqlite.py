"""What is SQLite's own: locks, journals, and files that go away."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from icetree.catalog.base import Catalog, Swapped
from icetree.catalog.config import open_catalog
from icetree.errors import CorruptTable, NotFound, Unavailable
from tests.catalog.conftest import EVENTS, config, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[Catalog]:
    for catalog in opened(f"sqlite:///{path}?timeout=0.3"):
        catalog.create_namespace(("db",), {})
        catalog.create(EVENTS, "m0")
        yield catalog


@pytest.fixture
def rival(path: Path, catalog: Catalog) -> Iterator[sqlite3.Connection]:
    assert catalog
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()


def test_the_journal_is_a_write_ahead_log_flushed_at_every_commit(catalog: Catalog) -> None:
    database = catalog._database  # type: ignore[attr-defined]
    assert database.rows("PRAGMA journal_mode", ()) == [{"journal_mode": "wal"}]
    assert database.rows("PRAGMA synchronous", ()) == [{"synchronous": 2}]


def test_a_swap_waits_for_another_writer(catalog: Catalog, rival: sqlite3.Connection) -> None:
    rival.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.1, lambda: rival.execute("COMMIT"))
    timer.start()
    assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()
    timer.join()


def test_a_writer_that_never_ends_makes_a_clear_error_and_changes_nothing(
    catalog: Catalog, rival: sqlite3.Connection
) -> None:
    rival.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with pytest.raises(Unavailable, match="stayed locked"):
        catalog.swap(EVENTS, expected="m0", to="m1")
    assert 0.2 < time.monotonic() - start < 5
    assert catalog.load(EVENTS) == "m0"
    rival.execute("ROLLBACK")
    assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()


def test_a_reader_that_keeps_the_journal_from_changing_is_waited_for_then_told(
    catalog: Catalog, rival: sqlite3.Connection, path: Path
) -> None:
    catalog.close()
    rival.execute("PRAGMA journal_mode=DELETE")
    rival.execute("BEGIN")
    rival.execute("SELECT * FROM iceberg_tables").fetchone()
    with pytest.raises(Unavailable, match="stayed locked"):
        open_catalog(config(f"sqlite:///{path}?timeout=0.2"))
    rival.execute("COMMIT")
    for again in opened(f"sqlite:///{path}"):
        assert again.load(EVENTS) == "m0"


def test_a_database_that_was_deleted_takes_no_more_commits(catalog: Catalog, path: Path) -> None:
    for file in path.parent.glob("catalog.db*"):
        file.unlink()
    with pytest.raises(Unavailable, match=r"catalog\.db"):
        catalog.swap(EVENTS, expected="m0", to="m1")
    assert not path.exists()


def test_a_file_that_is_no_database_is_named(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(CorruptTable, match=r"catalog\.db"):
        open_catalog(config(f"sqlite:///{path}"))


def test_a_missing_folder_is_named(path: Path) -> None:
    with pytest.raises(NotFound, match="folder"):
        open_catalog(config(f"sqlite:///{path}/deeper/catalog.db"))


def test_a_closed_catalog_says_so(path: Path) -> None:
    catalog = open_catalog(config(f"sqlite:///{path}"))
    catalog.close()
    with pytest.raises(Unavailable, match="closed"):
        catalog.namespaces()
