"""One step under way: what its verb is given, and the verdict on how its commit ended."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from campaigns.simulate.conflicts import may
from campaigns.simulate.finding import Finding
from campaigns.simulate.intent import Commit
from campaigns.simulate.judge import fact_of
from campaigns.simulate.line import Crashed, Interrupted
from campaigns.simulate.model import State, Version, head_of, is_gone
from campaigns.simulate.script import Step
from icetree.errors import (
    AlreadyExists,
    CommitConflict,
    CommitExhausted,
    CommitUnknown,
    InvalidInput,
    NotFound,
    Unavailable,
    Unsupported,
)
from icetree.table.commit.commit import Committed
from icetree.table.table import Table
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.world import World, Writer


#: How often maintenance looks anew before it gives up.
_LOOKS = 3


class Turn:
    """What a verb works with; everything that it draws is from `chance`."""

    def __init__(self, *, world: World, writer: Writer, step: Step, chance: random.Random) -> None:
        self.world = world
        self.writer = writer
        self.step = step
        self.chance = chance

    @property
    def is_alone(self) -> bool:
        """Whether nobody else is in the midst of a step."""
        return self.world.under_way == 1

    def table(self, name: str) -> Table:
        """Return one of the writer's handles; more often than not it sees what is newest first."""
        table = self.chance.choice(self.writer.handles[name])
        if self.chance.random() < self.world.script.settings.refreshes:
            table.refresh()
        return table

    def state(self, table: Table, branch: str | None = "main") -> State:
        """Return what a branch should hold, as of what the handle has seen."""
        return self.world.history(str(table.name)).states[head_of(table.metadata, branch)]

    def told(self, text: str) -> None:
        """Note what is about to be done."""
        self.world.told(f"{self.step.number}. writer {self.writer.number}: {text}")

    def commit(self, commit: Commit, do: Callable[[], Committed | None]) -> bool:
        """Carry out a commit and judge how it ended; return whether it did what was meant."""
        seen = f"#{head_sequence(self, commit)}"
        self.told(f"{commit.text}, on {commit.branch} as of {seen}, {commit.isolation}")
        self.writer.commit = commit
        try:
            done = do()
        except Crashed:
            raise
        except Interrupted:
            self._ended("interrupted", commit, most=1)
            raise
        except CommitUnknown as error:
            self._ended(f"unknown: {error}", commit, most=1)
            self._require(self._faults, "errors", f"{commit.text}: {error!r} out of nothing")
        except CommitExhausted as error:
            self._ended(f"exhausted: {error}", commit, most=0)
            others = len(self._versions_since(commit))
            self._require(
                others > self._retries(commit),
                "conflicts are true",
                f"{commit.text} gave up after {others} others",
            )
        except CommitConflict as error:
            self._ended(f"conflict: {error}", commit, most=0)
            true = self._lost(commit) or self._explained(commit)
            # Maintenance looks again and again: others have to be there each time.
            true = true or (commit.maintains and len(self._versions_since(commit)) > _LOOKS)
            self._require(true, "conflicts are true", f"{commit.text}: {error}")
        except Unavailable as error:
            self._ended(f"unavailable: {error}", commit, most=0)
            self._require(self._faults, "errors", f"{commit.text}: {error!r} out of nothing")
        except (InvalidInput, NotFound, AlreadyExists, Unsupported) as error:
            self._ended(f"refused: {error}", commit, most=0)
            # What an older version cannot hold is refused until somebody upgrades it.
            allowed = commit.may_refuse or commit.must_refuse or commit.base.format_version < 4
            # So is what needs a snapshot that expired meanwhile.
            allowed = allowed or self._lost(commit)
            # Maintenance looks anew, and may find that its branch was removed.
            allowed = allowed or (commit.maintains and self._branch_is_gone(commit))
            self._require(allowed, "refusals are true", f"{commit.text}: {error!r}")
        else:
            return self._done(commit, done)
        return False

    def _done(self, commit: Commit, done: Committed | None) -> bool:
        if done is not None and done.repeated:
            self._ended("known already", commit, most=0)
            keys = self.world.history(str(commit.table)).keys
            self._require(commit.key in keys, "a key once", f"{commit.key} is not known")
            return True
        self._require(not commit.must_refuse, "refusals are true", f"{commit.text} was not refused")
        idle = (commit.may_be_idle and commit.landed == 0) or commit.maintains
        self._ended("done" if not idle else "nothing to do", commit, most=1)
        self._require(
            commit.landed == 1 or idle, "lands once", f"{commit.text} is said to have landed"
        )
        return True

    def _ended(self, how: str, commit: Commit, *, most: int) -> None:
        self.world.outcomes[how.partition(":")[0]] += 1
        self.world.told(f"    {how}")
        self._require(
            commit.landed <= most or commit.maintains,
            "lands once",
            f"{commit.text} landed, its writer heard: {how}",
        )

    @property
    def _faults(self) -> bool:
        return self.writer.line.fate.struck is not None

    def _versions_since(self, commit: Commit) -> list[Version]:
        """Return the heads that were made since the writer looked."""
        history = self.world.history(str(commit.table))
        return history.versions[history.number_of(commit.base_location) + 1 :]

    def _retries(self, commit: Commit) -> int:
        """Return how often a commit is tried again, as what its writer saw says with what it sets."""
        properties = {**commit.base.properties, **commit.sets}
        return int(properties.get("commit.retry.num-retries", 1_000))

    def _explained(self, commit: Commit) -> bool:
        """Tell whether anything that was committed may be in this commit's way.

        That is what came meanwhile; and whatever took a file before that it is to remove.
        """
        history = self.world.history(str(commit.table))
        base = head_of(commit.base, commit.branch)
        there = history.states[base].files.keys()
        if any(not part.removed <= there for part in commit.parts):
            return True
        minds = any(part.intent is not Intent.APPEND for part in commit.parts)
        for version in self._versions_since(commit):
            for fact in commit.relies_on:
                if fact_of(commit.base, fact) != fact_of(version.metadata, fact):
                    return True
            if commit.parts and is_gone(commit.branch, commit.base, version.metadata):
                return True
            if not minds or commit.branch is None:
                continue
            since = history.between(base, head_of(version.metadata, commit.branch))
            if since is None:
                return True
            for state in since:
                reasons = may(
                    commit.parts,
                    state.did,
                    history.states[base],
                    serializable=commit.is_serializable,
                )
                if any(True for _ in reasons):
                    return True
        return False

    def _branch_is_gone(self, commit: Commit) -> bool:
        since = self._versions_since(commit)
        return any(is_gone(commit.branch, commit.base, each.metadata) for each in since)

    def _lost(self, commit: Commit) -> bool:
        """Tell whether snapshots have expired since the writer looked that it may need.

        Those are what it names, what it was begun on, and, to know what others did meanwhile,
        all that came after.
        """
        history = self.world.history(str(commit.table))
        if not commit.needs.isdisjoint(history.expired):
            return True
        base = head_of(commit.base, commit.branch)
        if base in history.expired:
            return True
        heads = {head_of(each.metadata, commit.branch) for each in self._versions_since(commit)}
        since = {state.id for head in heads for state in history.between(base, head) or ()}
        return not since.isdisjoint(history.expired)

    def _require(self, holds: bool, law: str, what: str) -> None:
        if not holds:
            raise Finding(law, what)


def head_sequence(turn: Turn, commit: Commit) -> int:
    """Return the sequence number of what a commit is made on."""
    return (
        turn.world.history(str(commit.table)).states[head_of(commit.base, commit.branch)].sequence
    )
