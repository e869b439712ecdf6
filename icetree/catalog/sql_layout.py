"""The two tables that PyIceberg's SQL catalog and Iceberg's JDBC catalog share, and their age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icetree.catalog.database import Database, Duplicate
from icetree.errors import InvalidInput, NotFound

_INIT: Final = "init_catalog_tables"
_VERSION: Final = ("schema_version", "jdbc.schema-version")
#: Every property of a connection that is read here.
LAYOUT_PROPERTIES: Final = frozenset({_INIT, *_VERSION})

TABLES = "iceberg_tables"
PROPERTIES = "iceberg_namespace_properties"
#: The column that the first version of the layout lacks: TABLE, VIEW, or null for a table.
TYPE = "iceberg_type"

CREATE = (
    f"""CREATE TABLE IF NOT EXISTS {TABLES} (
        catalog_name VARCHAR(255) NOT NULL,
        table_namespace VARCHAR(255) NOT NULL,
        table_name VARCHAR(255) NOT NULL,
        metadata_location VARCHAR(1000),
        previous_metadata_location VARCHAR(1000),
        {TYPE} VARCHAR(5),
        PRIMARY KEY (catalog_name, table_namespace, table_name))""",
    f"""CREATE TABLE IF NOT EXISTS {PROPERTIES} (
        catalog_name VARCHAR(255) NOT NULL,
        namespace VARCHAR(255) NOT NULL,
        property_key VARCHAR(255) NOT NULL,
        property_value VARCHAR(1000) NOT NULL,
        PRIMARY KEY (catalog_name, namespace, property_key))""",
)
MIGRATE = f"ALTER TABLE {TABLES} ADD COLUMN {TYPE} VARCHAR(5)"

_ROW = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
LOAD = f"SELECT * FROM {TABLES} WHERE {_ROW}"
SWAP = (
    f"UPDATE {TABLES} SET metadata_location = ?, previous_metadata_location = ?"
    f" WHERE {_ROW} AND metadata_location = ?"
)
DROP = f"DELETE FROM {TABLES} WHERE {_ROW}"
DROP_EXPECTED = f"{DROP} AND metadata_location = ?"
RENAME = f"UPDATE {TABLES} SET table_namespace = ?, table_name = ? WHERE {_ROW}"
INSERT = (
    f"INSERT INTO {TABLES} (catalog_name, table_namespace, table_name, metadata_location)"
    " VALUES (?, ?, ?, ?)"
)
INSERT_TYPED = (
    f"INSERT INTO {TABLES} (catalog_name, table_namespace, table_name, metadata_location, {TYPE})"
    " VALUES (?, ?, ?, ?, ?)"
)
LIST = f"SELECT * FROM {TABLES} WHERE catalog_name = ? AND table_namespace = ?"

# `substr` and not LIKE, which ignores case in SQLite and needs escapes. A namespace is there when
# it, or one below it, has a property or holds a table: PyIceberg's and JDBC's rule.
NAMESPACES = (
    f"SELECT table_namespace AS namespace FROM {TABLES} WHERE catalog_name = ?"
    " AND (table_namespace = ? OR substr(table_namespace, 1, ?) = ?)"
    f" UNION SELECT namespace FROM {PROPERTIES} WHERE catalog_name = ?"
    " AND (namespace = ? OR substr(namespace, 1, ?) = ?)"
)
ALL_NAMESPACES = (
    f"SELECT table_namespace AS namespace FROM {TABLES} WHERE catalog_name = ?"
    f" UNION SELECT namespace FROM {PROPERTIES} WHERE catalog_name = ?"
)
GET_PROPERTIES = f"SELECT * FROM {PROPERTIES} WHERE catalog_name = ? AND namespace = ?"
DROP_PROPERTIES = f"DELETE FROM {PROPERTIES} WHERE catalog_name = ? AND namespace = ?"
PUT_PROPERTY = (
    f"INSERT INTO {PROPERTIES} (catalog_name, namespace, property_key, property_value)"
    " VALUES (?, ?, ?, ?)"
)
DROP_PROPERTY = f"{DROP_PROPERTIES} AND property_key = ?"


def prepare(database: Database, properties: Mapping[str, str]) -> bool:
    """Make sure that the layout is there; return whether rows carry a type.

    A database without it gets the newest version, unless `init_catalog_tables` is false. One in
    the first version is used as it is, and migrated only when `schema_version` (PyIceberg's name)
    or `jdbc.schema-version` says `v1`: its owner may have reasons. All this is safe among many
    processes at once; NotFound, InvalidInput.
    """
    migrate = _wants_v1(properties)
    create = properties.get(_INIT, "true").lower() not in ("false", "0", "no")
    for _ in range(2):
        have, more = database.columns(TABLES), database.columns(PROPERTIES)
        if have and more and (TYPE in have or not migrate):
            return TYPE in have
        if not create and not (have and more):
            raise NotFound(f"the database has no {TABLES}, and init_catalog_tables is false")
        try:
            with database.write() as transaction:
                if not (have and more):
                    for statement in CREATE:
                        transaction.run(statement)
                if migrate and have and TYPE not in have:
                    transaction.run(MIGRATE)
        except Duplicate:
            # A writer who does not wait for ours, such as PyIceberg, was first: look again.
            continue
    return TYPE in database.columns(TABLES)


def _wants_v1(properties: Mapping[str, str]) -> bool:
    for key in _VERSION:
        if (version := properties.get(key)) is None:
            continue
        if version.lower() not in ("v0", "v1"):
            raise InvalidInput(f"{key} is {version!r}: it can be v0 or v1")
        return version.lower() == "v1"
    return False
