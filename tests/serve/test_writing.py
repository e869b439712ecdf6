"""Stock PyIceberg writes v4 tables through the server, while icetree writes them too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import icetree
from icetree.table.lake import Lake
from tests.serve.processes import running

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "country", StringType(), required=False),
)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    uri = f"sqlite:///{tmp_path}/c.db"
    with icetree.connect(uri, warehouse=str(tmp_path / "lake")) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def theirs(lake: Lake, tmp_path: Path) -> Iterator[RestCatalog]:  # noqa: ARG001 (it makes `db`)
    with running(tmp_path) as server:
        yield RestCatalog("r", uri=server.uri)


def rows(start: int, end: int, country: str = "DE") -> pa.Table:
    return pa.table(
        {"id": pa.array(range(start, end), pa.int64()), "country": [country] * (end - start)}
    )


def ids(table: object) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())  # type: ignore[attr-defined]


def test_pyiceberg_appends_overwrites_deletes_and_evolves(theirs: RestCatalog, lake: Lake) -> None:
    peer = theirs.create_table("db.t", SCHEMA)
    peer.append(rows(0, 10))
    ours = lake.table("db.t")
    assert ours.metadata.format_version == 4
    assert ids(ours) == ids(peer) == list(range(10))
    head = ours.current_snapshot
    assert head is not None
    assert head.snapshot_id == peer.metadata.current_snapshot_id
    assert head.root_manifest is not None
    ours.append(rows(10, 20, "FR"))
    peer.refresh()
    assert ids(peer) == list(range(20))
    peer.delete("id < 5")
    assert ids(ours.refresh()) == list(range(5, 20))
    peer.overwrite(rows(100, 103), overwrite_filter="country = 'FR'")
    assert ids(ours.refresh()) == [*range(5, 10), 100, 101, 102]
    with peer.update_schema() as schema:
        schema.add_column("note", StringType())
    with peer.update_spec() as spec:
        spec.add_field("country", IdentityTransform(), "country")
    peer.append(rows(200, 205, "US").append_column("note", pa.array(["x"] * 5)))
    assert ids(ours.refresh()) == ids(peer) == [*range(5, 10), 100, 101, 102, *range(200, 205)]
    assert ours.scan("country = 'US'", columns=["note"]).to_arrow()["note"].to_pylist() == ["x"] * 5
    assert ours.verify(deep=True).findings == ()


def test_an_append_that_others_came_before_is_made_again_by_the_client(
    theirs: RestCatalog, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    # A demo in the same process may have silenced it.
    caplog.set_level("WARNING", logger="pyiceberg")
    theirs.create_table("db.t", SCHEMA).append(rows(0, 3))
    stale = theirs.load_table("db.t")
    lake.table("db.t").append(rows(10, 13))
    stale.append(rows(20, 23))
    assert "retrying" in caplog.text
    assert ids(lake.table("db.t")) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_delete_that_others_came_before_is_made_again_by_the_client(
    theirs: RestCatalog, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    # A demo in the same process may have silenced it.
    caplog.set_level("WARNING", logger="pyiceberg")
    theirs.create_table("db.t", SCHEMA).append(rows(0, 6))
    stale = theirs.load_table("db.t")
    lake.table("db.t").append(rows(10, 13))
    stale.delete("id < 3")
    assert "retrying" in caplog.text
    assert ids(lake.table("db.t")) == [3, 4, 5, 10, 11, 12]


def test_pyiceberg_inspects_every_entry(theirs: RestCatalog, lake: Lake) -> None:
    peer = theirs.create_table("db.t", SCHEMA)
    peer.append(rows(0, 10))
    lake.table("db.t").append(rows(10, 20))
    found = peer.refresh().inspect.entries().to_pylist()
    assert [each["data_file"]["record_count"] for each in found] == [10, 10]
    assert [dict(each["data_file"]["value_counts"]) for each in found] == [{1: 10, 2: 10}] * 2


def test_pyiceberg_reads_manifests_of_former_snapshots(theirs: RestCatalog, lake: Lake) -> None:
    ours = lake.create_table("db.t", "id long, country string", partition_by=["country"])
    for start in range(0, 40, 10):
        ours.append(rows(start, start + 10, "DE" if start % 20 else "FR"))
    ours.delete("country = 'FR' and id < 10")
    peer = RestCatalog("alone", uri=theirs.uri, **{"scan-planning-mode": "client"})
    assert not peer.supports_server_side_planning()
    table = peer.load_table("db.t")
    for snapshot in table.snapshots():
        found = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()
        mine = ours.scan(at=snapshot.snapshot_id, columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(mine)
        assert table.inspect.files(snapshot.snapshot_id).num_rows == len(mine) // 10
    assert table.inspect.all_files().num_rows == 1 + 2 + 3 + 4 + 3
    assert {*table.inspect.all_files()["file_path"].to_pylist()} == {
        task.file.file_path
        for each in table.snapshots()
        for task in table.scan(snapshot_id=each.snapshot_id).plan_files()
    }
    reference = table.inspect.all_manifests()["reference_snapshot_id"].to_pylist()
    assert {*reference} == {each.snapshot_id for each in table.snapshots()}
    assert table.inspect.history().num_rows == 5


def test_pyiceberg_expires_snapshots_and_leaves_files_alone(
    theirs: RestCatalog, lake: Lake
) -> None:
    peer = theirs.create_table("db.t", SCHEMA)
    for start in (0, 10, 20):
        peer.append(rows(start, start + 10))
    ours = lake.table("db.t")
    ours.delete("id < 10")
    ours.create_tag("kept", at=ours.metadata.snapshots[1].snapshot_id)
    before = {each for each in Path(ours.location).rglob("*") if each.is_file()}
    old = [each.snapshot_id for each in ours.refresh().metadata.snapshots]
    peer.refresh().maintenance.expire_snapshots().by_ids([old[0], old[2]]).commit()
    assert [each.snapshot_id for each in ours.refresh().metadata.snapshots] == [old[1], old[3]]
    assert all(each.exists() for each in before)
    assert ids(ours) == ids(peer.refresh()) == list(range(10, 30))
    assert ours.verify(deep=True).findings == ()
