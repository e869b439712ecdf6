"""Tables of PyIceberg, whose files are named in full: none that it needs goes, before an upgrade or after."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput
from icetree.spec.metadata.update import UpgradeFormatVersion
from icetree.store.local import LocalStore
from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.maintain.history import Clock

SCHEMA = pa.schema([("id", pa.int64())])
#: Long after everything was written.
LATE = 2**42


def remove(table: Table) -> set[str]:
    clock = Clock()
    clock.at_ms = LATE
    with within(clock):
        return {*table.maintenance.remove_orphan_files().orphan_file_location}


def reads(table: Table) -> list[list[int]]:
    """The rows of every snapshot, oldest first."""
    every = sorted(table.history(), key=lambda each: (each.sequence_number, each.timestamp_ms))
    scans = (table.scan(columns=["id"], at=each.snapshot_id) for each in every)
    return [sorted(each.to_arrow()["id"].to_pylist()) for each in scans]


@pytest.mark.parametrize("scheme", ["file://", ""])
@pytest.mark.parametrize("version", [1, 2])
def test_orphans_are_told_from_what_an_older_table_needs(
    tmp_path: Path, version: int, scheme: str
) -> None:
    with SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"{scheme}{tmp_path}") as catalog:
        catalog.create_namespace("db")
        how = {"format-version": str(version), "write.metadata.previous-versions-max": "2"}
        theirs = catalog.create_table("db.t", SCHEMA, properties=how)
        for first in (0, 10, 20):
            theirs.append(pa.table({"id": range(first, first + 5)}, SCHEMA))
        theirs.delete("id in (3, 11)")
        at = theirs.metadata_location
    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore())
    lake.create_namespace("db")
    table = lake.register_table("db.t", at)
    place = Path(table.location.removeprefix("file://"))
    stray = place / "data" / "stray.parquet"
    stray.write_bytes(b"nobody's")
    before = reads(table)
    gone = {Path(each.removeprefix("file://")) for each in remove(table)}
    assert stray in gone
    # Beside it only metadata that the log names no longer.
    assert {each.suffix for each in gone} <= {".parquet", ".json"}
    assert len([each for each in gone if each.suffix == ".parquet"]) == 1
    table.update_metadata(UpgradeFormatVersion(format_version=4))
    table.append(table.scan(limit=1).to_arrow())
    assert {Path(each).suffix for each in remove(table)} <= {".json"}
    fresh = Lake(catalog=lake.catalog, store=lake.store).table("db.t")
    assert reads(fresh)[: len(before)] == before
    assert [each for each in fresh.verify(deep=True).findings if each.severity == "error"] == []
    # Manifests from before the upgrade name their files in full: a copy would read the original's.
    with pytest.raises(InvalidInput, match="from before the upgrade"):
        lake.backup_table("db.t", str(tmp_path / "backup"))
    assert [*(tmp_path / "backup").rglob("*.json")] == []
    # One of metadata alone is to read them.
    there = {each for each in place.rglob("*") if each.is_file()}
    shared = lake.copy_table(
        "db.t", "db.shared", location=str(tmp_path / "shared"), metadata_only=True
    )
    assert reads(shared) == reads(fresh)
    assert [each for each in shared.verify(deep=True).findings if each.severity == "error"] == []
    lake.drop_table("db.shared", purge=True)
    assert {each for each in place.rglob("*") if each.is_file()} == there
    lake.drop_table("db.t", purge=True)
    assert [each for each in place.rglob("*") if each.is_file()] == []


def test_statistics_of_an_older_table_are_named_in_full(tmp_path: Path) -> None:
    with SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("db")
        theirs = catalog.create_table("db.t", SCHEMA, properties={"format-version": "2"})
        theirs.append(pa.table({"id": [1, 2, 2]}, SCHEMA))
        at = theirs.metadata_location
    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore())
    lake.create_namespace("db")
    table = lake.register_table("db.t", at)
    done = table.maintenance.compute_table_stats()
    assert done.ndv == {"id": 2}
    [kept] = table.metadata.statistics
    assert kept.statistics_path == done.statistics_file
    assert remove(table) == set()
