"""Many processes, one table: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icetree
from icetree.spec.entry.entry import is_data_dv
from icetree.table.table import Table
from icetree.tree.check.check import check
from icetree.tree.diff.diff import diff
from icetree.tree.live import live_files
from tests.effort import EFFORT, usually
from tests.servers.postgres import shared_server
from tests.table import writers

SCHEMA = pa.schema([pa.field("n", pa.int64())])
#: Writers and commits of each: together more than the metadata holds without pages.
WRITERS, EACH = (8, 16) if EFFORT > 1 else (4, 8)
#: Those that change all kinds of things.
MIXED, CHANGES = (4, 20) if EFFORT > 1 else (3, 14)
INLINE = {"write.metadata.inline-snapshots": "10"}
CATALOGS = ("sqlite", "postgres")


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    return shared_server().new_schema()


def labels(files: pa.Table) -> list[str]:
    """Name files by location, data DVs by their data file."""
    vectors = is_data_dv(files).to_pylist()
    rows = files.select(["location", "referenced_file"]).to_pylist()
    return [
        f"dv {row['referenced_file']}" if vector else row["location"]
        for row, vector in zip(rows, vectors, strict=True)
    ]


def state(table: Table) -> list[str]:
    """Name the live files, having checked the tree."""
    shape = table.metadata.shape()
    snapshot = table.metadata.current_snapshot()
    root, reader = table.files.root(snapshot, shape), table.files.reader(shape)
    next_row_id = table.metadata.next_row_id
    assert check(root, reader, shape, next_row_id=next_row_id) == []
    return labels(live_files(root, reader))


@pytest.mark.law
@pytest.mark.parametrize("address", usually(CATALOGS, "postgres"), indirect=True)
def test_processes_append_and_every_file_is_there_once(address: str, tmp_path: Path) -> None:
    warehouse = str(tmp_path / "lake")
    with icetree.connect(address, warehouse=warehouse) as lake:
        lake.create_namespace("db", exist_ok=True)
        lake.create_table("db.t", SCHEMA, properties=INLINE)
        writers.run_all(
            writers.append_many, [(address, warehouse, i, EACH) for i in range(WRITERS)]
        )
        table = lake.table("db.t")
        expected = {f"data/{w}-{n}.parquet" for w in range(WRITERS) for n in range(EACH)}
        found = state(table)
        assert len(found) == WRITERS * EACH
        assert set(found) == expected
        history = list(table.history())
        assert table.metadata.snapshot_pages
        assert len(history) == WRITERS * EACH
        assert sorted(each.sequence_number for each in history) == list(
            range(1, WRITERS * EACH + 1)
        )
        assert history[0].summary is not None
        assert history[0].summary["total-data-files"] == str(WRITERS * EACH)


def _with_later_vectors(wanted: dict[str, Any], model: Counter[str]) -> set[str]:
    """Return what goes with a change: a file that is deleted takes a DV it got meanwhile along."""
    removed = set(wanted["removed"])
    if wanted["kind"] == "delete":
        removed |= {f"dv {each}" for each in removed if model[f"dv {each}"]}
    return removed


@pytest.mark.law
@pytest.mark.parametrize("address", usually(CATALOGS, "sqlite"), indirect=True)
def test_writers_of_all_kinds_leave_what_some_serial_order_leaves(
    address: str, tmp_path: Path
) -> None:
    warehouse = str(tmp_path / "lake")
    logs = [tmp_path / f"{writer}.log" for writer in range(MIXED)]
    with icetree.connect(address, warehouse=warehouse) as lake:
        lake.create_namespace("db", exist_ok=True)
        # Small thresholds, so that flushes and compactions race with everything else.
        small = {"write.root.max-data-entries": "6", "write.root.max-delete-entries": "3"}
        lake.create_table("db.t", SCHEMA, properties=small)
        writers.run_all(
            writers.mix, [(address, warehouse, w, CHANGES, str(log)) for w, log in enumerate(logs)]
        )
        table = lake.table("db.t")
        meant = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        by_snapshot = {each["snapshot"]: each for each in meant}
        model: Counter[str] = Counter()
        shape = table.metadata.shape()
        reader = table.files.reader(shape)
        for snapshot in reversed(list(table.history())):
            changed = diff(table.files.root(snapshot, shape), reader)
            added, removed = labels(changed.added), labels(changed.removed)
            # Each snapshot did what its writer meant, on the state that the ones before it left.
            wanted = by_snapshot[snapshot.snapshot_id]
            assert sorted(added) == wanted["added"]
            assert sorted(removed) == sorted(_with_later_vectors(wanted, model))
            assert all(model[each] == 1 for each in removed)
            model.subtract(removed)
            model.update(added)
            assert all(count in (0, 1) for count in model.values())
        assert len(by_snapshot) == len(list(table.history())) > MIXED * CHANGES / 3
        assert sorted(+model) == sorted(state(table))
