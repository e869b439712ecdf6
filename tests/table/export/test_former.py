"""Exports of history: every snapshot that a table has, each with what its neighbours have already."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import icetree
from icetree.catalog.memory import MemoryCatalog
from icetree.cli.main import cli
from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.keys.local import LocalKeys
from icetree.store.memory import MemoryStore
from icetree.table.export.former import exports_in, former_of
from icetree.table.export.places import export_of
from icetree.table.lake import Lake
from icetree.table.moving.downgrade import downgrade
from icetree.table.moving.upgrade import upgrade
from icetree.table.table import Table
from tests.table.changing import ARROW, LEAFY, now, some
from tests.table.export.test_lifetime import exports, require_whole

PAGED = {**LEAFY, "write.metadata.inline-snapshots": "2"}


def grown(count: int, **properties: str) -> Table:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties={**LEAFY, **properties})
    for number in range(count):
        table.append(some((number, "a")))
    return table


def test_with_its_history_every_snapshot_of_a_table_is_exported() -> None:
    table = grown(30, **PAGED)
    assert table.metadata.snapshot_pages
    told = table.export(history=True)
    assert told.snapshot_count == 30
    assert "exported 30 snapshots as v3" in str(told)
    for each in table.history():
        require_whole(table, each.snapshot_id)
    shown = metadata_codec.decode(table.files.store.read(told.metadata_location), file="m")
    assert {e.snapshot_id for e in shown.snapshots} == {e.snapshot_id for e in table.history()}
    assert shown.current_snapshot_id == now(table) == told.snapshot_id
    assert table.export(history=True).written == ()
    # What shows the newest alone has another name.
    assert table.export().metadata_location != told.metadata_location


def test_of_a_table_without_pages_history_is_in_the_metadata_that_every_export_has() -> None:
    table = grown(4)
    assert table.export(history=True).metadata_location == table.export().metadata_location
    assert grown(0).export(history=True).snapshot_count == 0


def test_history_is_not_a_point_in_it() -> None:
    table = grown(2)
    with pytest.raises(InvalidInput, match="give at, or history"):
        table.export(at=now(table), history=True)


def test_a_former_snapshot_uses_what_a_later_one_has() -> None:
    table = grown(8)
    table.export()
    first, *others = sorted(table.history(), key=lambda each: each.sequence_number)
    before = exports(table)
    for each in others[3:5]:
        told = table.export(at=each.snapshot_id)
        assert told.reused_manifests_count > 0
        assert not [name for name in exports(table) - before if "/part-" in name]
    # The first of a line has no ancestor to ask.
    assert table.export(at=first.snapshot_id).written


def test_what_was_exported_is_found_again_however_many_commits_came_since() -> None:
    """Snapshots in between are in pages of history, where their parents cannot be followed."""
    table = grown(6, **PAGED)
    table.export()
    # Leaves stay as they are.
    table.set_properties({"write.root.max-data-entries": "1000"})
    for number in range(30):
        table.append(some((number, "b")))
    before = {each for each in exports(table) if "/part-" in each}
    made = {each for each in table.export().written if "/part-" in each}
    assert before
    assert not before & made


def test_exports_of_an_encrypted_history_have_keys_each() -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.keeper = LocalKeys({"k": b"0123456789012345"})
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties={"encryption.key-id": "k"})
    for number in range(3):
        table.append(some((number, "a")))
    told = table.export(history=True)
    shown = metadata_codec.decode(table.files.store.read(told.metadata_location), file="m")
    keys = [each.key_id for each in shown.snapshots]
    assert None not in keys
    assert len({*keys}) == 3
    for each in shown.snapshots:
        assert each.manifest_list is not None
        assert table.files.store.exists(each.manifest_list)


def test_with_each_commit_exported_all_of_history_is() -> None:
    table = grown(5, **{"export.on-commit": "true"})
    there = exports_in(table.metadata, table.files, 3)
    assert there == {export_of(each) for each in table.history()}


def test_heads_and_what_came_with_an_upgrade_are_no_former_snapshots() -> None:
    table = grown(1)
    downgrade(table, dry_run=False)
    upgrade(table, dry_run=False)
    for number in range(4):
        table.append(some((number, "b")))
    [*_, third, fourth, before, _] = sorted(table.history(), key=lambda each: each.sequence_number)
    table.create_tag("t", at=fourth.snapshot_id)
    found = former_of(table.metadata, table.history(), 3)
    assert [each.snapshot_id for each in found] == [before.snapshot_id, third.snapshot_id]
    # Lists of v3 are none of v2: there the first has one of its own, too.
    [*_, oldest] = former_of(table.metadata, table.history(), 2)
    assert oldest.manifest_list is not None


def test_what_came_with_an_upgrade_from_v3_is_exported_as_v2() -> None:
    table = grown(2)
    downgrade(table, dry_run=False)
    upgrade(table, dry_run=False)
    table.append(some((7, "b")))
    table.export(format_version=2, history=True)
    there = exports_in(table.metadata, table.files, 2)
    assert there == {export_of(each) for each in table.history()}


def test_the_command_exports_history_too(tmp_path: Path) -> None:
    place = ["--catalog", f"sqlite:///{tmp_path}/c.db", "--warehouse", str(tmp_path / "lake")]
    with icetree.connect(place[1], warehouse=place[3]) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ARROW)
        for number in range(3):
            table.append(some((number, "a")))
    told = CliRunner().invoke(cli, [*place, "export", "db.t", "--history"])
    assert told.exit_code == 0, told.output
    assert "exported 3 snapshots as v3" in told.output
