"""A server killed at any step of a plan: whoever asks next is told the whole of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.serve.server import Server
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.dying import DyingCatalog, DyingStore, Killed, Steps
from tests.serve.plan.planning import ask
from tests.table.changing import ARROW, delete_equal, some

#: For whom equality deletes become vectors, which are files that a plan makes.
PYICEBERG = {"x-client-version": "PyIceberg/0.12.0"}


class World:
    """What outlives a server: files and names."""

    def __init__(self) -> None:
        self.store, self.catalog = MemoryStore(), MemoryCatalog("m")
        lake = Lake(catalog=self.catalog, store=self.store, warehouse="memory://w")
        lake.create_namespace("db")
        table = lake.create_table("db.t", ARROW)
        for first in (0, 10, 20):
            table.append(some(*((first + number, "a") for number in range(4))))
        delete_equal(table, [1, 12, 13])

    def client(self, steps: Steps) -> Client:
        catalog: Any = DyingCatalog(self.catalog, steps)
        store = DyingStore(self.store, steps)
        return Client(Server(Lake(catalog=catalog, store=store, warehouse="memory://w")), PYICEBERG)

    def vectors(self, document: Mapping[str, Any]) -> list[list[bytes]]:
        """Return the vectors of each data file that a plan tells."""
        files = document["delete-files"]
        return sorted(
            [self._vector(files[at]) for at in task.get("delete-file-references", ())]
            for task in document["file-scan-tasks"]
        )

    def _vector(self, file: Mapping[str, Any]) -> bytes:
        return self.store.read_range(
            file["file-path"], offset=file["content-offset"], length=file["content-size-in-bytes"]
        )


@pytest.mark.parametrize("after", [False, True])
def test_a_plan_killed_while_it_makes_vectors_leaves_nothing_half(after: bool) -> None:
    world, whole = World(), Steps()
    vectors = world.vectors(ask(world.client(whole)).json)
    assert [len(each) for each in vectors] == [0, 1, 1]
    killed = 0
    for die_at in range(whole.count):
        world, steps = World(), Steps(die_at, after=after)
        # What is read side by side is now and then read twice, so that one run has more steps.
        with suppress(Killed):
            ask(world.client(steps))
        killed += steps.is_over
        told = ask(world.client(Steps()))
        assert told.status == 200
        assert world.vectors(told.json) == vectors
    assert killed > whole.count * 0.7
