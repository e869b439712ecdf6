"""Exports of what clients are shown: of heads before they are, of former snapshots soon.

One thread exports former snapshots, of one table after the other, a snapshot at a time; who is shown a
table waits for it for a moment. What is known to be there is not asked of the store again.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Final

from icetree.serve.waiting.held import Held
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.store.stopping import Stop, StoppingStore
from icetree.surroundings import elapsed_s, new_pool
from icetree.table.export.export import export_heads
from icetree.table.export.former import Former, former_of
from icetree.table.export.known import heads_of
from icetree.table.export.places import export_folder, export_of
from icetree.table.table import Table
from icetree.visible import log_of

log = log_of(__name__)

#: How long who is shown a table waits for exports of former snapshots.
FORMER_S: Final = 1.0
#: After so long the work on one table ends; whoever is shown it next has it begun again.
_WORK_S: Final = 60.0
#: So many tables have work to be done; of others the next who is shown them asks.
_TABLES: Final = 64
#: How long exports are taken to be there: somebody may delete what is no table's business of ours.
_SURE_S: Final = 600.0
#: What the name of an export takes.
_NAME_BYTES: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class _There:
    """Exports of a table that are there, or that cannot be; and since when they are taken for it."""

    since_s: float
    names: frozenset[str]


class _Sure:
    """What is known of the folders of exports; threads may ask at the same time."""

    def __init__(self) -> None:
        self._held: Held[_There] = Held(hold_s=_SURE_S)
        self._lock = Lock()

    def of(self, folder: str) -> frozenset[str] | None:
        """Return what tells the exports that are there; None where it is not known."""
        found = self._held.get(folder)
        if found is None or elapsed_s() - found.since_s > _SURE_S:
            return None
        return found.names

    def add(self, folder: str, names: Iterable[str]) -> None:
        with self._lock:
            found = self._held.get(folder)
            if found is None or elapsed_s() - found.since_s > _SURE_S:
                found = _There(since_s=elapsed_s(), names=frozenset())
            found = replace(found, names=found.names | {*names})
            self._held.put(found, _NAME_BYTES * len(found.names), folder)


@dataclass(slots=True, eq=False, kw_only=True)
class _Work:
    """Former snapshots of a table to be exported, newest first: those of who asked last."""

    former: Former
    stop: Stop
    wanted: Sequence[Snapshot]
    #: Whether nothing is known yet of what is there.
    is_cold: bool
    #: What tells those that were seen to: what is known of others may be forgotten meanwhile.
    seen_to: set[str] = field(default_factory=set)
    began_s: float = field(default_factory=elapsed_s)
    done: Event = field(default_factory=Event)


class Exports:
    """Makes exports of tables that are shown. `aside` surrounds a wait of up to `former_s` seconds."""

    def __init__(
        self,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        former_s: float = FORMER_S,
    ) -> None:
        self._aside = aside
        self._former_s = former_s
        self._sure = _Sure()
        self._lock = Lock()
        self._work: OrderedDict[str, _Work] = OrderedDict()
        self._pool = new_pool(1, "exports")
        self._is_running = self._is_closed = False

    def make(self, table: Table, version: int, shown: Iterable[Snapshot] | None) -> None:
        """Make sure that a table's heads are exported, and soon all that is `shown`; Unsupported.

        Without `shown`, heads alone.
        """
        metadata = table.metadata
        if metadata.format_version <= version or is_encrypted(metadata):
            return
        folder = absolute(export_folder(metadata.location, version), metadata.location)
        sure = self._sure.of(folder)
        is_cold = sure is None
        done = export_heads(
            metadata, table.files, format_version=version, there=sure or frozenset()
        )
        there = (sure or frozenset()) | done
        if done:
            self._sure.add(folder, done)
        if shown is None or not {export_of(each) for each in heads_of(metadata)} <= there:
            # Where heads cannot be written others cannot.
            return
        wanted = former_of(metadata, shown, version)
        if any(export_of(each) not in there for each in wanted):
            work = self._begun(folder, table, version, wanted, is_cold=is_cold)
            if work is not None:
                self._wait(work)

    def end(self) -> None:
        """Have all work end at the next opportunity, and begin none."""
        with self._lock:
            self._is_closed = True
            for each in self._work.values():
                each.stop.now("the server stops")

    def close(self) -> None:
        """End all work, and wait for that."""
        self.end()
        self._pool.shutdown()

    def _wait(self, work: _Work) -> None:
        """Wait for work that has not been waited for as long already."""
        left_s = work.began_s + self._former_s - elapsed_s()
        if left_s > 0 and not work.done.is_set():
            with self._aside():
                work.done.wait(left_s)

    def _begun(
        self, folder: str, table: Table, version: int, wanted: Sequence[Snapshot], *, is_cold: bool
    ) -> _Work | None:
        """Return the work on a folder, with what is wanted now; None where there is too much of it."""
        with self._lock:
            work = self._work.get(folder)
            if work is not None:
                work.wanted = wanted
                return work
            if self._is_closed or len(self._work) >= _TABLES:
                return None
            work = self._work[folder] = _new_work(table, version, wanted, is_cold=is_cold)
            if self._is_running:
                return work
            self._is_running = True
        # Threads of a pool have surroundings of their own.
        self._pool.submit(copy_context().run, self._run)
        return work

    def _run(self) -> None:
        """Do what there is to do, a snapshot of each table in turn."""
        while True:
            with self._lock:
                if not self._work:
                    self._is_running = False
                    return
                folder = next(iter(self._work))
                self._work.move_to_end(folder)
                work = self._work[folder]
            goes_on = self._stepped(folder, work)
            with self._lock:
                # Meanwhile somebody may have asked for more.
                if not goes_on or self._next(folder, work) is None:
                    del self._work[folder]
                    work.done.set()

    def _stepped(self, folder: str, work: _Work) -> bool:
        """Export the next snapshot; tell whether to go on."""
        try:
            work.stop.check()
            if work.is_cold:
                work.is_cold = False
                self._sure.add(folder, work.former.look())
            snapshot = self._next(folder, work)
            if snapshot is not None:
                sure = self._sure.of(folder) or frozenset()
                near = [each for each in work.wanted if export_of(each) in sure][:1]
                work.former.export(snapshot, near)
                work.seen_to.add(export_of(snapshot))
                self._sure.add(folder, [export_of(snapshot)])
        except BaseException as error:
            # Nobody is to be told, and nothing ends this thread but the server.
            log.warning("former snapshots in %s are not exported yet: %s", folder, error)
            return False
        return True

    def _next(self, folder: str, work: _Work) -> Snapshot | None:
        sure = (self._sure.of(folder) or frozenset()) | work.seen_to
        return next((each for each in work.wanted if export_of(each) not in sure), None)


def _new_work(table: Table, version: int, wanted: Sequence[Snapshot], *, is_cold: bool) -> _Work:
    handle, stop = copy.copy(table), Stop()
    stop.after(_WORK_S, f"it has taken {_WORK_S:g} s: who is shown the table next has it go on")

    def newest() -> TableMetadata:
        return handle.refresh().metadata

    former = Former(
        format_version=version,
        newest=newest,
        files=table.files,
        ending=replace(table.files, store=StoppingStore(table.files.store, stop)),
        metadata_location=table.state.metadata_location,
    )
    return _Work(former=former, stop=stop, wanted=wanted, is_cold=is_cold)
