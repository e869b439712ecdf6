"""PyIceberg's own SQL catalog and ours on one database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.catalog.base import Catalog, Stale, Swapped, TableName, ViewName
from tests.catalog.conftest import EVENTS, opened

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


@pytest.fixture
def theirs(sql_uri: str, tmp_path: Path) -> Iterator[PyIcebergCatalog]:
    uri = sql_uri.replace("postgresql://", "postgresql+psycopg://")
    catalog = PyIcebergCatalog("main", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    yield catalog
    catalog.engine.dispose()


@pytest.fixture
def ours(sql_uri: str) -> Iterator[Catalog]:
    yield from opened(sql_uri)


def test_ours_loads_a_table_that_pyiceberg_made(theirs: PyIcebergCatalog, ours: Catalog) -> None:
    theirs.create_namespace("db", {"owner": "ann"})
    made = theirs.create_table("db.events", SCHEMA)
    assert ours.namespaces() == [("db",)]
    assert ours.namespace_properties(("db",)) == {"owner": "ann"}
    assert ours.tables(("db",)) == [EVENTS]
    assert ours.load(EVENTS) == made.metadata_location


def test_pyiceberg_sees_what_ours_made(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    theirs.create_namespace("old")
    location = theirs.create_table("old.t", SCHEMA).metadata_location
    ours.create_namespace(("db", "inner"), {"owner": "ann"})
    table = TableName(("db", "inner"), "events")
    ours.create(table, location)
    assert ("db",) in theirs.list_namespaces()
    assert theirs.list_namespaces("db") == [("db", "inner")]
    assert theirs.list_tables("db.inner") == [("db", "inner", "events")]
    assert theirs.load_table("db.inner.events").metadata_location == location
    assert theirs.load_namespace_properties("db.inner") == {"owner": "ann", "exists": "true"}
    ours.drop(table)
    with pytest.raises(NoSuchTableError):
        theirs.load_table("db.inner.events")


def test_each_notices_the_commits_of_the_other(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    theirs.create_namespace("db")
    table = theirs.create_table("db.events", SCHEMA)
    first = table.metadata_location
    stale = theirs.load_table("db.events")
    table.transaction().set_properties(a="1").commit_transaction()
    assert ours.swap(EVENTS, expected=first, to="x") == Stale(
        metadata_location=table.metadata_location
    )
    copy = str(
        Path(table.metadata_location.removeprefix("file://")).with_name("copy.metadata.json")
    )
    Path(copy).write_bytes(Path(table.metadata_location.removeprefix("file://")).read_bytes())
    assert ours.swap(EVENTS, expected=table.metadata_location, to=copy) == Swapped()
    assert theirs.load_table("db.events").metadata_location == copy
    with pytest.raises(CommitFailedException):
        _commit_on(theirs, stale, ours)


def _commit_on(theirs: PyIcebergCatalog, stale: object, ours: Catalog) -> None:
    """Let PyIceberg commit while ours swaps between its load and its update."""
    write = theirs._write_metadata

    def slip_in(metadata: object, io: object, metadata_path: str) -> None:
        write(metadata, io, metadata_path)
        head = ours.load(EVENTS)
        assert ours.swap(EVENTS, expected=head, to=head + ".new") == Swapped()

    theirs._write_metadata = slip_in
    stale.transaction().set_properties(b="2").commit_transaction()


def test_a_view_of_ours_is_no_table_to_pyiceberg(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace(("db",), {})
    ours.create(ViewName(("db",), "seen"), "v0")
    assert theirs.list_tables("db") == []
    with pytest.raises(NoSuchTableError):
        theirs.load_table("db.seen")


def test_a_view_of_another_client_is_a_view_and_no_table(
    ours: Catalog, theirs: PyIcebergCatalog
) -> None:
    ours.create_namespace(("db",), {})
    ours.create(EVENTS, "m0")
    with theirs.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO iceberg_tables VALUES ('main', 'db', 'seen', 'v0', NULL, 'VIEW')"
        )
    assert ours.tables(("db",)) == [EVENTS]
    assert ours.views(("db",)) == [ViewName(("db",), "seen")]
    assert ours.load(ViewName(("db",), "seen")) == "v0"


def test_catalogs_of_other_names_in_the_database_stay_apart(ours: Catalog, sql_uri: str) -> None:
    ours.create_namespace(("db",), {})
    ours.create(EVENTS, "m0")
    for other in opened(sql_uri, name="other"):
        assert other.namespaces() == []
        other.create_namespace(("db",), {})
        other.create(EVENTS, "o0")
        assert other.swap(EVENTS, expected="o0", to="o1") == Swapped()
        other.drop(EVENTS)
        other.drop_namespace(("db",))
    assert ours.load(EVENTS) == "m0"
