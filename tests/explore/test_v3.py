"""What the demo says v3 would write, beside Iceberg's rules and PyIceberg's own files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

import icetree
from icetree.cli.demo.ledger import Ledger
from icetree.cli.demo.table import DemoTable, entries
from icetree.explore.cost import Cost
from icetree.explore.v3 import MERGE_AT, V3, Manifest
from icetree.explore.v3_sizes import Curve, sizes
from icetree.spec.entry.entry import Entry
from icetree.tree.diff.diff import Diff

_APPENDS = 12


@pytest.fixture
def files(tmp_path: Path) -> DemoTable:
    return DemoTable(folder=tmp_path)


def added(*new: Entry) -> Diff:
    return Diff(added=entries(list(new)))


def test_a_stream_writes_a_manifest_a_commit_and_merges_none(files: DemoTable) -> None:
    table = V3()
    for day in range(MERGE_AT + 5):
        made = table.commit(added(*files.orders(day)), merges=False)
        assert made == [Manifest(is_data=True, spec=1, entries=1)]
    assert table.opened == 1 + MERGE_AT + 5


def test_the_hundredth_manifest_makes_one_of_all(files: DemoTable) -> None:
    table = V3()
    for day in range(MERGE_AT - 2):
        table.commit(added(*files.orders(day)), merges=False)
    first, second, third = (table.commit(added(*files.orders(0, 2)), merges=True) for _ in range(3))
    assert first == [Manifest(is_data=True, spec=1, entries=2)]
    assert second == [Manifest(is_data=True, spec=1, entries=MERGE_AT + 2)]
    assert third == [Manifest(is_data=True, spec=1, entries=2)]
    assert table.opened == 3


def test_a_removal_rewrites_the_manifests_that_track_the_files(files: DemoTable) -> None:
    table = V3()
    one, two, three = files.orders(0, 3), files.orders(1, 2), files.orders(2)
    for part in (one, two, three):
        table.commit(added(*part), merges=True)
    made = table.commit(Diff(removed=entries([one[0], three[0]])), merges=True)
    assert sorted(each.entries for each in made) == [1, 3]
    assert table.opened == 1 + 2


def test_a_replaced_vector_rewrites_manifests_of_deletes_only(files: DemoTable) -> None:
    table = V3()
    data = files.orders(0, 4)
    table.commit(added(*data), merges=True)
    old = [files.vector(each, 3, 1) for each in data[:2]]
    assert table.commit(added(*old), merges=True) == [Manifest(is_data=False, spec=1, entries=2)]
    diff = Diff(added=entries([files.vector(data[0], 5, 2)]), removed=entries(old[:1]))
    made = table.commit(diff, merges=True)
    assert sorted(each.entries for each in made) == [1, 2]
    assert not any(each.is_data for each in made)


def test_manifests_of_a_former_spec_are_merged_at_once(files: DemoTable) -> None:
    table = V3()
    for day in range(3):
        table.commit(added(*files.orders(day)), merges=True)
    new = [replace(each, partition_spec_id=2) for each in files.orders(3)]
    made = table.commit(added(*new), merges=True)
    assert {(each.spec, each.entries) for each in made} == {(1, 3), (2, 1)}
    assert table.opened == 1 + 2


def test_sizes_lie_on_straight_lines_between_and_beyond_what_was_measured() -> None:
    curve = Curve.of(lambda count: 100 + 7 * count, 50)
    assert [curve.at(count) for count in (1, 3, 50, 200)] == [107, 121, 450, 1500]


def test_the_ledger_tells_what_came_since_the_last_look(tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.t", _rows(0).schema)
        ledger = Ledger()
        assert (ledger.look(table).commits, ledger.look(table).commits) == (1, 0)
        table.append(_rows(0))
        table.append(_rows(1))
        seen = ledger.look(table)
        assert (seen.commits, seen.cost.files) == (2, 4)
        every = [path.stat().st_size for path in (tmp_path / "lake").rglob("metadata/*")]
        assert 0 < seen.cost.size_bytes < sum(every)
        assert ledger.look(table).cost == Cost()


def test_sizes_are_near_those_of_files_that_pyiceberg_commits(tmp_path: Path) -> None:
    """Their manifests tell the sizes of columns, too; that favour to v3 is in the margin."""
    theirs = _pyiceberg_metadata(tmp_path / "theirs")
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "ours")) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.t", _rows(0).schema, partition_by=["country"])
        for number in range(_APPENDS):
            table.append(_rows(number))
        found = sizes(table)
    manifest = max(path.stat().st_size for path in theirs.glob("*-m0.avro"))
    assert 0.75 < found.manifest(True, 1) / manifest <= 1.05
    listed = max(path.stat().st_size for path in theirs.glob("snap-*.avro"))
    assert 0.75 < found.manifest_list(_APPENDS) / listed < 1.25
    version = max(theirs.glob("*.metadata.json"))
    packed = len(gzip.compress(version.read_bytes()))
    assert 0.75 < found.metadata(_APPENDS) / packed < 1.25


def _pyiceberg_metadata(folder: Path) -> Path:
    folder.mkdir()
    catalog = SqlCatalog("peer", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.t", _rows(0).schema)
    with table.update_spec() as spec:
        spec.add_field("country", IdentityTransform(), "country")
    for number in range(_APPENDS):
        table.append(_rows(number))
    return folder / "shop" / "t" / "metadata"


def _rows(number: int) -> pa.Table:
    first = datetime(2026, 3, 1, tzinfo=timezone.utc) + timedelta(hours=number)
    return pa.table(
        {
            "id": pa.array(range(100 * number, 100 * number + 100), pa.int64()),
            "country": pa.array(["DE"] * 100),
            "kind": pa.array(["click", "order"] * 50),
            "at": pa.array(
                [first + timedelta(seconds=each) for each in range(100)],
                pa.timestamp("us", tz="UTC"),
            ),
        }
    )
