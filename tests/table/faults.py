"""A world that fails at any step: how the steps of a run are failed at, one after the other.

The steps are counted in a run without faults. The usual run then fails once at each of them, in one
way after the other; `make laws` fails there in every way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

from typing_extensions import override

from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.store.flaky import Fault, FlakyStore, How, Step, T
from tests.store.wrapped import Request

NAME = "db.t"
SWAP = "swap"
#: Five asks for a swap whose answer was lost, at once.
IMPATIENT = {"commit.status-check.num-retries": "4", "commit.status-check.max-wait-ms": "0"}


class World:
    """A store and a catalog that can be copied, so that each run starts from the same table."""

    def __init__(self) -> None:
        self.store, self.catalog = MemoryStore(), MemoryCatalog("m")

    def copy(self) -> World:
        other = World()
        other.store._files.update(self.store._files)
        other.catalog._namespaces.update(self.catalog._namespaces)
        other.catalog._tables.update(self.catalog._tables)
        return other

    def healthy(self) -> Lake:
        return Lake(catalog=self.catalog, store=self.store, warehouse="memory://w")

    def table(self) -> Table:
        """Return the table as somebody sees it who comes fresh."""
        return self.healthy().table(NAME)

    def files(self) -> set[str]:
        return set(self.store._files)


def at_each(steps: Sequence[Step]) -> Iterator[Fault]:
    """Yield the faults that steps are tried with: of each step one, or all of them."""
    turns = cycle(range(4))
    for step in steps:
        ways = [
            Fault(at=step.number, how=How.BEFORE),
            Fault(at=step.number, how=How.AFTER),
            # A store that lets an error of the system through, which nobody foresaw.
            Fault(at=step.number, how=How.AFTER, error=TimeoutError),
        ]
        if step.operation == "write_new":
            ways.append(Fault(at=step.number, how=How.PARTIAL))
        yield from ways if EFFORT > 1 else [ways[next(turns) % len(ways)]]


class Died(BaseException):
    """The end of a process: nothing after it is carried out, and nobody catches it."""


class DyingStore(FlakyStore):
    """A store of a process that dies at a step: that one is carried out or not, none after it."""

    def __init__(self, store: MemoryStore, at: int, *, after: bool) -> None:
        super().__init__(store)
        self.at, self.after = at, after

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        number = len(self.steps)
        self._count(request)
        if number > self.at or (number == self.at and not self.after):
            raise Died
        done = effect()
        if number == self.at:
            raise Died
        return done
