"""The law of surroundings: what icetree does follows from its arguments and from them alone."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Executor

import pyarrow as pa
import pytest

from icetree import surroundings
from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.surroundings import InTurn, within
from icetree.table.lake import Lake
from icetree.table.table import Table


class Still:
    """Time that passes only by waiting, chance that a seed decides, and no threads."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.ms = 1_700_000_000_000
        self.waited_s = 0.0

    def now_ms(self) -> int:
        return self.ms

    def elapsed_s(self) -> float:
        return self.waited_s

    def wait(self, seconds: float) -> None:
        self.waited_s += seconds

    def random_bits(self, count: int) -> int:
        return self._chance.getrandbits(count)

    def pool(self, workers: int, name: str) -> Executor:  # noqa: ARG002
        return InTurn()


def _some(first: int) -> pa.Table:
    return pa.table({"id": [first, first + 1], "k": [first % 3, 1]})


def _live(seed: int) -> dict[str, bytes]:
    """Do a little of everything in surroundings of one's own; return every file there then is."""
    store = MemoryStore()
    with within(Still(seed)):
        lake = Lake(catalog=MemoryCatalog(), store=store, warehouse="memory://lake")
        lake.create_namespace("db")
        small = {"write.root.max-data-entries": "2", "write.metadata.inline-snapshots": "1"}
        columns = pa.schema([("id", pa.int64()), ("k", pa.int64())])
        table = lake.create_table("db.t", columns, partition_by="k", properties=small)
        stale: Table = lake.table("db.t")
        for first in range(0, 8, 2):
            table.append(_some(first))
        stale.append(_some(20))
        table.refresh().delete("k = 1")
        assert table.scan().to_arrow().num_rows == 4
        assert table.verify(deep=True).is_clean
        return {each.location: store.read(each.location) for each in store.list("memory://lake")}


def test_equal_surroundings_lead_to_equal_files_to_the_last_byte() -> None:
    first = _live(1)
    assert len(first) > 20
    assert _live(1) == first
    assert not _live(2).keys() & first.keys(), "other chance, other names"


def test_no_thread_starts_where_the_surroundings_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    _live(3)


def test_a_snapshot_is_of_the_time_of_its_surroundings() -> None:
    still = Still(4)
    with within(still):
        lake = Lake(catalog=MemoryCatalog(), store=MemoryStore(), warehouse="memory://lake")
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64()), ("k", pa.int64())]))
        still.ms += 86_400_000
        done = table.append(_some(0))
    assert done.snapshot is not None
    assert done.snapshot.timestamp_ms == still.ms


def test_a_call_that_fails_in_turn_fails_where_its_answer_is_asked_for() -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    asked = InTurn().submit(fail)
    with pytest.raises(KeyboardInterrupt):
        asked.result()


def test_surroundings_are_the_machines_again_after_the_block() -> None:
    with within(Still(5)):
        then = surroundings.now_ms()
    assert surroundings.now_ms() != then
