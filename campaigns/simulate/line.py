"""The line from a writer to store and catalog: on it things go wrong, and others come in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from icetree.catalog.base import Outcome, TableName, Unknown
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitUnknown, Unavailable
from icetree.store.base import Store, in_turn
from icetree.store.memory import MemoryStore
from tests.store.wrapped import Request, WrappedStore

T = TypeVar("T")

#: Of the calls that a faulty step makes, the one that fails is among so many.
_EARLIEST_CALLS = (3, 10, 30)


class Fault(Enum):
    """What goes wrong with one call."""

    REFUSED = "refused"
    ANSWER_LOST = "done, its answer lost"
    REQUEST_LOST = "lost on the way"
    LATE = "on its way for long, its sender told nothing"
    SLOW = "slow"
    INTERRUPTED = "interrupted by the user"
    INTERRUPTED_AFTER = "done, then interrupted by the user"
    CRASH = "the writer dies as it asks"
    CRASH_AFTER = "done, and the writer dies"


class Crashed(BaseException):
    """The writer is dead: nothing that it still asks for happens."""


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C; the writer lives."""


class World(Protocol):
    """What a line needs of the world around it."""

    def told(self, line: str) -> None:
        """Note what happens."""
        ...

    def let_pass(self, milliseconds: int) -> None:
        """Let time pass for everybody."""
        ...

    def let_others(self, wish: int) -> None:
        """Let other writers come first."""
        ...

    def postpone(self, do: Callable[[], object]) -> None:
        """Do something at some later time."""
        ...

    def catch_up(self, chance: random.Random) -> None:
        """Do some of what was postponed."""
        ...


@dataclass(slots=True)
class Fate:
    """What befalls one step: where it pauses, and at which call something goes wrong."""

    chance: random.Random
    shared: bool
    #: How many more calls go well; None for all of them.
    left: int | None
    #: Whether only swaps count: they are few among many calls, and matter most.
    aims_at_swaps: bool = False
    struck: Fault | None = None

    @classmethod
    def of(cls, chance: random.Random, *, faulty: bool, shared: bool) -> Fate:
        """Draw a fate."""
        aims = chance.random() < 0.4
        left = 0 if aims else chance.randrange(chance.choice(_EARLIEST_CALLS))
        return cls(chance=chance, shared=shared, left=left if faulty else None, aims_at_swaps=aims)

    def fault(self, kinds: tuple[Fault, ...]) -> Fault | None:
        """Return what goes wrong with the next call, if anything."""
        if self.left is None or (self.aims_at_swaps and kinds is not _SWAPPING):
            return None
        self.left -= 1
        if self.left >= 0:
            return None
        self.struck = self.chance.choice(kinds)
        # Trouble seldom comes alone.
        again = self.chance.choice((None, None, 0, 1, 5))
        self.left = None if again is None else again + 1
        return self.struck

    def pauses(self) -> int | None:
        """Return a wish of who goes first, or None to go on."""
        if self.shared and self.chance.random() < 0.15:
            return self.chance.randrange(1000)
        return None


_ASKING = (Fault.REFUSED, Fault.SLOW, Fault.INTERRUPTED, Fault.CRASH)
_CHANGING = (*_ASKING, Fault.ANSWER_LOST, Fault.INTERRUPTED_AFTER, Fault.CRASH_AFTER)
_SWAPPING = (*_CHANGING, Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.LATE)
_CHANGES = {"write_new", "delete", "create"}


