"""Databases whose tables are of the first version, or broken."""

from __future__ import annotations

import multiprocessing

import pytest
from sqlalchemy import create_engine, inspect

from icetree.catalog.base import Swapped, TableName, ViewName
from icetree.catalog.config import open_catalog
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from tests.catalog.conftest import EVENTS, config, opened
from tests.catalog.racers import open_and_migrate

FIRST_VERSION = (
    """CREATE TABLE iceberg_tables (
        catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
        table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),
        previous_metadata_location VARCHAR(1000),
        PRIMARY KEY (catalog_name, table_namespace, table_name))""",
    """CREATE TABLE iceberg_namespace_properties (
        catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
        property_key VARCHAR(255), property_value VARCHAR(1000),
        PRIMARY KEY (catalog_name, namespace, property_key))""",
    "INSERT INTO iceberg_tables VALUES ('main', 'db', 'events', 'm0', NULL)",
)


def execute(uri: str, *statements: str) -> None:
    engine = create_engine(uri.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def columns(uri: str) -> list[str]:
    engine = create_engine(uri.replace("postgresql://", "postgresql+psycopg://"))
    found = [column["name"] for column in inspect(engine).get_columns("iceberg_tables")]
    engine.dispose()
    return found


@pytest.fixture
def old_uri(sql_uri: str) -> str:
    execute(sql_uri, *FIRST_VERSION)
    return sql_uri


def test_a_database_of_the_first_version_is_used_as_it_is(old_uri: str) -> None:
    for catalog in opened(old_uri):
        assert catalog.tables(("db",)) == [EVENTS]
        assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()
        catalog.create(TableName(("db",), "new"), "n0")
        catalog.rename(EVENTS, TableName(("db",), "moved"))
        catalog.drop(TableName(("db",), "moved"))
        assert catalog.load(TableName(("db",), "new")) == "n0"
    assert "iceberg_type" not in columns(old_uri)


def test_a_database_of_the_first_version_holds_no_views_until_it_is_migrated(old_uri: str) -> None:
    view = ViewName(("db",), "seen")
    for catalog in opened(old_uri):
        with pytest.raises(Unsupported, match=r"jdbc\.schema-version=v1"):
            catalog.create(view, "v0")
        assert catalog.views(("db",)) == []
    for catalog in opened(old_uri, **{"jdbc.schema-version": "v1"}):
        catalog.create(view, "v0")
        assert catalog.views(("db",)) == [view]
        assert catalog.tables(("db",)) == [EVENTS]


@pytest.mark.parametrize(
    "asked", [{"schema_version": "v1"}, {"jdbc.schema-version": "V1"}], ids=["PyIceberg", "JDBC"]
)
def test_a_database_is_migrated_when_asked(old_uri: str, asked: dict[str, str]) -> None:
    for catalog in opened(old_uri, **asked):
        assert catalog.load(EVENTS) == "m0"
    assert columns(old_uri)[-1] == "iceberg_type"


def test_a_catalog_works_on_while_another_process_migrates_and_adds_views(old_uri: str) -> None:
    for catalog in opened(old_uri):
        # Often enough for a driver to have prepared its statements.
        assert {catalog.load(EVENTS) for _ in range(10)} == {"m0"}
        execute(
            old_uri,
            "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)",
            "INSERT INTO iceberg_tables VALUES ('main', 'db', 'seen', 'v0', NULL, 'VIEW')",
        )
        assert catalog.tables(("db",)) == [EVENTS]
        assert catalog.swap(EVENTS, expected="m0", to="m1") == Swapped()
        catalog.create(TableName(("db",), "new"), "n0")
        assert TableName(("db",), "new") in catalog.tables(("db",))


def test_processes_that_migrate_at_once_all_succeed(old_uri: str) -> None:
    with multiprocessing.get_context("spawn").Pool(6) as pool:
        assert pool.map(open_and_migrate, [old_uri] * 6, chunksize=1) == [["events"]] * 6
    assert columns(old_uri).count("iceberg_type") == 1


def test_an_unknown_version_is_refused(old_uri: str) -> None:
    with pytest.raises(InvalidInput, match="v9"):
        open_catalog(config(old_uri, schema_version="v9"))


def test_tables_are_not_made_where_that_is_forbidden(sql_uri: str) -> None:
    with pytest.raises(NotFound, match="init_catalog_tables"):
        open_catalog(config(sql_uri, init_catalog_tables="false"))


def test_a_row_without_a_location_is_told_apart_from_no_row(old_uri: str) -> None:
    execute(old_uri, "UPDATE iceberg_tables SET metadata_location = NULL")
    for catalog in opened(old_uri):
        with pytest.raises(CorruptTable, match=r"db\.events.*metadata_location"):
            catalog.load(EVENTS)


def test_a_swap_remembers_the_head_before(sql_uri: str) -> None:
    for catalog in opened(sql_uri):
        catalog.create_namespace(("db",), {})
        catalog.create(EVENTS, "m0")
        catalog.swap(EVENTS, expected="m0", to="m1")
    engine = create_engine(sql_uri.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        row = connection.exec_driver_sql("SELECT * FROM iceberg_tables").one()
    engine.dispose()
    assert tuple(row) == ("main", "db", "events", "m1", "m0", "TABLE")
