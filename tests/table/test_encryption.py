"""An encrypted table is never written to in plain text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace as replaced

import icetree
from icetree.errors import Unsupported
from icetree.rows.write_deletes import write_data_vectors
from icetree.spec.metadata import EncryptionKey, TableMetadata
from icetree.table.scan.planning import planner
from icetree.table.table import Table

ROWS = pa.table({"n": [1, 2, 3]})
KEY = EncryptionKey(key_id="k", encrypted_key_metadata="eA==")

SIGNS: dict[str, Callable[[TableMetadata], TableMetadata]] = {
    "keys": lambda metadata: replaced(metadata, encryption_keys=(KEY,)),
    "a property": lambda metadata: replaced(metadata, properties={"encryption.key-id": "k"}),
    "a snapshot's key": lambda metadata: replaced(
        metadata, snapshots=tuple(replaced(each, key_id="k") for each in metadata.snapshots)
    ),
}


def vectors(table: Table) -> object:
    plan = planner(table.files, table.metadata, table.snapshot(), stats_columns=True).whole()
    return write_data_vectors(
        {plan.tasks["location"][0].as_py(): [0]},
        tasks=plan.tasks,
        metadata=table.metadata,
        store=table.files.store,
    )


WRITES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(ROWS),
    "overwrite": lambda table: table.overwrite("n > 0", ROWS),
    "replace_partitions": lambda table: table.replace_partitions(ROWS),
    "append_files": lambda table: table.append_files([]),
    "delete": lambda table: table.delete("n > 0"),
    "truncate": lambda table: table.truncate(),
    "vectors": vectors,
}


@pytest.mark.parametrize("sign", SIGNS)
def test_no_write_to_an_encrypted_table_leaves_a_plain_file(sign: str, tmp_path: Path) -> None:
    lake = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.state = replace(table.state, metadata=SIGNS[sign](table.metadata))
    there = sorted(tmp_path.rglob("*"))
    for write in WRITES.values():
        with pytest.raises(Unsupported, match=r"is encrypted .* nothing was written"):
            write(table)
    assert sorted(tmp_path.rglob("*")) == there
    assert table.scan().to_arrow().num_rows == 3


def test_a_commit_does_not_land_on_a_table_that_was_encrypted_meanwhile(tmp_path: Path) -> None:
    lake = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    table, other = lake.create_table("db.t", ROWS.schema), lake.table("db.t")
    other.set_properties({"encryption.key-id": "k"})
    with pytest.raises(Unsupported, match="is encrypted"):
        table.append(ROWS)
    assert lake.table("db.t").snapshot() is None
    other.set_properties({"note": "metadata may still change"})
