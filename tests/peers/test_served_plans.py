"""Tables of PyIceberg, before and after an upgrade: what the server tells of files is what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_json
from pyiceberg.table import Table as TheirTable

import icetree
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.peers.pyiceberg_tables import PYICEBERG_TABLES
from tests.serve.asking import Client


@pytest.fixture
def ours(theirs: SqlCatalog) -> Iterator[Lake]:
    with icetree.connect(theirs.properties["uri"], properties={"name": theirs.name}) as lake:
        yield lake


def written(table: TheirTable) -> dict[str, Any]:
    """Return what PyIceberg's manifests say of each data file."""
    found = {}
    for task in table.scan().plan_files():
        file = task.file
        spec = table.specs()[file.spec_id]
        types = spec.partition_type(table.schema()).fields
        values = [file.partition[at] for at in range(len(types))]
        told = [
            None if value is None else to_json(field.field_type, value)
            for field, value in zip(types, values, strict=True)
        ]
        found[file.file_path] = {
            "spec-id": file.spec_id,
            "partition": told,
            "file-size-in-bytes": file.file_size_in_bytes,
            "record-count": file.record_count,
            "split-offsets": file.split_offsets,
        }
    return found


def served(client: Client, name: str) -> dict[str, Any]:
    tasks = client.post(f"/v1/namespaces/db/tables/{name}/plan", {}).json["file-scan-tasks"]
    known = ("spec-id", "partition", "file-size-in-bytes", "record-count", "split-offsets")
    files = [task["data-file"] for task in tasks]
    return {file["file-path"]: {name: file[name] for name in known} for file in files}


@pytest.mark.parametrize("name", ["v1_evolved", "v2", "v2_evolved"])
def test_files_are_told_as_they_were_written(name: str, ours: Lake, theirs: SqlCatalog) -> None:
    PYICEBERG_TABLES[f"db.{name}"](theirs, f"db.{name}")
    wanted = written(theirs.load_table(f"db.{name}"))
    assert len({str(each["partition"]) for each in wanted.values()}) > 5
    assert served(Client(Server(ours)), name) == wanted
    ours.table(f"db.{name}").upgrade()
    assert served(Client(Server(ours)), name) == wanted
