"""The world of one seed: a store and a catalog, writers with lines to them, and the judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from campaigns.simulate.clock import Clock, Surroundings
from campaigns.simulate.finding import Finding
from campaigns.simulate.intent import Commit
from campaigns.simulate.judge import Judge
from campaigns.simulate.laws import looks_of, require_all
from campaigns.simulate.line import (
    Crashed,
    Fate,
    Interrupted,
    Landed,
    Line,
    LineCatalog,
    LineStore,
    WatchedStore,
)
from campaigns.simulate.model import History
from campaigns.simulate.script import Script, Step
from campaigns.simulate.turn import Turn
from campaigns.simulate.turns import Turns
from campaigns.simulate.verbs.tables import BANK, ROWS, make_tables
from icetree.catalog.base import TableName, parse_name
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CorruptTable, NotFound, Unavailable
from icetree.files.cache import Cache
from icetree.surroundings import within
from icetree.table.lake import Lake
from icetree.table.table import Table

#: How many handles a writer has of a table, each as stale as it may be.
_HANDLES = 2

Verb = Callable[[Turn], None]


class Writer:
    """One of those who change the table: with handles, a cache and a clock of its own."""

    def __init__(self, number: int, world: World) -> None:
        self.number = number
        self.line = Line(number, world)
        self.commit: Commit | None = None
        settings = world.script.settings
        self.surroundings = Surroundings(world.clock, self.line, skew_ms=settings.skews_ms[number])
        self.lake = Lake(
            catalog=LineCatalog(world.catalog, self.line, lambda: world.landing(self)),
            store=LineStore(world.store, self.line),
            warehouse="memory://lake",
            cache=Cache(settings.manifest_cache_bytes),
        )
        self.handles: dict[str, list[Table]] = {
            name: [self.lake.table(name) for _ in range(_HANDLES)] for name in (ROWS, BANK)
        }


class World:
    """Everything there is, and what has happened so far."""

    def __init__(self, script: Script, verbs: Mapping[str, Verb]) -> None:
        self.script = script
        self.clock = Clock()
        self.store = WatchedStore()
        self.catalog = MemoryCatalog("simulated")
        self.judge = Judge(self.store)
        self.store.watch = self.judge.deleting
        self.log: list[str] = []
        self.faults: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.steps = 0
        self._verbs = verbs
        self._late: list[Callable[[], object]] = []
        self._turns: Turns | None = None
        self.lake = Lake(catalog=self.catalog, store=self.store, warehouse="memory://lake")
        # Of those who look on: on them nothing goes wrong.
        self._nobody = Surroundings(self.clock, Line(-1, self), skew_ms=0)
        self._nobody.chance = script.chance("nobody")
        self._writers: dict[int, Writer] = {}

    def run(self) -> None:
        """Carry out the script; raise the first `Finding`."""
        self._begin()
        self._turns = Turns(self.script.steps, self._carry_out)
        self._turns.run()
        while self._late:
            self._late.pop()()

    def look_at_all(self) -> None:
        """Check every law of what there is in the end; raise the first `Finding`."""
        try:
            with within(self._nobody):
                looks = looks_of(self.script.chance("looks"))
                require_all(self, self.script.chance("laws"), looks)
        except Exception as error:
            raise Finding("errors", f"looking at the end raised {error!r}") from error

    def history(self, name: str) -> History:
        """Return what the judge knows of a table."""
        return self.judge.histories[parse_name(name)]

    @property
    def under_way(self) -> int:
        """How many writers are in the midst of a step."""
        return 0 if self._turns is None else self._turns.under_way

    # --- what lines need --------------------------------------------------------------------

    def told(self, line: str) -> None:
        self.log.append(line)

    def let_pass(self, milliseconds: int) -> None:
        self.clock.ms += milliseconds

    def let_days_pass(self, days: int) -> None:
        """Let days pass, which is longer than anything that was asked for takes."""
        if days:
            while self._late:
                self._late.pop()()
            self.clock.ms += days * 24 * 3_600_000

    def let_others(self, wish: int) -> None:
        if self._turns is not None:
            self._turns.pause(wish)

    def postpone(self, do: Callable[[], object]) -> None:
        self._late.append(do)

    def catch_up(self, chance: random.Random) -> None:
        while self._late and chance.random() < 0.2:
            self.told("    a swap that was late happens now")
            self._late.pop()()

    def landing(self, writer: Writer) -> Landed:
        """Return what is told of a swap that a writer asks for now."""
        commit = writer.commit
        if commit is None:
            raise Finding(
                "unasked", f"writer {writer.number} swaps, though it was to commit nothing"
            )
        return partial(self._landed, commit)

    def _landed(self, commit: Commit, table: TableName, location: str) -> None:
        state = self.judge.landed(commit, table, location)
        self.told(f"    landed{'' if state is None else f' as #{state.sequence}'}: {commit.text}")

    # --- within -----------------------------------------------------------------------------

    def _begin(self) -> None:
        with within(self._nobody):
            make_tables(self)
            for number in sorted({step.writer for step in self.script.steps}):
                self._writers[number] = Writer(number, self)

    def _carry_out(self, step: Step) -> None:
        writer = self._writers[step.writer]
        if writer.line.is_dead:
            return
        self.steps += 1
        fate = Fate.of(
            self.script.chance(step.number, "fate"), faulty=step.faulty, shared=step.shared
        )
        writer.line.fate = fate
        writer.surroundings.chance = self.script.chance(step.number, "bits")
        turn = Turn(
            world=self, writer=writer, step=step, chance=self.script.chance(step.number, "verb")
        )
        try:
            with within(writer.surroundings):
                self._verbs[step.verb](turn)
        except Unavailable as error:
            if fate.struck is None:
                raise Finding("errors", f"{step.verb} saw {error!r} out of nothing") from error
        except (Interrupted, Crashed):
            pass
        except (NotFound, CorruptTable) as error:
            # Files go with the snapshots that needed them, under those who still look at one.
            if not self._has_lost(writer):
                raise Finding("errors", f"{step.verb} raised {error!r}") from error
            self.told(f"    looked at what has expired: {error}")
        except Finding:
            raise
        except Exception as error:
            raise Finding("errors", f"{step.verb} raised {error!r}") from error
        finally:
            writer.commit = None
            if fate.struck is not None:
                self.faults[fate.struck.name] += 1
        self._turns_next(fate.chance.randrange(1000))

    def _has_lost(self, writer: Writer) -> bool:
        handles = [handle for each in writer.handles.values() for handle in each]
        return any(
            self.history(str(each.name)).lost_since(each.state.metadata_location)
            for each in handles
        )

    def _turns_next(self, wish: int) -> None:
        if self._turns is not None:
            self._turns.wish(wish)
