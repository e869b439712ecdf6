"""Going back to v3: PyIceberg reads the rows that were there, and nobody loses one on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace as replaced
from pyiceberg.catalog.sql import SqlCatalog

from icetree.catalog.base import Outcome, TableName, Unknown
from icetree.errors import CommitConflict, CommitUnknown, Unsupported
from icetree.rows.write.deletes import write_equality_deletes
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import EncryptionKey
from icetree.spec.metadata.update import RemoveSnapshotRef
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.moving.downgrade import downgrade
from icetree.table.table import Table
from tests.java import IcebergJava
from tests.peers.plans import planned
from tests.table.moving.old_tables import everything, lake_on, old_table, rows, uri

_LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


def busy_table(lake: Lake, name: str = "new.t") -> Table:
    """Make a table that has something of everything in its tree, with a branch and a tag."""
    how = {"write.root.max-data-entries": "2", "write.flush.affinity-min-entries": "1"}
    table = lake.create_table(name, rows(0).schema, partition_by=["country"], properties=how)
    for start in (0, 10, 20):
        table.append(rows(start))
    table.create_tag("first", at=[*table.history()][-1].snapshot_id)
    table.delete("id in (3, 14)")
    table.create_branch("aside")
    table.append(rows(50, 4), branch="aside")
    with table.edit_schema() as schema:
        schema.add("note", "string")
        schema.rename("price", "cost")
    with table.edit_spec() as spec:
        spec.add("bucket(2, id)")
    table.append(pa.table({"id": [100, 101], "country": ["DE", "FR"], "note": ["x", None]}))
    table.delete("id = 101")
    return table


def told(table: pa.Table) -> list[object]:
    return sorted(map(repr, table.to_pylist()))


def lineage(table: Table) -> list[object]:
    return told(table.scan(columns=_LINEAGE).to_arrow())


def by_pyiceberg(folder: Path, name: str, ref: str = "main") -> list[object]:
    """Return the rows that PyIceberg reads, whose catalog it is as well."""
    catalog = SqlCatalog("main", uri=uri(folder), warehouse=f"file://{folder}/ours")
    try:
        table = catalog.load_table(name)
        found = table.scan(snapshot_id=table.metadata.refs[ref].snapshot_id).to_arrow()
    finally:
        catalog.engine.dispose()
    return told(found)


def test_pyiceberg_and_icetree_read_what_was_there_in_every_branch_and_tag(tmp_path: Path) -> None:
    with lake_on(tmp_path) as lake:
        table = busy_table(lake)
        want = {
            ref: told(table.scan(at=snapshot.snapshot_id).to_arrow())
            for ref, snapshot in table.refs.items()
        }
        numbers, before = lineage(table), everything(tmp_path / "ours")
        counts = table.metadata.last_sequence_number, table.metadata.next_row_id
        would = lake.downgrade_table("new.t", dry_run=True)
        assert everything(tmp_path / "ours") == before
        assert (would.reason, would.snapshots) == (None, 3)
        done = lake.downgrade_table("new.t")
        assert done.as_dict() == would.as_dict() | {"dry_run": False}
        now = lake.table("new.t")
        assert now.metadata.format_version == 3
        assert (now.metadata.last_sequence_number, now.metadata.next_row_id) == counts
        assert lineage(now) == numbers
        for ref, found in want.items():
            assert told(now.scan(at=now.refs[ref].snapshot_id).to_arrow()) == found
            assert by_pyiceberg(tmp_path, "new.t", ref) == found
        assert now.verify(deep=True).findings == ()
        assert everything(tmp_path / "ours").items() >= before.items(), "nothing is deleted"


def test_iceberg_java_reads_what_was_there_with_row_ids(tmp_path: Path, java: IcebergJava) -> None:
    with lake_on(tmp_path) as lake:
        table = busy_table(lake)
        equal = pa.table({"id": pa.array([7], pa.int64()), "country": ["FR"]})
        table.row_delta(
            write_equality_deletes(equal, ["id"], metadata=table.metadata, store=table.files.store)
        )
        ids = {
            ref: sorted(map(str, table.scan(at=each.snapshot_id).to_arrow()["id"].to_pylist()))
            for ref, each in table.refs.items()
        }
        files = planned(table)
        lake.downgrade_table("new.t")
        now = lake.table("new.t")
        theirs = java.table(now.state.metadata_location)
        assert java.plan(theirs) == files == planned(now)
        for ref, want in ids.items():
            found = java.rows(theirs, ["id"], at=now.refs[ref].snapshot_id)
            assert found == sorted((each,) for each in want)
        tasks = now.scan().plan().tasks
        numbers = {absolute(at, now.location): str(first) for at, first in zip(tasks["location"].to_pylist(), tasks["first_row_id"].to_pylist(), strict=True)}  # fmt: skip
        assert java.first_row_ids(theirs) == numbers


def test_there_and_back_again_leaves_the_rows_and_their_numbers(tmp_path: Path) -> None:
    with lake_on(tmp_path) as lake:
        table = busy_table(lake)
        want, numbers = told(table.scan().to_arrow()), lineage(table)
        for _ in range(2):
            lake.downgrade_table("new.t")
            lake.upgrade_table("new.t")
            table = lake.table("new.t")
            assert told(table.scan().to_arrow()) == want
            assert lineage(table) == numbers
        table.append(pa.table({"id": [200], "country": ["DE"]}))
        table.delete("id = 100")
        for name in ("first", "aside"):
            lake.table("new.t").update_metadata(RemoveSnapshotRef(ref_name=name))
        table = lake.table("new.t")
        table.maintenance.rewrite_manifests()
        table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
        table.maintenance.remove_orphan_files(older_than="2100-01-01T00:00:00Z", force=True)
        table = lake.table("new.t")
        assert table.scan().count() == len(want)
        assert table.verify(deep=True).findings == ()


def test_manifests_of_the_way_back_stay_as_long_as_a_tree_has_them(tmp_path: Path) -> None:
    """They lie where exports lie, and are named like those of a snapshot that may expire."""
    with lake_on(tmp_path) as lake:
        table = lake.create_table("new.t", rows(0).schema)
        table.append(rows(0))
        lake.downgrade_table("new.t")
        lake.upgrade_table("new.t")
        lake.append("new.t", rows(10))
        table = lake.table("new.t")
        done = table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
        assert len(done.snapshot_ids) == 1
        table.maintenance.remove_orphan_files(older_than="2100-01-01T00:00:00Z", force=True)
        # What was read before is remembered by a handle.
        with lake_on(tmp_path) as again:
            assert again.table("new.t").verify(deep=True).findings == ()
            assert again.table("new.t").scan().count() == 20


@pytest.mark.parametrize("work", ["maintenance", "none"])
def test_a_table_that_was_upgraded_goes_back(tmp_path: Path, work: str) -> None:
    theirs = old_table(tmp_path)
    before = told(theirs.scan().to_arrow())
    with lake_on(tmp_path) as lake:
        lake.upgrade_table("db.old")
        table = lake.table("db.old")
        if work == "maintenance":
            table.append(rows(30))
            table.delete("id >= 30")
            table.maintenance.rewrite_manifests()
        lake.downgrade_table("db.old")
        assert by_pyiceberg(tmp_path, "db.old") == before
        assert lake.table("db.old").verify(deep=True).findings == ()


@pytest.mark.parametrize("partition_by", [["country"], []])
@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append(rows(70, 1)),
        lambda table: table.delete("id = 5"),
        lambda table: table.truncate(),
    ],
)
def test_a_commit_that_meets_v3_where_v4_was_is_a_conflict(
    tmp_path: Path, write: Callable[[Table], object], partition_by: list[str]
) -> None:
    with lake_on(tmp_path) as lake:
        table = lake.create_table("new.t", rows(0).schema, partition_by=partition_by)
        table.append(rows(0))
        late = lake.table("new.t")
        lake.downgrade_table("new.t")
        want, at = by_pyiceberg(tmp_path, "new.t"), lake.table("new.t").state.metadata_location
        with pytest.raises(CommitConflict, match="went back from v4 to v3"):
            write(late)
        assert lake.table("new.t").state.metadata_location == at
        assert by_pyiceberg(tmp_path, "new.t") == want


def test_a_commit_that_comes_first_is_taken_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake_on(tmp_path) as lake:
        busy_table(lake)
        swap, done = lake.catalog.swap, []

        def beaten(name: TableName, *, expected: str, to: str) -> Outcome:
            if not done:
                done.append(to)
                with lake_on(tmp_path) as other:
                    other.append("new.t", pa.table({"id": [300], "country": ["DE"]}))
            return swap(name, expected=expected, to=to)

        monkeypatch.setattr(lake.catalog, "swap", beaten)
        lake.downgrade_table("new.t")
        assert not Path(done[0]).exists(), "metadata of the lost try is gone"
        assert any("300" in str(row) for row in by_pyiceberg(tmp_path, "new.t"))


def test_when_the_answer_is_lost_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake_on(tmp_path) as lake:
        busy_table(lake)
        swap = lake.catalog.swap

        def lost(name: TableName, *, expected: str, to: str) -> Outcome:
            swap(name, expected=expected, to=to)
            return Unknown(reason="the line went dead")

        with monkeypatch.context() as patch:
            patch.setattr(lake.catalog, "swap", lost)
            with pytest.raises(CommitUnknown, match="may or may not be v3"):
                lake.downgrade_table("new.t")
        table = lake.table("new.t")
        assert table.metadata.format_version == 3
        assert table.verify(deep=True).findings == ()


def _dying(cut: int) -> Callable[..., None]:
    write_new, count = LocalStore.write_new, iter(range(1_000))

    def write(store: LocalStore, location: str, content: bytes) -> None:
        if next(count) == cut:
            raise KeyboardInterrupt
        write_new(store, location, content)

    return write


def test_killed_at_any_write_the_table_is_v4_and_going_back_succeeds_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake_on(tmp_path) as lake:
        want = told(busy_table(lake).scan().to_arrow())
        for cut in range(100):
            with monkeypatch.context() as patch:
                patch.setattr(LocalStore, "write_new", _dying(cut))
                try:
                    lake.downgrade_table("new.t")
                    break
                except KeyboardInterrupt:
                    pass
            table = lake.table("new.t")
            assert table.metadata.format_version == 4
            assert told(table.scan().to_arrow()) == want
        assert cut > 0
        assert by_pyiceberg(tmp_path, "new.t") == want
        assert lake.table("new.t").verify(deep=True).findings == ()


def test_what_v3_cannot_say_is_refused_with_the_reason(tmp_path: Path) -> None:
    with lake_on(tmp_path) as lake:
        table = busy_table(lake)
        lake.downgrade_table("new.t")
        assert lake.downgrade_table("new.t", dry_run=True).reason == "it is v3 already"
        with pytest.raises(Unsupported, match="v3 already"):
            lake.downgrade_table("new.t")
        table = lake.create_table("new.keyed", rows(0).schema)
        key = EncryptionKey(key_id="k", encrypted_key_metadata="eA==")
        hidden = replaced(table.metadata, encryption_keys=(key,))
        table.state = replace(table.state, metadata=hidden)
        with pytest.raises(Unsupported, match="encrypted"):
            downgrade(table, dry_run=False)
