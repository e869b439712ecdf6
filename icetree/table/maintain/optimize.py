"""One verb that looks at a table, and does what is worth it: the others, each for a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icetree.errors import InvalidInput
from icetree.spec.short import short
from icetree.surroundings import elapsed_s
from icetree.table.arguments import whole
from icetree.table.maintain.compact.compact import Rewritten, rewrite_data_files
from icetree.table.maintain.compact.groups import side_by_side
from icetree.table.maintain.compact.options import MAX_GROUP_SIZE, options_of
from icetree.table.maintain.deletes import rewrite_position_delete_files
from icetree.table.maintain.expire import expire_snapshots
from icetree.table.maintain.health import Health, health_of, overlap_of, sort_column, total
from icetree.table.maintain.manifests import rewrite_manifests
from icetree.table.maintain.newest import on_newest
from icetree.table.maintain.orphans.orphans import remove_orphan_files
from icetree.table.progress import Progress
from icetree.tree.plan.tasks import Plan
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.table import Table

#: Where ranges of so many files have a part in common, sorting them anew is worth reading all.
_MANY: Final = 4.0
#: A compaction is done in so many commits, so that what is done stays done.
_COMMITS: Final = 10
#: With seconds to keep to, a group makes so many files, so that there is a moment to stop at.
_FILES_A_GROUP: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One verb: why it is worth it, and what came of it."""

    verb: str
    reason: str
    #: What is read and written for it, about.
    cost_bytes: int
    #: Why it was not done, or not all of it; None where it was, or with `dry_run` would be.
    left: str | None = None
    #: What the verb told.
    result: dict[str, Any] | None = None

    __repr__ = short

    def __str__(self) -> str:
        return visible(f"{self.verb}: {self.reason}{f' (left: {self.left})' if self.left else ''}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimized:
    """How the table was, and what was done for it, or with `dry_run` would be."""

    health: Health
    steps: tuple[Step, ...]
    dry_run: bool

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        head = "would do" if self.dry_run else "did"
        if not self.steps:
            return "nothing is worth doing"
        return "\n".join([f"{head}:", *(f"  {each}" for each in self.steps)])


class _Budget:
    """Seconds and bytes that may be spent; None is as many as it takes."""

    def __init__(self, seconds: float | None, size_bytes: int | None) -> None:
        self._until = None if seconds is None else elapsed_s() + seconds
        self.bytes = size_bytes

    @property
    def has_end(self) -> bool:
        """Whether there is a time to stop at."""
        return self._until is not None

    def allows(self, cost_bytes: int) -> str | None:
        """Return why something of this cost may not be begun; None where it may."""
        if self._until is not None and elapsed_s() >= self._until:
            return "the time is up"
        if self.bytes is not None and cost_bytes > self.bytes:
            return f"{cost_bytes:,} bytes are more than the {self.bytes:,} that are left"
        return None

    def spend(self, cost_bytes: int) -> None:
        """Take note of what is done."""
        if self.bytes is not None:
            self.bytes = max(0, self.bytes - cost_bytes)


def optimize(
    table: Table,
    *,
    branch: str,
    max_seconds: float | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Optimized:
    """Do what is worth it for a branch, and for the table's history and files, within a budget.

    First data files, then deletes, leaves, snapshots and orphans: each leaves something for the
    next. Nothing is begun once the seconds are over, or that would read and write more than is left
    of the bytes; a compaction is begun group by group, which the budget bounds.
    """
    if max_seconds is not None and (isinstance(max_seconds, bool) or not max_seconds > 0):
        raise InvalidInput(f"max_seconds={max_seconds!r}: give seconds above 0")
    if max_bytes is not None:
        whole(max_bytes, what="max_bytes", least=1)
    budget = _Budget(max_seconds, max_bytes)
    health = on_newest(table, lambda: health_of(table, branch))
    work = _Work(table, branch, health, budget, dry_run, progress or (lambda *_: None))
    steps = [
        *work.data_files(),
        work.deletes(),
        work.manifests(),
        work.snapshots(),
        work.orphans(),
    ]
    done = tuple(each for each in steps if each is not None)
    return Optimized(health=health, steps=done, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class _Work:
    """What each step needs; a step is None where there is nothing to do."""

    table: Table
    branch: str
    health: Health
    budget: _Budget
    dry_run: bool
    tell: Progress

    def data_files(self) -> Iterator[Step | None]:
        """Rewrite small, oversized and worn files; all of a partition where their order is lost.

        A partition is sorted whole or not at all: a part of it would be sorted again the next time.
        """
        health = self.health
        if health.sort_overlap is not None:
            step = self._compact(
                lambda due: (
                    f"in partitions of {due.rewritten_data_files_count:,} of {health.data_files:,} "
                    f"data files, {_MANY:.0f} files or more share a part of each one's range of "
                    f"{health.sort_column}: sort all in them anew"
                ),
                in_parts=False,
                options={"rewrite-all": True},
                worth=self._is_mixed,
            )
            if step is not None:
                yield step
                if step.left is None or step.result is not None:
                    return
        yield self._compact(
            lambda due: (
                f"{due.rewritten_data_files_count:,} of {health.data_files:,} data files are "
                f"small, oversized or worn: about {due.added_data_files_count:,} would do"
            ),
            in_parts=True,
            options={},
        )

    def _is_mixed(self, files: pa.Table) -> bool:
        """Tell whether files of a partition have lost their order: those of full size, as for health."""
        metadata = self.table.metadata
        column = sort_column(metadata)
        assert column is not None
        return (overlap_of(files, column, metadata) or 0) >= _MANY

    def _compact(
        self,
        reason: Callable[[Rewritten], str],
        *,
        in_parts: bool,
        options: dict[str, Any],
        worth: Callable[[pa.Table], bool] | None = None,
    ) -> Step | None:
        """Return the step of a compaction; `in_parts` where groups may be as small as the budget is."""
        how: dict[str, Any] = {"branch": self.branch, "options": options, "worth": worth}
        how["strategy"] = "binpack" if self.health.sort_column is None else "sort"
        due = rewrite_data_files(self.table, **how, dry_run=True)
        if not due.rewritten_data_files_count:
            return None
        cost = _cost(due.rewritten_bytes_count)
        if in_parts:
            options |= self._group_size()
        least = self._least(how)
        options |= {"partial-progress.enabled": True, "partial-progress.max-commits": _COMMITS}

        def begins(group: Plan) -> bool:
            size = _cost(total(group.tasks["file_size_in_bytes"]))
            if self.budget.allows(size) is not None:
                return False
            self.budget.spend(size)
            return True

        def carry_out() -> tuple[dict[str, Any], str | None]:
            done = rewrite_data_files(
                self.table,
                **how,
                progress=self.tell,
                run=partial(side_by_side, begins=begins),
            )
            return done.as_dict(), self._rest(due, done)

        # A part of it may be begun, whatever the whole costs.
        return self._step(
            "rewrite_data_files",
            reason(due),
            cost,
            carry_out,
            least=cost if least is None else least,
            spends=True,
        )

    def _least(self, how: dict[str, Any]) -> int | None:
        """Return what the cheapest group costs; None where none is left as small as groups may be."""
        sizes: list[int] = []

        def note(files: pa.Table) -> bool:
            if how["worth"] is None or how["worth"](files):
                sizes.append(_cost(total(files["file_size_in_bytes"])))
            return False

        rewrite_data_files(self.table, **{**how, "worth": note}, dry_run=True)
        return min(sizes, default=None)

    def _group_size(self) -> dict[str, Any]:
        """Return the option that bounds groups to what the budget allows, where it has bounds."""
        usual = options_of(None, self.table.metadata).rules
        sizes = [usual.max_group_bytes]
        if self.budget.has_end:
            sizes.append(_FILES_A_GROUP * usual.target_bytes)
        if self.budget.bytes is not None:
            sizes.append(max(1, self.budget.bytes // _cost(1)))
        return {MAX_GROUP_SIZE: min(sizes)}

    def _rest(self, due: Rewritten, done: Rewritten) -> str | None:
        """Return what is left of a compaction, and why."""
        files = due.rewritten_data_files_count - done.rewritten_data_files_count
        files -= done.failed_data_files_count
        if files <= 0:
            return None
        size = due.rewritten_bytes_count - done.rewritten_bytes_count
        why = self.budget.allows(_cost(max(0, size))) or "too few for a group of their own"
        return f"{files:,} of {due.rewritten_data_files_count:,} data files: {why}"

    def deletes(self) -> Step | None:
        """Bring deletes together."""
        how: dict[str, Any] = {
            "where": None,
            "rewrite_equality_deletes": False,
            "branch": self.branch,
        }
        due = rewrite_position_delete_files(self.table, **how, dry_run=True, progress=None)
        if not due.rewritten_delete_files_count:
            return None
        return self._step(
            "rewrite_position_delete_files",
            f"{due.rewritten_delete_files_count:,} delete files become {due.added_delete_files_count:,}",
            due.rewritten_bytes_count + due.added_bytes_count,
            lambda: (
                rewrite_position_delete_files(
                    self.table, **how, dry_run=False, progress=self.tell
                ).as_dict(),
                None,
            ),
        )

    def manifests(self) -> Step | None:
        """Cluster leaves, and apply their manifest DVs."""
        due = rewrite_manifests(
            self.table, by=None, branch=self.branch, dry_run=True, progress=None
        )
        if not due.rewritten_manifests_count:
            return None
        return self._step(
            "rewrite_manifests",
            f"{due.rewritten_manifests_count:,} of {self.health.leaves:,} leaves are small, worn, "
            f"old or overlap: {due.added_manifests_count:,} would do",
            0,
            lambda: (
                rewrite_manifests(
                    self.table, by=None, branch=self.branch, dry_run=False, progress=self.tell
                ).as_dict(),
                None,
            ),
        )

    def snapshots(self) -> Step | None:
        """Expire snapshots by the table's own rules."""
        return self._files_go(
            "expire_snapshots",
            lambda: expire_snapshots(self.table, dry_run=True),
            lambda due: (
                f"{len(due.snapshot_ids):,} of {self.health.snapshots:,} snapshots have had their time"
                if due.snapshot_ids or due.refs
                else None
            ),
            lambda: expire_snapshots(self.table, progress=self.tell),
        )

    def orphans(self) -> Step | None:
        """Delete what nothing names, older than the guard."""
        return self._files_go(
            "remove_orphan_files",
            lambda: remove_orphan_files(self.table, dry_run=True),
            lambda due: (
                f"{len(due.orphan_file_location):,} files are named by nothing"
                if due.orphan_file_location
                else None
            ),
            lambda: remove_orphan_files(self.table, progress=self.tell),
        )

    def _files_go(
        self,
        verb: str,
        look: Callable[[], Any],
        reason: Callable[[Any], str | None],
        do: Callable[[], Any],
    ) -> Step | None:
        """Return the step of a verb that deletes files, which a table may not allow."""
        try:
            due = reason(look())
        except InvalidInput as error:
            return Step(verb=verb, reason="not looked at", cost_bytes=0, left=str(error))
        if due is None:
            return None
        return self._step(verb, due, 0, lambda: (do().as_dict(), None))

    def _step(
        self,
        verb: str,
        reason: str,
        cost_bytes: int,
        do: Callable[[], tuple[dict[str, Any], str | None]],
        *,
        least: int | None = None,
        spends: bool = False,
    ) -> Step:
        """Return a step, done if the budget allows its beginning; `spends` by itself, or at once."""
        told = Step(verb=verb, reason=reason, cost_bytes=cost_bytes)
        left = self.budget.allows(cost_bytes if least is None else least)
        if left is not None:
            return replace(told, left=left)
        if self.dry_run:
            over = self.budget.allows(cost_bytes)
            self.budget.spend(cost_bytes)
            return replace(told, left=over and f"a part: {over}")
        result, left = do()
        if not spends:
            self.budget.spend(cost_bytes)
        return replace(told, left=left, result=result)


def _cost(size_bytes: int) -> int:
    """Return what is read and written of files of this size, about."""
    return 2 * size_bytes
