"""Rows and an upgrade: a table of an older version takes rows once it is one of ours, and none before."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icetree.errors import CommitConflict, Unsupported
from icetree.table.table import Table
from tests.table.lake import connection

ROWS = pa.table({"k": pa.array([5], pa.int32())})
PLACE = "memory://lake/db/t"


@pytest.fixture(params=[1, 2, 3])
def table(request: pytest.FixtureRequest) -> Table:
    """A table without rows, of an older version."""
    document = {
        "format-version": request.param,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": PLACE,
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "k", "type": "int", "required": False}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [
                    {"source-id": 1, "field-id": 1000, "transform": "truncate[2]", "name": "k_2"}
                ],
            }
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "next-row-id": 0,
    }
    lake, location = connection(), f"{PLACE}/metadata/v1.metadata.json"
    lake.store.write_new(location, json.dumps(document).encode())
    return lake.register_table("db.t", location)


def again(table: Table) -> Table:
    """Return another handle of the table."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


def upgrade_and_append(table: Table) -> None:
    with table.transaction() as tx:
        tx.upgrade()
        tx.append(ROWS)


def test_an_older_version_takes_no_rows_whatever_else_a_transaction_does(table: Table) -> None:
    before, tx = table.state, table.transaction()
    tx.set_properties({"owner": "us"})
    with pytest.raises(Unsupported, match="upgrade it"), tx:
        tx.append(ROWS)
    assert table.refresh().state == before


def test_a_transaction_may_upgrade_a_table_and_bring_rows(table: Table) -> None:
    upgrade_and_append(table)
    assert table.refresh().scan("k = 5").to_arrow().to_pylist() == [{"k": 5}]
    assert table.verify(deep=True).is_clean


def test_rows_and_an_upgrade_conflict_with_a_column_that_came_meanwhile(table: Table) -> None:
    stale = again(table)
    with table.edit_schema() as schema:
        schema.add("c", "int")
    with pytest.raises(CommitConflict, match="last column id"):
        upgrade_and_append(stale)
    upgrade_and_append(stale.refresh())
    assert stale.scan("c is null").to_arrow().to_pylist() == [{"k": 5, "c": None}]
    assert stale.verify(deep=True).is_clean


def test_an_upgrade_alone_lands_beside_a_column_that_came_meanwhile(table: Table) -> None:
    stale = again(table)
    with table.edit_schema() as schema:
        schema.add("c", "int")
    stale.upgrade()
    stale.append(ROWS)
    assert stale.refresh().scan("c is null").to_arrow().to_pylist() == [{"k": 5, "c": None}]


def test_rows_are_refused_before_the_upgrade_in_a_transaction(table: Table) -> None:
    before = table.state
    with pytest.raises(Unsupported, match="upgrade it"), table.transaction() as tx:
        tx.append(ROWS)
    assert table.refresh().state == before
    assert not list(table.files.store.list(f"{PLACE}/data"))
