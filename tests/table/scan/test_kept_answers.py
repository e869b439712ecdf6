"""What is kept of one plan answers no other question: a warm connection plans as a cold one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.types import IntegerType, NestedField, StringType

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitConflict
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.scan.planning import planner, side_by_side
from icetree.table.table import Table
from icetree.tree.plan.plan import LeafRead
from icetree.tree.reading import Leaf, leaves_in
from tests.rows.lake import new_lake, rows

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string())])
WITH_IDS = ["id", "_row_id", "_last_updated_sequence_number"]


def some(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{id}" for id in ids]}, schema=SCHEMA)


def cold(table: Table) -> Table:
    """Return the same table through a connection that has read nothing yet."""
    fresh = Lake(catalog=table.catalog, store=table.files.store)
    return fresh.table(str(table.name))


def require_same_when_cold(table: Table, where: str | None = None, **how: Any) -> None:
    warm_scan, cold_scan = (each.scan(where, **how) for each in (table, cold(table)))
    warm_plan, cold_plan = warm_scan.plan(), cold_scan.plan()
    assert warm_plan.tasks.sort_by("location").equals(cold_plan.tasks.sort_by("location"))
    assert warm_plan.metrics == cold_plan.metrics
    assert rows(warm_scan.to_arrow()) == rows(cold_scan.to_arrow())


@pytest.fixture
def theirs(tmp_path: Path) -> PyIcebergTable:
    """A v2 table of two files in two manifests."""
    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "2"})
    table.append(some(1, 2))
    table.append(some(3))
    return table


@pytest.fixture
def ours(theirs: PyIcebergTable) -> Table:
    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore())
    lake.create_namespace("db")
    return lake.register_table("db.t", theirs.metadata_location)


def test_old_rows_have_ids_after_an_upgrade_on_a_connection_that_scanned_before(
    ours: Table,
) -> None:
    assert ours.scan(columns=WITH_IDS).to_arrow()["_row_id"].null_count == 3
    ours.upgrade()
    ours.append(some(4))
    ids = ours.scan(columns=WITH_IDS).to_arrow()["_row_id"].to_pylist()
    assert sorted(ids) == [0, 1, 2, 3]
    require_same_when_cold(ours, columns=WITH_IDS)


def test_branches_that_share_an_old_leaf_do_not_mix_row_ids(ours: Table) -> None:
    ours.upgrade()
    ours.create_branch("b")
    ours.append(some(4))
    ours.append(some(5), branch="b")
    for ref in ("main", "b", "main"):
        require_same_when_cold(ours, at=ref, columns=WITH_IDS)
    found = [
        dict(zip(*(c.to_pylist() for c in scanned.columns), strict=True))
        for scanned in (ours.scan(at=ref, columns=WITH_IDS[:2]).to_arrow() for ref in ("main", "b"))
    ]
    assert all(len(set(ids.values())) == 4 for ids in found)
    assert found[0][1] != found[1][1]


def test_a_type_that_nobody_committed_leaves_no_trace() -> None:
    schema = Schema(NestedField(1, "n", IntegerType()), NestedField(2, "c", StringType()))
    lake = new_lake()
    small = {"write.root.max-data-entries": "1"}
    table = lake.create_table("db.t", schema, partition_by="c", properties=small)
    given = pa.table({"n": pa.array([1], pa.int32()), "c": ["x"]})
    for _ in range(2):
        table.append(given)
    other = lake.table("db.t")
    transaction = table.transaction()
    transaction.append(given)
    with transaction.edit_schema() as edit:
        edit.widen("n", "long")
    with other.edit_schema() as edit:
        edit.add("more", "int")
    with pytest.raises(CommitConflict, match="current schema"):
        transaction.commit()
    require_same_when_cold(other, "n > 0")
    assert other.scan("n > 0").count() == 2


def test_every_fact_of_its_root_entry_tells_a_leaf_from_another(ours: Table) -> None:
    calls: list[Any] = []

    def run(call: Any, leaves: Iterable[Leaf]) -> Iterable[LeafRead]:
        calls.append(call)
        return side_by_side(call, leaves)

    planner(ours.files, ours.metadata, ours.snapshot(), run=run).whole()
    known = calls[-1]
    leaf = leaves_in(ours.files.root(ours.snapshot(), ours.metadata.shape()))[0]
    assert known.read.recall(known, leaf) is not None
    for fact, was in asdict(leaf).items():
        other = f"{was}x" if isinstance(was, str) or fact == "referenced_file" else (was or 0) + 1
        assert known.read.recall(known, replace(leaf, **{fact: other})) is None, fact