class Line:
    """Carries one writer's calls; every one of them passes here."""

    def __init__(self, writer: int, world: World) -> None:
        self.writer = writer
        self.is_dead = False
        self.fate = Fate(chance=random.Random(0), shared=False, left=None)
        self._world = world

    def call(self, what: str, where: str, effect: Callable[[], T]) -> T:
        """Make a call, or see it fail as fate has it."""
        fault = self._begin(what, where, _CHANGING if what in _CHANGES else _ASKING)
        if fault is None:
            return effect()
        if fault in (Fault.ANSWER_LOST, Fault.INTERRUPTED_AFTER, Fault.CRASH_AFTER):
            effect()
        self._fail(fault, what, where)
        return effect()

    def swap(self, effect: Callable[[], Outcome]) -> Outcome:
        """Make a swap, whose answer may be lost: it can have happened, not, or happen yet."""
        fault = self._begin("swap", "", _SWAPPING)
        match fault:
            case None:
                return effect()
            case Fault.ANSWER_LOST | Fault.INTERRUPTED_AFTER | Fault.CRASH_AFTER:
                effect()
            case Fault.LATE:
                self._world.postpone(effect)
        if fault in (Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.LATE):
            if self.fate.chance.random() < 0.3:
                raise CommitUnknown(f"swap: {fault.value}")
            return Unknown(reason=f"swap: {fault.value}")
        self._fail(fault, "swap", "")
        return effect()

    def wait(self, seconds: float) -> None:
        """Let time pass, and others come first."""
        self._world.let_pass(int(seconds * 1000))
        self._pause()

    def _begin(self, what: str, where: str, kinds: tuple[Fault, ...]) -> Fault | None:
        if self.is_dead:
            raise Crashed
        self._pause()
        self._world.let_pass(1)
        self._world.catch_up(self.fate.chance)
        fault = self.fate.fault(kinds)
        if fault is not None:
            self._world.told(f"    {what} {_short(where)}: {fault.value}")
        return fault

    def _pause(self) -> None:
        wish = self.fate.pauses()
        if wish is not None:
            self._world.let_others(wish)

    def _fail(self, fault: Fault, what: str, where: str) -> None:
        """Raise what the writer gets to see; a slow call goes well in the end."""
        match fault:
            case Fault.REFUSED | Fault.ANSWER_LOST | Fault.REQUEST_LOST:
                raise Unavailable(f"{what} {where}: {fault.value}")
            case Fault.INTERRUPTED | Fault.INTERRUPTED_AFTER:
                raise Interrupted
            case Fault.CRASH | Fault.CRASH_AFTER:
                self.is_dead = True
                raise Crashed
            case Fault.SLOW:
                self._world.let_pass(60_000)
                self._world.let_others(self.fate.chance.randrange(1000))


def _short(location: str) -> str:
    return location.rpartition("/")[2]


class WatchedStore(MemoryStore):
    """A store in memory; `watch` is told of what is about to be deleted from it."""

    def __init__(self) -> None:
        super().__init__()
        self.watch: Callable[[list[str]], None] = lambda _: None

    def delete(self, locations: Iterable[str]) -> None:
        going = [*locations]
        self.watch(going)
        super().delete(going)


class LineStore(WrappedStore):
    """A store at the end of a line."""

    def __init__(self, store: Store, line: Line) -> None:
        super().__init__(store)
        self._line = line

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        return self._line.call(request.operation, request.location, effect)

    def open(self, location: str) -> pa.NativeFile:
        # As a whole: a reader that asks for ranges might do so from threads of its own.
        return self._pass(
            Request(operation="open", location=location), lambda: self.store.open(location)
        )

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        in_turn(self.write_new, files)


#: Told of every swap that happened: the table, and the new head.
Landed = Callable[[TableName, str], None]


class LineCatalog:
    """A catalog at the end of a line; `landed` is told of each swap as it happens."""

    def __init__(self, catalog: MemoryCatalog, line: Line, landed: Callable[[], Landed]) -> None:
        self._catalog = catalog
        self._line = line
        self._landed = landed

    def load(self, table: TableName) -> str:
        return self._line.call("load", str(table), lambda: self._catalog.load(table))

    def create(self, table: TableName, metadata_location: str) -> None:
        self._line.call("create", "", lambda: self._catalog.create(table, metadata_location))

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        # Whose swap it is is known when it is asked for, though it may happen later.
        landed = self._landed()

        def effect() -> Outcome:
            outcome = self._catalog.swap(table, expected=expected, to=to)
            if self._catalog.load(table) == to and type(outcome).__name__ == "Swapped":
                landed(table, to)
            return outcome

        return self._line.swap(effect)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)
