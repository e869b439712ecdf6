"""Encrypted tables behind the server: it shows them, and plans with keys; manifests are nobody's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.keys.local import LocalKeys
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.plan.planning import ask

KEY = b"0123456789012345"
PLACE = "/v1/namespaces/db/tables/t"


@pytest.fixture
def client(lake: Lake) -> Client:
    lake.keeper = LocalKeys({"k": KEY})
    table = lake.create_table(
        "db.t", pa.schema([("id", pa.int64())]), properties={"encryption.key-id": "k"}
    )
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")
    return Client(Server(lake))


def test_a_plan_has_the_keys_of_data_files_and_of_vectors(client: Client) -> None:
    told = ask(client).json
    [file] = [task["data-file"] for task in told["file-scan-tasks"]]
    [vector] = told["delete-files"]
    for one in (file, vector):
        assert bytes.fromhex(one["key-metadata"])[:1] == b"\1"


def test_a_load_comes_before_a_plan_and_sends_clients_there(client: Client, lake: Lake) -> None:
    told = client.get(PLACE)
    assert told.status == 200
    # Of a table this goes before what a client has set for all of them.
    assert told.json["config"]["scan-planning-mode"] == "server"
    shown = told.json["metadata"]
    assert shown["format-version"] == 3
    assert len(shown["snapshots"]) == 2
    asked = {"snapshot-id": shown["current-snapshot-id"]}
    assert client.post(f"{PLACE}/plan", asked).json["status"] == "completed"
    lake.create_table("db.plain", pa.schema([("id", pa.int64())]))
    assert "scan-planning-mode" not in client.get("/v1/namespaces/db/tables/plain").json["config"]


def test_nothing_is_exported_that_nobody_could_open(client: Client, lake: Lake) -> None:
    shown = client.get(PLACE).json["metadata"]
    assert not [each for each in shown["snapshots"] if lake.store.exists(each["manifest-list"])]
    assert [*lake.store.list(f"{lake.table('db.t').location}/metadata/export")] == []


def test_who_can_only_write_v2_is_shown_v3(client: Client) -> None:
    told = client.get(PLACE, user_agent="PyIceberg/0.12.0")
    assert told.json["metadata"]["format-version"] == 3


def test_a_commit_of_manifests_is_refused(client: Client, lake: Lake) -> None:
    before = lake.table("db.t").state.metadata_location
    update = {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": 7,
            "timestamp-ms": 0,
            "sequence-number": 9,
            "manifest-list": "x.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        },
    }
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7}
    told = client.post(PLACE, {"requirements": [], "updates": [update, ref]})
    assert told.status >= 400
    assert lake.table("db.t").state.metadata_location == before


def test_no_table_becomes_encrypted_by_a_client(client: Client, lake: Lake) -> None:
    lake.create_table("db.plain", pa.schema([("id", pa.int64())]))
    update = {"action": "set-properties", "updates": {"encryption.key-id": "k"}}
    told = client.post("/v1/namespaces/db/tables/plain", {"requirements": [], "updates": [update]})
    assert told.status == 400
    with pytest.raises(InvalidInput, match="is chosen when it is made"):
        lake.table("db.plain").set_properties({"encryption.key-id": "k"})
