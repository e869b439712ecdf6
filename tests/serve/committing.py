"""Requests that tests of commits make, and the table that they are about."""

from __future__ import annotations

from typing import Any

from tests.serve.asking import Client, Told

T = "/v1/namespaces/db/tables/t"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 10, "name": "id", "required": True, "type": "long"},
        {"id": 20, "name": "ts", "required": False, "type": "timestamp"},
        {"id": 30, "name": "country", "required": False, "type": "string"},
    ],
}
DAY = {"source-id": 20, "field-id": 1000, "name": "ts_day", "transform": "day"}


#: What PyIceberg says of itself: it forgets snapshots, and leaves files alone.
PYICEBERG = {"x_client_version": "PyIceberg 0.12.0"}


def create(client: Client, name: str = "t", **more: Any) -> Told:
    body = {"name": name, "schema": SCHEMA, "partition-spec": {"spec-id": 0, "fields": [DAY]}}
    return client.post("/v1/namespaces/db/tables", {**body, **more})


def commit(
    client: Client, *updates: dict[str, Any], require: Any = (), path: str = T, **headers: str
) -> Told:
    return client.post(path, {"requirements": list(require), "updates": list(updates)}, **headers)


def metadata(client: Client, path: str = T) -> Any:
    return client.get(path).json["metadata"]
