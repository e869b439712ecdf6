"""Clients that would expire snapshots: those that delete files after that may not, on a table of v4."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client, Told
from tests.serve.committing import PYICEBERG, T, commit

#: What Iceberg Java says of itself, and who says nothing.
OTHERS = [{"x_client_version": "Apache Iceberg 1.11.0 (commit 6976e02)"}, {}]


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create_table("db.t", "id long")
    for id in range(3):
        table.append(pa.table({"id": [id]}))
    return table


def snapshot_ids(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.refresh().metadata.snapshots]


def expire(client: Client, ids: list[int], **headers: str) -> Told:
    return commit(client, {"action": "remove-snapshots", "snapshot-ids": ids}, **headers)


@pytest.mark.parametrize("headers", OTHERS, ids=["Java", "unknown"])
def test_who_deletes_files_of_expired_snapshots_is_told_to_leave_it_to_icetree(
    client: Client, table: Table, headers: dict[str, str]
) -> None:
    before = snapshot_ids(table)
    refused = expire(client, before[:1], **headers)
    assert refused.error == (406, "UnsupportedOperationException")
    assert "run `icetree expire db.t`" in refused.json["error"]["message"]
    change: dict[str, Any] = {
        "identifier": {"namespace": ["db"], "name": "t"},
        "requirements": [],
        "updates": [{"action": "remove-snapshots", "snapshot-ids": before[:1]}],
    }
    together = client.post("/v1/transactions/commit", {"table-changes": [change]}, **headers)
    assert together.error == (406, "UnsupportedOperationException")
    assert snapshot_ids(table) == before


def test_pyiceberg_may_for_it_deletes_no_file(client: Client, table: Table) -> None:
    before = snapshot_ids(table)
    assert expire(client, before[:1], **PYICEBERG).status == 200
    assert snapshot_ids(table) == before[1:]
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("headers", OTHERS, ids=["Java", "unknown"])
def test_a_table_that_is_no_tree_is_its_clients_to_expire(
    client: Client, lake: Lake, table: Table, headers: dict[str, str]
) -> None:
    table.create_tag("old", at=snapshot_ids(table)[0])
    lake.downgrade_table("db.t")
    shown = client.get(T).json["metadata"]
    old = shown["refs"]["old"]["snapshot-id"]
    gone = {"action": "remove-snapshot-ref", "ref-name": "old"}
    done = commit(client, gone, {"action": "remove-snapshots", "snapshot-ids": [old]}, **headers)
    assert done.status == 200, done.body
    assert snapshot_ids(lake.table("db.t")) == [shown["current-snapshot-id"]]
