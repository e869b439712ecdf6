"""Stock Iceberg Java reads tables through plans of the server, without knowing that they are v4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.java import IcebergJava
from tests.peers.filters import matches, random_filters, to_json
from tests.peers.values import pools
from tests.serve.plan.rich import rich_table
from tests.serve.processes import running

FILTERS = 15 * EFFORT
TOLD = ("id", "n", "country", "d")


@pytest.fixture(scope="module")
def table(served_lake: Lake) -> Table:
    return rich_table(served_lake, "db.t", equality=True)


@pytest.fixture(scope="module")
def theirs(java: IcebergJava, uri: str, table: Table) -> Any:
    del table
    return java.served(uri, "db", "t")


def told(found: pa.Table) -> list[tuple[str, ...]]:
    columns = [["null" if v is None else str(v) for v in found[name].to_pylist()] for name in TOLD]
    return sorted(zip(*columns, strict=True))


def test_plans_come_from_the_server(theirs: Any) -> None:
    assert theirs.getClass().getSimpleName() == "RESTTable"


def test_every_row_is_read_and_none_that_is_deleted(
    java: IcebergJava, theirs: Any, table: Table
) -> None:
    assert java.rows(theirs, TOLD) == told(table.scan().to_arrow())


def test_filters_find_what_they_find_when_java_reads_manifests(
    java: IcebergJava, theirs: Any, table: Table
) -> None:
    exported = java.table(table.export().metadata_location)
    everything = table.scan().to_arrow().to_pylist()
    known = pools("db.v3_evolved").items()
    # Rows are tested by Java itself, to which NaN is greater than every number.
    columns = {name: pool for name, pool in known if name != "cost"}
    seen = 0
    for filter in random_filters(SEED, FILTERS, columns):
        asked = to_json(filter)
        found, wanted = (java.rows(each, TOLD, asked) for each in (theirs, exported))
        if found is None or wanted is None:
            continue
        assert found == wanted, asked
        ids = {int(row[0]) for row in found}
        assert ids >= {row["id"] for row in everything if matches(filter, row)}, asked
        seen += 0 < len(ids) < len(everything)
    assert seen > FILTERS / 3


def test_nans_are_found(java: IcebergJava, theirs: Any, table: Table) -> None:
    for kind, text in (("is-nan", "cost is nan"), ("not-nan", "cost is not nan")):
        found = java.rows(theirs, TOLD, f'{{"type": "{kind}", "term": "cost"}}')
        assert found == told(table.scan(text).to_arrow())


def test_former_snapshots_are_read_as_they_were(
    java: IcebergJava, theirs: Any, table: Table
) -> None:
    for snapshot in table.history():
        at = snapshot.snapshot_id
        assert java.rows(theirs, TOLD, at=at) == told(table.scan(at=at).to_arrow())
        where = '{"type": "lt", "term": "id", "value": 70}'
        assert java.rows(theirs, TOLD, where, at=at) == told(
            table.scan("id < 70", at=at).to_arrow()
        )


def test_an_empty_table_is_read(java: IcebergJava, uri: str, served_lake: Lake) -> None:
    served_lake.create_table("db.empty", pa.schema([("id", pa.int64())]))
    assert java.plan(java.served(uri, "db", "empty")) == {}


def test_a_plan_of_many_pages_is_read_whole(
    java: IcebergJava, uri_of_small_pages: str, table: Table
) -> None:
    paged = java.served(uri_of_small_pages, "db", "t")
    assert java.rows(paged, TOLD) == told(table.scan().to_arrow())
    long = f'{{"type": "in", "term": "id", "values": {[*range(-5_000, 200)]}}}'
    assert java.rows(paged, TOLD, long) == told(table.scan("id < 200").to_arrow())


def test_a_plan_that_takes_long_is_asked_for_until_it_is_there(
    java: IcebergJava, folder: Path, table: Table
) -> None:
    with running(folder, "--submit-seconds", "0") as server:
        others = len(server.log.read_text())
        theirs = java.served(server.uri, "db", "t")
        assert java.rows(theirs, TOLD) == told(table.scan().to_arrow())
        asked = [json.loads(line) for line in server.log.read_text()[others:].splitlines()]
    plans = [each for each in asked if "/plan" in each["path"]]
    methods = [each["method"] for each in plans]
    assert methods[:2] == ["POST", "GET"], methods
    assert {each["status"] for each in plans} <= {200, 204}


def test_an_append_leaves_all_manifests_of_the_tree_as_they_are(
    java: IcebergJava, uri: str, served_lake: Lake
) -> None:
    """Java merges manifests that are small beside what it takes for a good size."""
    small = {"commit.manifest.target-size-bytes": "10000", "write.root.max-data-entries": "1"}
    table = served_lake.create_table("db.merged", "id long", properties=small)
    for number in range(8):
        table.append(pa.table({"id": [number]}))
    theirs = java.served(uri, "db", "merged")
    before = _manifests(theirs.currentSnapshot(), theirs)
    assert len(before) > 5
    file = java.jvm.org.apache.iceberg.DataFiles.builder(theirs.spec()).withRecordCount(1)
    file = file.withPath(f"{theirs.location()}/data/new.parquet").withFileSizeInBytes(10).build()
    after = _manifests(theirs.newAppend().appendFile(file).apply(), theirs)
    assert before < after
    assert len(after) == len(before) + 1


def _manifests(snapshot: Any, theirs: Any) -> set[str]:
    return {each.path() for each in snapshot.allManifests(theirs.io())}
