"""What is kept of a table's files is told of that table, and of that snapshot, alone."""

from __future__ import annotations

import random
from collections.abc import Collection

import pyarrow as pa
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.files.table_files import TableFiles
from icetree.spec.entry import entry
from icetree.spec.entry.entry import ROOT, Entry, Status, with_columns
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.store.memory import MemoryStore
from icetree.surroundings import Machine, within
from icetree.table.lake import Lake
from tests.codec.raw_manifests import raw
from tests.table.lake import SCHEMA

SHAPE = Shape(schema=SCHEMA)


class Guessed(Machine):
    """Chance that always falls the same way: names come again."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def random_bits(self, count: int) -> int:
        return self._chance.getrandbits(count)


def test_a_table_made_anew_where_another_was_is_read_as_it_is() -> None:
    """Other writers number their files, so that both tables may name theirs alike."""
    store, catalog, place = MemoryStore(), MemoryCatalog("m"), "memory://w/t"
    lake = Lake(catalog=catalog, store=store)
    other = Lake(catalog=catalog, store=store)
    lake.create_namespace("db")
    for seed, by, rows in ((1, lake, [1]), (2, other, [2, 3])):
        with within(Guessed(seed)):
            made = by.create_table("db.t", [("id", "long")], location=place)
        with within(Guessed(9)):
            made.append(pa.table({"id": rows}))
        table = lake.table("db.t")
        assert table.scan().count() == len(rows)
        assert table.scan().to_arrow()["id"].to_pylist() == rows
        assert table.verify(deep=True).is_clean
        names = {each.location for each in store.list(place)}
        lake.drop_table("db.t")
        store.delete(names)
    assert table.metadata.location == place


@pytest.mark.parametrize("columns", [None, frozenset[str]()])
def test_two_snapshots_may_name_one_root_whose_entries_inherit(
    columns: Collection[str] | None,
) -> None:
    new = entry.to_table([Entry(location="data/a", record_count=3, file_size_in_bytes=9)], SHAPE)
    new = with_columns(new, status=int(Status.ADDED))
    store = MemoryStore()
    store.write_new("memory://w/t/metadata/r.parquet", raw(new, ROOT))
    files = TableFiles(store=store, location="memory://w/t")
    for _ in range(2):
        for number in (1, 2):
            snapshot = Snapshot(
                snapshot_id=number,
                sequence_number=number,
                timestamp_ms=number,
                root_manifest="metadata/r.parquet",
                first_row_id=10 * number,
                added_rows=3,
            )
            root = files.root(snapshot, SHAPE, keep=True, stats_columns=columns)
            assert root["snapshot_id"].to_pylist() == [number]
            assert root["sequence_number"].to_pylist() == [number]
            assert root["first_row_id"].to_pylist() == [10 * number]
