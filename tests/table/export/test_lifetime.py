"""How long exports live: as long as their snapshots, whatever is tidied up, and whoever dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.codec.avro import pieces
from icetree.codec.avro.write import write_avro
from icetree.codec.legacy.encode_list import read_listed
from icetree.errors import AlreadyExists, Unavailable
from icetree.files.cache import Cache
from icetree.spec.location import absolute
from icetree.store.base import FileInfo
from icetree.store.memory import MemoryStore
from icetree.surroundings import within
from icetree.table.export.export import export
from icetree.table.export.parts import Part
from icetree.table.export.places import EXPORTS, export_folder, manifest_list_at, part_of
from icetree.table.lake import Lake
from icetree.table.moving.downgrade import downgrade
from icetree.table.moving.upgrade import upgrade
from icetree.table.table import Table
from tests.effort import usually
from tests.store.flaky import Fault, FlakyStore, How
from tests.table.changing import ARROW, LEAFY, delete_rows, now, some
from tests.table.maintain.history import Clock, Past, told

DAYS = 6 * 24 * 3_600_000


def exports(table: Table) -> set[str]:
    """Return the names of all files of exports."""
    place = absolute(EXPORTS, table.location)
    return {each.location for each in table.files.store.list(place)}


def require_whole(table: Table, snapshot_id: int) -> None:
    """Require a snapshot's list, and every manifest in it."""
    store = table.files.store
    [snapshot] = [each for each in table.history() if each.snapshot_id == snapshot_id]
    at = snapshot.manifest_list or manifest_list_at(export_folder(table.location, 3), snapshot)
    location = absolute(at, table.location)
    for each in read_listed(store.read(location), file=location):
        assert len(store.read(each.location)) == each.size_bytes


def exported(past: Past) -> Table:
    """Return the table of a past, all of it exported."""
    for each in list(past.table.history()):
        past.table.export(at=each.snapshot_id)
    return past.table


@pytest.mark.parametrize("seed", usually(range(4), 1))
def test_expiry_takes_along_the_exports_of_what_expires_and_no_other(seed: int) -> None:
    past = Past(seed)
    with within(past.clock):
        past.live(12)
        table = exported(past)
        before = exports(table)
        past.clock.at_ms += DAYS
        gone = set(table.maintenance.expire_snapshots(retain_last=1).snapshot_ids)
        assert gone
        kept = [each.snapshot_id for each in table.history()]
        for id in kept:
            require_whole(table, id)
        assert exports(table) < before
        assert not [n for n in exports(table) for id in gone if f"/snap-{id}" in n]
        # What is left is what exporting the rest anew would give, but for metadata files.
        left = {each for each in exports(table) if each.endswith(".avro")}
        table.files.store.delete(left)
        for id in kept:
            table.export(at=id)
        assert {each for each in exports(table) if each.endswith(".avro")} == left


@pytest.mark.parametrize("seed", usually(range(3), 0))
def test_expiry_deletes_no_file_that_a_tree_which_stays_names_whatever_its_name(seed: int) -> None:
    """Manifests that the way back to v3 wrote lie among exports, and are leaves of v4 again then."""
    past = Past(seed)
    with within(past.clock):
        past.live(6)
        downgrade(past.table, dry_run=False)
        upgrade(past.table, dry_run=False)
        past.live(8)
        table = exported(past)
        past.clock.at_ms += DAYS
        before = told(table, past.ids())
        gone = table.maintenance.expire_snapshots(retain_last=1).snapshot_ids
        assert gone
        # Nothing is remembered of what was read before.
        table.files = replace(table.files, cache=Cache())
        assert table.verify(deep=True).findings == ()
        for id, each in told(table, past.ids()).items():
            assert each.rows == before[id].rows
        for each in table.history():
            require_whole(table, each.snapshot_id)


def test_a_name_has_the_same_bytes_whatever_was_exported_before() -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    table = _in_one_leaf(lake)
    for where in ("v = 'b'", "v = 'g'", "v in ('a', 'h')"):
        table.delete(where)
        table.append(some((9, "a")))
    history = list(table.history())
    for each in history:
        table.export(at=each.snapshot_id)
    before = _held(table)
    assert sum(bool(part.gone) for part in _parts(table)) > 2
    for each in history:
        table.files.store.delete(exports(table))
        table.export(at=each.snapshot_id)
        assert _held(table).items() <= before.items()


