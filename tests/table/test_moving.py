"""A table moves by copying its folder and registering the copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.metadata.update import RemoveSnapshots
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.store.slow import SlowStore
from tests.table.kinds import data_file, reached, vector, view
from tests.table.lake import SCHEMA

PROPERTIES = {
    "write.root.max-data-entries": "3",
    "write.root.max-delete-entries": "2",
    "write.manifest-dv.inline-max-bytes": "0",
    "write.metadata.inline-snapshots": "5",
    "write.metadata.previous-versions-max": "20",
}


def connect(folder: Path) -> Lake:
    """Return a connection whose store keeps a log of what it was asked."""
    opened = icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "lake"))
    store = SlowStore(LocalStore(), latency_ms=0, bytes_per_s=None)
    return Lake(catalog=opened.catalog, store=store, warehouse=str(folder / "lake"))


def asked_for(lake: Lake) -> set[str]:
    assert isinstance(lake.store, SlowStore)
    return {each.location for each in lake.store.answered}


def full_table(folder: Path) -> Table:
    """Make a table with leaves, manifest DVs in Puffin, data DVs and history pages."""
    folder.mkdir()
    lake = connect(folder)
    lake.create_namespace("db")
    table = lake.create_table("db.t", SCHEMA, properties=PROPERTIES)
    table.append_files([data_file(f"a{i}") for i in range(8)])
    table.row_delta([vector(f"v{i}", f"a{i}") for i in range(4)])
    table.delete_files(["data/a1.parquet", "data/a7.parquet"])
    for number in range(30):
        table.append_files([data_file(f"b{number}")], key=f"job-{number}")
    table.create_tag("v1")
    return table


def newest(folder: Path) -> str:
    return str(max((folder / "metadata").glob("*.metadata.json")))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moving") / "one"
    full_table(folder)
    return folder


@pytest.fixture
def two(original: Path, tmp_path: Path) -> tuple[Path, Lake, Table]:
    """Return the folder of a copy, a connection to it, and the copy, registered there."""
    folder = tmp_path / "two" / "elsewhere"
    shutil.copytree(original / "lake" / "db" / "t", folder)
    lake = connect(tmp_path)
    lake.create_namespace("db")
    return folder, lake, lake.register_table("db.t", newest(folder))


def test_a_copy_reads_and_commits_in_its_own_folder_alone(
    original: Path, two: tuple[Path, Lake, Table]
) -> None:
    folder, lake, table = two
    assert table.location == str(folder)
    was = view(connect(original).table("db.t"))
    files = sorted((original / "lake").rglob("*"))
    assert view(lake.table("db.t")) == was
    table.append_files([data_file("new")])
    table.delete_files(["data/a2.parquet"])
    table.append_files([data_file("old")], key="job-3")
    for number in range(25):
        table.append_files([data_file(f"c{number}")])
    now = view(lake.table("db.t"))["files"]
    assert isinstance(now, list)
    assert {"data/new.parquet", "data/b29.parquet", "data/c24.parquet"} <= set(now)
    assert not {"data/a2.parquet", "data/old.parquet"} & set(now)
    for each in lake.table("db.t").history():
        assert table.snapshot(each.snapshot_id) == each
    outside = {each for each in asked_for(lake) if not each.startswith(f"{folder}/")}
    assert outside == set()
    assert sorted((original / "lake").rglob("*")) == files
    assert view(connect(original).table("db.t")) == was


def test_a_copy_needs_nothing_of_the_original(original: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    shutil.copytree(original / "lake" / "db" / "t", first)
    lake = connect(tmp_path)
    lake.create_namespace("db")
    was = view(lake.register_table("db.t", newest(first)))
    second = tmp_path / "second"
    shutil.move(first, second)
    lake.drop_table("db.t")
    table = lake.register_table("db.t", newest(second))
    assert view(table) == was
    assert all(Path(each).is_file() for each in reached(table))


def test_registering_a_table_where_it_is_writes_nothing(original: Path, tmp_path: Path) -> None:
    lake = connect(tmp_path)
    lake.create_namespace("db")
    folder = original / "lake" / "db" / "t"
    before = sorted(folder.rglob("*"))
    table = lake.register_table("db.t", newest(folder))
    assert table.state.metadata_location == newest(folder)
    assert sorted(folder.rglob("*")) == before


def test_files_outside_the_table_stay_where_they_are(tmp_path: Path) -> None:
    lake = connect(tmp_path)
    lake.create_namespace("db")
    table = lake.create_table("db.t", SCHEMA)
    outside = ["file:///other/x.parquet", "s3://bucket/y.parquet"]
    import dataclasses

    table.append_files(
        [data_file("a"), *(dataclasses.replace(data_file("x"), location=at) for at in outside)]
    )
    folder = tmp_path / "copy"
    shutil.copytree(table.location, folder)
    copy = lake.register_table("db.copy", newest(folder))
    assert view(copy)["files"] == ["data/a.parquet", *outside]
    copy.delete_files([outside[0]])
    assert view(copy)["files"] == ["data/a.parquet", outside[1]]
    assert view(lake.table("db.t"))["files"] == ["data/a.parquet", *outside]


def test_who_held_the_table_before_it_moved_writes_nothing_to_the_old_place(
    original: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(original / "lake" / "db" / "t", first)
    lake = connect(tmp_path)
    lake.create_namespace("db")
    held = lake.register_table("db.t", newest(first))
    shutil.copytree(first, second)
    lake.drop_table("db.t")
    lake.register_table("db.t", newest(second))
    with pytest.raises(CommitConflict, match="changed the location"):
        held.append_files([data_file("lost")])
    held.refresh().append_files([data_file("found")])
    now = lake.table("db.t")
    assert now.location == str(second)
    assert "data/found.parquet" in view(now)["files"]  # type: ignore[operator]
    assert all(each.startswith(str(second)) for each in reached(held))


@pytest.fixture
def old_table(tmp_path: Path) -> Path:
    """Return the folder of a v2 table with a row in it."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/old.db", warehouse=str(tmp_path / "old"))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", SCHEMA)
    made.append(pa.table({"n": pa.array([1]), "country": pa.array(["DE"])}))
    catalog.close()
    return Path(made.location().removeprefix("file://"))


def test_a_table_of_an_older_version_is_not_moved_by_copying(
    old_table: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(old_table, folder)
    lake = connect(tmp_path)
    lake.create_namespace("db")
    with pytest.raises(InvalidInput, match="upgrade it there, then copy it"):
        lake.register_table("db.t", newest(folder))


def test_an_upgraded_table_is_not_moved_while_old_manifests_name_its_files(
    old_table: Path, tmp_path: Path
) -> None:
    lake = connect(tmp_path)
    lake.create_namespace("db")
    table = lake.register_table("db.t", newest(old_table))
    table.upgrade()
    before = table.metadata.snapshots[0].snapshot_id
    table.append_files([data_file("new")])
    folder = tmp_path / "copy"
    shutil.copytree(old_table, folder)
    with pytest.raises(InvalidInput, match="expire snapshots from before the upgrade"):
        lake.register_table("db.copy", newest(folder))
    table.update_metadata(RemoveSnapshots(snapshot_ids=(before,)))
    shutil.copytree(old_table, folder, dirs_exist_ok=True)
    with pytest.raises(InvalidInput, match="rewrite the table's manifests"):
        lake.register_table("db.copy", newest(folder))
