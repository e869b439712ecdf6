"""A client that asks for v2 is shown tables with deletion vectors, and deletes by position itself."""

from __future__ import annotations

from typing import Any

import pytest

from icetree.serve.server import Server
from icetree.spec.location import absolute
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client, Told
from tests.serve.test_requirements import REBASE, new_lake, rows
from tests.table.changing import ARROW, delete_rows, some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import first
from tests.table.export.test_stand_ins_sent import position_deletes, tell_deletes

T = "/v1/namespaces/db/tables/t"
TWO = {"x-icetree-format-version": "2"}


def asking(lake: Lake) -> Client:
    return Client(Server(lake), headers=TWO)


def send(lake: Lake, client: StockClient, operation: str = "delete") -> Told:
    head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": client.parent}
    moved = {"ref-name": "main", "type": "branch", "snapshot-id": client.id}
    body = {
        "requirements": [head],
        "updates": [
            {"action": "add-snapshot", "snapshot": client.snapshot(operation)},
            {"action": "set-snapshot-ref", **moved},
        ],
    }
    return asking(lake).post(T, body)


def table_of(lake: Lake) -> Table:
    table = lake.table("db.t")
    table.append(some(*((id, "a") for id in range(4))))
    table.append(some(*((id, "b") for id in range(4, 8))))
    return table


def require_shown(lake: Lake) -> None:
    """Require that the table is shown as v2, with every file that it takes there."""
    told = asking(lake).get(T)
    assert told.status == 200
    metadata: dict[str, Any] = told.json["metadata"]
    assert metadata["format-version"] == 2
    store = lake.store
    table = lake.table("db.t")
    for each in StockClient(table, version=2, id=1).files(holds_data=False).to_pylist():
        assert each["file_format"] == "parquet"
        size = store.size(absolute(each["location"], table.location))
        assert each["status"] == 2 or size == each["file_size_in_bytes"]


@pytest.mark.parametrize("properties", [{}, REBASE], ids=["strict", "rebase"])
def test_who_deletes_by_position_is_shown_the_table_after_it(properties: dict[str, str]) -> None:
    lake = new_lake(**properties)
    table = table_of(lake)
    client = StockClient(table, version=2)
    name = first(client)
    gone = {0: 1, 1: 2} if "a" in _values(table, name) else {0: 5, 1: 6}
    client.add(position_deletes(table, name, 1, 2))
    assert send(lake, client).status == 200
    left = {*range(8)} - {*gone.values()}
    assert rows(lake) == sorted(left)
    require_shown(lake)
    # Once more on the same file: the first deletes stay, told by the one that stands for them.
    table.refresh()
    client = StockClient(table, version=2, id=4712)
    tell_deletes(client, name)
    client.add(position_deletes(table, name, 0, 1, 2))
    assert send(lake, client).status == 200
    left.discard(0 if 1 in gone.values() else 4)
    assert rows(lake) == sorted(left)
    require_shown(lake)


def _values(table: Table, name: str) -> set[str]:
    found = table.scan(columns=["v", "_file"]).to_arrow().to_pylist()
    return {each["v"] for each in found if each["_file"].endswith(name)}


def test_a_delete_by_a_vector_locks_out_no_client_of_v2() -> None:
    lake = new_lake()
    table = table_of(lake)
    require_shown(lake)
    delete_rows(table, [1, 6])
    require_shown(lake)
    python = Client(Server(lake), headers={"user-agent": "PyIceberg/0.12.0"})
    assert python.get(T).json["metadata"]["format-version"] == 2


def test_a_plan_tells_deletes_by_the_names_that_manifests_have() -> None:
    lake = new_lake()
    table = table_of(lake)
    delete_rows(table, [1, 6])
    told = asking(lake).post(f"{T}/plan", {})
    assert told.status == 200
    plan = told.json
    deletes = plan["delete-files"]
    assert {each["file-format"] for each in deletes} == {"parquet"}
    assert not any("content-offset" in each for each in deletes)
    manifests = StockClient(table, version=2).files(holds_data=False)
    names = {absolute(each, table.location) for each in manifests["location"].to_pylist()}
    assert {each["file-path"] for each in deletes} == names
    for task in plan["file-scan-tasks"]:
        [number] = task["delete-file-references"]
        assert deletes[number]["referenced-data-file"] == task["data-file"]["file-path"]
    # Who is shown v3 has the vectors themselves.
    own = Client(Server(lake)).post(f"{T}/plan", {}).json["delete-files"]
    assert {each["file-format"] for each in own} == {"puffin"}


def test_a_table_that_went_back_to_v3_is_shown_with_its_partitions() -> None:
    lake = new_lake()
    table = lake.create_table("db.p", ARROW, partition_by="bucket(4, id)")
    table.append(some(*((id, "a") for id in range(8))))
    table.delete("id = 1 or id = 6")
    before = asking(lake).get("/v1/namespaces/db/tables/p").json["metadata"]
    lake.downgrade_table("db.p", dry_run=False)
    told = asking(lake).get("/v1/namespaces/db/tables/p")
    assert told.status == 200
    assert told.json["metadata"]["format-version"] == 2
    assert told.json["metadata"]["partition-specs"] == before["partition-specs"]
    [fields] = (each["fields"] for each in before["partition-specs"])
    assert [each["transform"] for each in fields] == ["bucket[4]"]


@pytest.mark.parametrize("version", ["4", "1", "9", "", "two", "\u00b2", "3" * 5_000])
def test_a_version_that_nobody_is_shown_is_refused_before_anything_is_done(version: str) -> None:
    lake = new_lake()
    table = table_of(lake)
    former = table.state.metadata_location
    table.append(some((9, "a")))
    asking = Client(Server(lake), headers={"x-icetree-format-version": version})
    column = {"id": 1, "name": "id", "required": False, "type": "long"}
    schema = {"type": "struct", "fields": [column]}
    change = {"updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    over = {"name": "t", "metadata-location": former, "overwrite": True}
    for path, body in (
        ("/v1/namespaces/db/tables", {"name": "u", "schema": schema}),
        ("/v1/namespaces/db/register", over),
        (T, change),
    ):
        told = asking.post(path, body)
        assert told.error == (400, "BadRequestException"), path
        assert "x-icetree-format-version" in told.json["error"]["message"]
    assert lake.tables() == ["db.t"]
    assert lake.table("db.t").state.metadata_location == table.state.metadata_location