def _held(table: Table) -> dict[str, bytes]:
    store = table.files.store
    return {each: store.read(each) for each in exports(table) if each.endswith(".avro")}


def _parts(table: Table) -> set[Part]:
    """Return the parts of leaves that are exported."""
    found = (part_of(each.rpartition("/")[2]) for each in exports(table))
    return {each for each in found if each is not None}


class Interrupted(MemoryStore):
    """A store in which others act just before exports are looked through."""

    act: Callable[[], object] | None = None

    def list(self, folder: str) -> Iterator[FileInfo]:
        act, self.act = self.act, None
        if act is not None and folder.rstrip("/").endswith(EXPORTS.rstrip("/")):
            act()
        return super().list(folder)


def _in_one_leaf(lake: Lake) -> Table:
    """Return a table of eight files in a leaf, which has four parts."""
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, partition_by=["v"], properties=LEAFY)
    table.append(some(*enumerate("abcdefgh")))
    table.export()
    assert len(_parts(table)) == 4
    return table


def test_expiry_leaves_what_a_commit_comes_to_meanwhile() -> None:
    """Two snapshots without the same file share a twin; one goes just when the other comes."""
    store = Interrupted()
    lake = Lake(catalog=MemoryCatalog("m"), store=store, warehouse="memory://w")
    table = _in_one_leaf(lake)
    first = now(table)
    table.delete("v = 'b'")
    table.export()
    gone = now(table)
    [marked] = [part for part in _parts(table) if part.gone]
    table.rollback(first)

    def delete_again() -> None:
        again = lake.table("db.t")
        again.delete("v = 'b'")
        assert marked.gone in str(again.export().written) or again.export().written == ()

    store.act = delete_again
    assert table.maintenance.expire_snapshots(snapshot_ids=[gone]).snapshot_ids == (gone,)
    require_whole(table.refresh(), now(table.refresh()))
    assert marked in _parts(table)


def test_along_one_line_a_part_that_was_made_anew_goes_with_its_snapshot() -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    table = _in_one_leaf(lake)
    first, before = now(table), _parts(table)
    table.delete("v = 'b'")
    table.export()
    [marked] = _parts(table) - before
    table.maintenance.expire_snapshots(snapshot_ids=[first])
    assert _parts(table) == {each for each in before | {marked} if each.number or each.gone}
    require_whole(table, now(table))


def test_a_part_that_no_snapshot_has_is_an_orphan_once_its_leaf_is_gone() -> None:
    clock = Clock()
    with within(clock):
        lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
        table = _in_one_leaf(lake)
        first = now(table)
        table.delete("v = 'b'")
        table.export()
        gone = now(table)
        [marked] = [part for part in _parts(table) if part.gone]
        table.rollback(first)
        # A commit that lands now may delete the same file.
        table.maintenance.expire_snapshots(snapshot_ids=[gone])
        clock.at_ms += DAYS
        table.maintenance.remove_orphan_files()
        assert marked in _parts(table)
        require_whole(table, first)
        table.delete("true")
        # A leaf of which nothing is left goes with the commit after.
        table.append(some((9, "a")))
        table.maintenance.expire_snapshots(retain_last=1, older_than="2099-01-01")
        clock.at_ms += DAYS
        table.maintenance.remove_orphan_files()
        assert _parts(table) == set()


