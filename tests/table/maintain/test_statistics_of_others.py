"""Statistics that name what is none: whoever sets them names a file, and expiry believes no name."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from icetree.catalog.base import Outcome
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import PartitionStatisticsFile, StatisticsFile
from icetree.spec.metadata.update import SetPartitionStatistics, SetStatistics
from icetree.surroundings import within
from icetree.table.export.places import EXPORTS
from icetree.table.point import time_of
from icetree.table.table import Table
from tests.table.changing import LEAFY, changing_table, delete_rows, some
from tests.table.maintain.history import Clock

#: Enough for pages of history that none of what expires is on.
_COMMITS, _STAY = 24, 20
#: What the name of a file of an export starts and ends with.
_KIND = re.compile(r"/(snap-|part-|)[^/]*(\.\w+)$")


def _data_in_a_leaf(table: Table) -> str:
    return str(table.scan("id = 2").plan().tasks["location"][0])


def _data_in_the_root(table: Table) -> str:
    return str(table.scan(f"id = {_COMMITS - 1}").plan().tasks["location"][0])


def _root(table: Table) -> str:
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert snapshot.root_manifest is not None
    return snapshot.root_manifest


def _page(table: Table) -> str:
    newest = max(table.metadata.snapshot_pages, key=lambda each: each.first_sequence_number)
    assert newest.first_sequence_number > _COMMITS - _STAY
    return newest.location


def _metadata_itself(table: Table) -> str:
    return table.state.metadata_location


def _name_it(table: Table, snapshot_id: int, path: str) -> None:
    table.update_metadata(
        SetStatistics(
            statistics=StatisticsFile(
                snapshot_id=snapshot_id,
                statistics_path=path,
                file_size_in_bytes=4,
                file_footer_size_in_bytes=2,
                blob_metadata=(),
            )
        ),
        SetPartitionStatistics(
            partition_statistics=PartitionStatisticsFile(
                snapshot_id=snapshot_id, statistics_path=path, file_size_in_bytes=4
            )
        ),
    )


@pytest.mark.parametrize("is_full", [False, True], ids=["as stored", "in full"])
@pytest.mark.parametrize(
    "needed",
    [_data_in_a_leaf, _data_in_the_root, _root, _page, _metadata_itself],
    ids=lambda each: each.__name__.strip("_"),
)
def test_a_file_that_is_needed_stays_whatever_expired_statistics_name(
    needed: Callable[[Table], str], is_full: bool
) -> None:
    clock = Clock()
    table = changing_table(properties={**LEAFY, "write.metadata.inline-snapshots": "2"})
    with within(clock):
        for number in range(_COMMITS):
            clock.tick()
            table.append(some((number, "a")))
        first = min(table.history(), key=lambda each: each.sequence_number)
        name = needed(table)
        _name_it(table, first.snapshot_id, absolute(name, table.location) if is_full else name)
        clock.tick()
        plan = table.maintenance.expire_snapshots(
            older_than=time_of(clock.at_ms), retain_last=_STAY, dry_run=True
        )
        done = table.maintenance.expire_snapshots(
            older_than=time_of(clock.at_ms), retain_last=_STAY
        )
    assert plan.deleted_statistics_files_count == done.deleted_statistics_files_count == 0
    assert len([*table.history()]) == _STAY
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(_COMMITS)]
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("is_full", [False, True], ids=["as stored", "in full"])
def test_what_exports_consist_of_stays_as_long_as_they_do(is_full: bool) -> None:
    """Lists, parts that many share, stand-ins for data DVs, and metadata: trees name none of them."""
    clock = Clock()
    table = changing_table(properties=LEAFY)
    with within(clock):
        for number in range(_COMMITS):
            clock.tick()
            table.append(some((number, "a"), (-number, "b")))
        clock.tick()
        delete_rows(table, [-1])
        table.export()
        table.export(format_version=2)
        folder = absolute(EXPORTS, table.location)
        files = sorted(each.location for each in table.files.store.list(folder))
        kinds = {each: _KIND.findall(each.removeprefix(folder))[0] for each in files}
        some_of_each = {kind: each for each, kind in kinds.items()}
        assert {("snap-", ".avro"), ("part-", ".avro"), ("", ".parquet")} <= some_of_each.keys()
        for path in some_of_each.values():
            first = min(table.history(), key=lambda each: each.sequence_number)
            name = path if is_full else path.removeprefix(f"{table.location}/")
            _name_it(table, first.snapshot_id, name)
            clock.tick()
            done = table.maintenance.expire_snapshots(snapshot_ids=[first.snapshot_id])
            assert done.deleted_statistics_files_count == 0
    assert [each for each in files if not table.files.store.exists(each)] == []


def test_a_file_that_a_snapshot_which_stays_is_given_meanwhile_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    table = changing_table()
    with within(clock):
        for number in range(3):
            clock.tick()
            table.append(some((number, "a")))
        old, *_, newest = sorted(table.history(), key=lambda each: each.sequence_number)
        path = "metadata/some.stats"
        table.files.store.write_new(absolute(path, table.location), b"some")
        _name_it(table, old.snapshot_id, path)
        other = copy(table)
        swap, given = table.catalog.swap, [newest.snapshot_id]

        def give_it_first(*asked: Any, **more: Any) -> Outcome:
            while given:
                _name_it(other, given.pop(), path)
            return swap(*asked, **more)

        monkeypatch.setattr(table.catalog, "swap", give_it_first)
        done = table.maintenance.expire_snapshots(snapshot_ids=[old.snapshot_id])
    assert not given
    assert done.deleted_statistics_files_count == 0
    assert table.files.store.exists(absolute(path, table.location))
