"""Exports of upgraded tables: manifests from before the upgrade are used as they are, where they can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import usually
from tests.java import IcebergJava
from tests.peers.conftest import JavaTable
from tests.peers.plans import planned
from tests.peers.pyiceberg_tables import PYICEBERG_TABLES
from tests.peers.values import JAVA_TABLES
from tests.table.export.test_exported import TOLD, as_java_tells


@pytest.fixture
def lake(theirs: SqlCatalog) -> Iterator[Lake]:
    with icetree.connect(theirs.properties["uri"], properties={"name": theirs.name}) as opened:
        yield opened


@pytest.mark.law
@pytest.mark.parametrize("name", usually(PYICEBERG_TABLES, "db.v1_evolved", "db.v2"))
def test_an_upgraded_table_is_exported_with_the_manifests_it_has(
    name: str, lake: Lake, theirs: SqlCatalog, java: IcebergJava
) -> None:
    PYICEBERG_TABLES[name](theirs, name)
    table = lake.table(name)
    table.upgrade()
    told = table.export()
    assert [each for each in told.written if each.endswith(".avro")] == []
    _require_same(table, java)
    table.delete("id between 20 and 23")
    first = table.export()
    assert first.reused_manifests_count > 0
    _require_same(table, java)
    table.delete("id < 31")
    _require_same(table, java)
    for snapshot in list(table.history()):
        table.export(at=snapshot.snapshot_id)
        peer = java.table(table.export().metadata_location)
        assert java.plan(peer, at=snapshot.snapshot_id) == planned(table, at=snapshot.snapshot_id)
    table.maintenance.rewrite_manifests()
    _require_same(table, java)


def _require_same(table: Table, java: IcebergJava) -> None:
    peer = java.table(table.export().metadata_location)
    assert java.plan(peer) == planned(table)
    assert java.rows(peer, TOLD) == as_java_tells(table.scan().to_arrow())


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_TABLES)
def test_what_iceberg_java_deleted_by_position_and_by_value_stays_deleted(
    name: str, java_tables: Mapping[str, JavaTable], java: IcebergJava
) -> None:
    table = java_tables[name].opened()
    table.upgrade()
    _require_same(table, java)
    table.delete("id in (11, 12, 130)")
    _require_same(table, java)
    table.delete("country = 'FR'")
    _require_same(table, java)