def test_an_export_is_of_its_own_snapshot_and_not_of_one_that_had_the_id_before() -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW)
    table.append(some((1, "a")))
    first = now(table)

    def append(id: int) -> None:
        with table.transaction() as transaction:
            transaction.identify(4711)
            transaction.append(some((id, "a")))

    append(2)
    left = {each: lake.store.read(each) for each in table.export().written}
    table.rollback(first)
    table.maintenance.expire_snapshots(snapshot_ids=[4711])
    # A delete may fail, and so leave them there.
    for location, content in left.items():
        with suppress(AlreadyExists):
            lake.store.write_new(location, content)
    append(3)
    lake.downgrade_table("db.t")
    again = Lake(catalog=lake.catalog, store=lake.store, warehouse="memory://w").table("db.t")
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_exports_are_no_orphans_while_their_snapshots_are_there() -> None:
    past = Past(1)
    with within(past.clock):
        past.live(8)
        table = exported(past)
        past.clock.at_ms += DAYS
        before = {each for each in exports(table) if each.endswith(".avro")}
        strays = [f"{EXPORTS}0000/v3/snap-1.avro", f"{export_folder(table.location, 3)}snap-5.avro"]
        newest = table.current_snapshot
        assert newest is not None
        # Of a tree that another snapshot had under the same id.
        strays.append(f"{export_folder(table.location, 3)}snap-{newest.snapshot_id}-00aa-0.avro")
        for each in strays:
            table.files.store.write_new(absolute(each, table.location), b"nobody's")
        past.clock.at_ms += DAYS
        told_by = table.export().metadata_location
        past.clock.at_ms += DAYS
        table.maintenance.remove_orphan_files()
        left = exports(table)
        assert before <= left
        assert told_by in left
        assert not {absolute(each, table.location) for each in strays} & left


def test_a_purge_takes_all_exports_along() -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW)
    table.append(some((1, "a")))
    table.export()
    lake.drop_table("db.t", purge=True)
    assert list(lake.store.list("memory://w")) == []


def test_a_copy_has_exports_of_its_own() -> None:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW)
    table.append(some((1, "a")))
    table.export()
    copy = lake.copy_table("db.t", "db.copy")
    assert exports(copy) == set()
    told = copy.export()
    assert told.manifest_list is not None
    for each in read_listed(copy.files.store.read(told.manifest_list), file="l"):
        assert each.location.startswith(copy.location)


def leafy(store: MemoryStore, catalog: MemoryCatalog) -> Table:
    lake = Lake(catalog=catalog, store=store, warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ARROW, properties=LEAFY)
    for number in range(4):
        table.append(some(*((3 * number + at, "a") for at in range(3))))
    delete_rows(table, [4])
    return table


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER])
def test_an_export_that_fails_at_any_step_is_finished_by_the_next(how: How) -> None:
    store = MemoryStore()
    table = leafy(store, MemoryCatalog("m"))
    start = dict(store._files)
    steps, wanted = _export(table, store, None)
    assert len(steps) > 4
    for at in range(len(steps)):
        store._files.clear()
        store._files.update(start)
        # Where a loss does no harm, nothing is said of it.
        with suppress(Unavailable):
            _export(table, store, Fault(at=at, how=how))
        # Whoever comes upon a list in between finds it whole.
        snapshot = table.current_snapshot
        assert snapshot is not None
        at = manifest_list_at(export_folder(table.location, 3), snapshot)
        if absolute(at, table.location) in exports(table):
            require_whole(table, snapshot.snapshot_id)
        assert {name: store._files[name] for name in start} == start
        _, again = _export(table, store, None)
        assert again == wanted


def _export(
    table: Table, store: MemoryStore, fault: Fault | None
) -> tuple[list[object], dict[str, bytes]]:
    """Export as a new process does; return its steps, and what there is then of exports."""
    flaky = FlakyStore(store, faults=[] if fault is None else [fault])
    files = replace(table.files, store=flaky, cache=Cache())
    export(table.state, files, table.metadata.current_snapshot())
    found = {name: held[0] for name, held in store._files.items() if EXPORTS in name}
    return list(flaky.steps), found


def _an_avro_file() -> bytes:
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    return write_avro(record, {}, 2, lambda *_: pieces.numbers(pa.array([1, 2])))


@pytest.mark.parametrize("content", [b"", b"Obj\x01", bytes(range(99)), _an_avro_file()])
def test_a_damaged_export_before_is_passed_over(content: bytes) -> None:
    store = MemoryStore()
    table = leafy(store, MemoryCatalog("m"))
    parent = table.current_snapshot
    assert parent is not None
    at = manifest_list_at(export_folder(table.location, 3), parent)
    store.write_new(absolute(at, table.location), content)
    table.append(some((50, "b")))
    told = table.export()
    assert told.snapshot_id is not None
    require_whole(table, told.snapshot_id)
    assert told.reused_manifests_count == 0
