"""Streams of rows: files grow as rows come, and what goes wrong leaves nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import Unavailable
from icetree.rows.write import write
from icetree.rows.write.write import write_files
from icetree.spec.entry.entry import Entries
from icetree.store import local
from icetree.store.base import Store
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.encryption.lake import KEY, SCHEMA, connected

KIB = 1024
COLUMNS = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_PORTION_BYTES", 32 * KIB)
    monkeypatch.setattr(write, "_GROWN_BYTES", 8 * KIB)


def _table(store: Store, place: str, **properties: str) -> Table:
    lake = Lake(catalog=MemoryCatalog("test"), store=store, warehouse=place)
    lake.create_namespace("db")
    told = {"write.parquet.row-group-size-bytes": "16384", **properties}
    return lake.create_table("db.t", COLUMNS, properties=told)


def _batches(count: int, size: int = 500) -> Iterator[pa.RecordBatch]:
    for start in range(0, count * size, size):
        ids = np.arange(start, start + size)
        texts = pa.array([f"row {id}" if id % 7 else None for id in ids.tolist()])
        numbers = np.where(ids % 11, ids * 0.5, np.nan)
        yield pa.RecordBatch.from_arrays([pa.array(ids), texts, pa.array(numbers)], schema=COLUMNS)


def _written(table: Table, rows: Any, **how: Any) -> Entries:
    return write_files(rows, metadata=table.metadata, store=table.files.store, **how)


def _told(entries: Entries) -> Any:
    """Return what entries tell of rows, and not of how these are stored."""
    return entries.drop_columns(
        ["location", "split_offsets", "file_size_in_bytes", "key_metadata"]
    ).to_pylist()


@pytest.mark.parametrize("format", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("target", [1 << 30, 200 * KIB, KIB])
def test_files_of_a_stream_tell_what_those_of_the_rows_at_once_do(
    format: str, target: int, tmp_path: Path
) -> None:
    table = _table(LocalStore(), str(tmp_path), **{"write.format.default": format})
    whole = _written(table, pa.Table.from_batches(_batches(40)), target_file_size=target)
    streamed = _written(table, _batches(40), target_file_size=target)
    if target == 1 << 30:
        assert repr(_told(streamed)) == repr(_told(whole))
    # A file of a stream is cut at a batch.
    assert pc.max(streamed["record_count"]).as_py() <= pc.max(whole["record_count"]).as_py()
    table.append_files(streamed)
    assert table.verify(deep=True).is_clean
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == list(range(20_000))


def test_row_groups_of_a_stream_are_as_large_as_those_of_the_rows_at_once(tmp_path: Path) -> None:
    table = _table(LocalStore(), str(tmp_path))
    [file] = _written(table, _batches(40)).to_pylist()
    groups = pq.read_metadata(f"{table.location}/{file['location']}")
    sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert min(sizes[:-1]) > 0.9 * max(sizes)
    assert len(file["split_offsets"]) == len(sizes) > 10


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_stream_takes_memory_for_portions_not_for_files(place: str, tmp_path: Path) -> None:
    store, at = (LocalStore(), str(tmp_path)) if place == "disk" else (MemoryStore(), "memory://l")
    table = _table(store, at)
    peaks = []
    for count in (40, 400):
        seen = [0]

        def rows(count: int = count, seen: list[int] = seen) -> Iterator[pa.RecordBatch]:
            least = pa.total_allocated_bytes()
            for batch in _batches(count):
                seen.append(pa.total_allocated_bytes() - least)
                yield batch

        entries = _written(table, rows())
        assert entries["record_count"].to_pylist() == [count * 500]
        peaks.append(max(seen))
    # In a store that takes whole files alone, what is encoded waits.
    room = (
        256 * KIB if place == "disk" else 256 * KIB + entries["file_size_in_bytes"][0].as_py() * 2
    )
    assert peaks[1] < peaks[0] + room


def _left(folder: Path) -> list[str]:
    return [
        each.name for each in folder.rglob("*") if each.is_file() and "metadata" not in str(each)
    ]


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_stream_that_breaks_off_leaves_nothing(partitioned: bool, tmp_path: Path) -> None:
    table = _table(LocalStore(), str(tmp_path))
    if partitioned:
        with table.edit_spec() as edit:
            edit.add("truncate(5000, id)")
    begun = []

    def broken() -> Iterator[pa.RecordBatch]:
        yield from _batches(40)
        begun.extend(_left(tmp_path))
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        _written(table, broken(), target_file_size=400 * KIB)
    assert begun
    assert not _left(tmp_path)


def test_a_disk_that_fails_while_a_file_grows_is_told_of_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(LocalStore(), str(tmp_path))
    real, left = local._Temporary.write, [30]

    def failing(self: local._Temporary, content: bytes) -> None:
        left[0] -= 1
        if not left[0]:
            raise OSError(28, "No space left on device")
        real(self, content)

    monkeypatch.setattr(local._Temporary, "write", failing)
    with pytest.raises(Unavailable, match="No space left on device"):
        _written(table, _batches(40))
    monkeypatch.undo()
    assert not _left(tmp_path)


def test_a_file_has_no_name_before_all_of_it_is_there(tmp_path: Path) -> None:
    table, seen = _table(LocalStore(), str(tmp_path)), set()

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in _batches(40):
            seen.update(_left(tmp_path))
            yield batch

    [file] = _written(table, rows()).to_pylist()
    assert seen
    assert all(name.startswith(local.TEMPORARY) for name in seen)
    assert _left(tmp_path) == [Path(file["location"]).name]


def test_partitions_that_get_few_rows_do_not_hold_those_of_others(tmp_path: Path) -> None:
    table = _table(LocalStore(), str(tmp_path))
    with table.edit_spec() as edit:
        edit.add("s")
    seen = []

    def rows() -> Iterator[pa.RecordBatch]:
        for _ in range(300):
            ids = pa.array(np.arange(2000))
            texts = pa.array(["much"] * 1999 + ["little"])
            yield pa.RecordBatch.from_arrays([ids, texts, ids.cast(pa.float64())], schema=COLUMNS)
            seen.append(pa.total_allocated_bytes())

    entries = _written(table, rows(), target_file_size=256 * KIB)
    assert pc.sum(entries["record_count"]).as_py() == 600_000
    assert max(seen[200:]) < max(seen[:100]) + 1024 * KIB


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_files_of_a_stream_are_encrypted_from_the_first_byte_on(
    format: str, tmp_path: Path
) -> None:
    secret = b"Zanzibar-secret"
    seen = []

    def rows() -> Iterator[pa.RecordBatch]:
        for start in range(0, 20_000, 500):
            numbers = pa.array(np.arange(start, start + 500))
            texts = pa.repeat(pa.scalar(secret.decode()), 500)
            yield pa.RecordBatch.from_arrays([numbers, texts, texts], schema=SCHEMA)
            seen.extend(_contents(tmp_path))

    with connected(tmp_path, k=KEY) as lake:
        lake.create_namespace("db")
        told = {
            "encryption.key-id": "k",
            "write.format.default": format,
            "write.parquet.compression-codec": "uncompressed",
            "write.avro.compression-codec": "uncompressed",
        }
        table = lake.create_table("db.t", SCHEMA, properties=told)
        table.append(rows())
        assert table.verify(deep=True).is_clean
        assert table.scan().to_arrow()["n"].to_pylist() == list(range(20_000))
        [file] = table.scan().plan().tasks.to_pylist()
        assert file["key_metadata"]
    assert not any(secret in content for content in [*seen, *_contents(tmp_path)])


def _contents(folder: Path) -> list[bytes]:
    return [
        each.read_bytes() for each in folder.rglob("*") if each.is_file() and "data" in str(each)
    ]


def test_a_stream_lets_go_of_files_that_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(LocalStore(), str(tmp_path))
    growing: WeakSet[Any] = WeakSet()
    begun: WeakSet[Any] = WeakSet()

    class Watched(write.Growing):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            growing.add(self)
            begun.add(self._file)

    monkeypatch.setattr(write, "Growing", Watched)
    seen = []

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in _batches(200):
            seen.append(len(growing))
            yield batch

    entries = _written(table, rows(), target_file_size=64 * KIB)
    assert entries.num_rows > 30
    assert max(seen) < 20
    gc.collect()
    assert not growing
    assert not begun


def test_rows_of_a_partition_cost_no_look_at_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(LocalStore(), str(tmp_path))
    with table.edit_spec() as edit:
        edit.add("truncate(100, id)")
    real, looks = write._Pending.held_bytes, []

    def watched(pending: Any) -> Any:
        looks.append(pending)
        return real.__get__(pending)

    monkeypatch.setattr(write._Pending, "held_bytes", property(watched))
    entries = _written(table, _batches(20))
    assert entries.num_rows == 100
    assert len(looks) <= entries.num_rows


@pytest.mark.parametrize("at_once", [False, True])
def test_partitions_hold_no_more_than_there_is_room_for(
    at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What grows is on the disk: in memory, how much that is would depend on how threads get on.
    table = _table(LocalStore(), str(tmp_path))
    with table.edit_spec() as edit:
        edit.add("bucket(8, id)")
    room, held = 64 * KIB, []

    class Watched(write.Writer):
        def add(self, part: Any) -> None:
            super().add(part)
            held.append(sum(each.held_bytes for each in self._pending.values()))
            assert self._waiting_bytes == sum(each.size_bytes for each in self._pending.values())

    monkeypatch.setattr(write, "_HELD_BYTES", room)
    monkeypatch.setattr(write, "Writer", Watched)
    rows = pa.Table.from_batches(_batches(40)) if at_once else _batches(40)
    entries = _written(table, rows)
    assert pc.sum(entries["record_count"]).as_py() == 20_000
    assert room / 2 < max(held) <= room
