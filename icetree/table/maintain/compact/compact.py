"""Compacting data: small, oversized and worn files become files of the right size, in an order.

Rows stay what they are: their ids, ages and values. Others may delete and change rows meanwhile,
which the commit takes in (`table/commit/carry.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from icetree.errors import (
    CommitConflict,
    CommitUnknown,
    CorruptTable,
    IcetreeError,
    InvalidInput,
    NotFound,
)
from icetree.filters.filter import Filter, parse_filter
from icetree.spec.entry.entry import Entries, concat
from icetree.spec.short import short
from icetree.table.commit.counts import RowCounts
from icetree.table.commit.options import branch_of
from icetree.table.commit.removing import removal_of_tasks
from icetree.table.maintain.compact.groups import Rewriting, Runner, live_rows, side_by_side
from icetree.table.maintain.compact.options import (
    Arrangement,
    CompactOptions,
    arrangement_of,
    options_of,
)
from icetree.table.maintain.newest import has_gone_on
from icetree.table.progress import Progress
from icetree.table.scan.planning import planner
from icetree.tree.changes import Changes, Intent
from icetree.tree.compaction import file_count, grouped
from icetree.tree.plan.tasks import Plan
from icetree.visible import log_of

if TYPE_CHECKING:
    from icetree.table.table import Table
    from icetree.table.transaction import Transaction

log = log_of(__name__)

#: How often files are looked at anew whose rewriting met what could not be taken in.
_TRIES: Final = 4

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What was rewritten, or with `dry_run` would be; named as Iceberg's procedure names it."""

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    #: The snapshots that were made.
    snapshot_ids: tuple[int, ...] = ()
    dry_run: bool = False

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __add__(self, more: Rewritten) -> Rewritten:
        told = {name: value + getattr(more, name) for name, value in asdict(self).items()}
        return Rewritten(**told | {"dry_run": self.dry_run})

    def __str__(self) -> str:
        verb = "would rewrite" if self.dry_run else "rewrote"
        failed = (
            f"; {self.failed_data_files_count:,} failed" if self.failed_data_files_count else ""
        )
        return (
            f"{verb} {self.rewritten_data_files_count:,} data files "
            f"({self.rewritten_bytes_count:,} bytes) as {self.added_data_files_count:,}, without "
            f"{self.removed_delete_files_count:,} delete files{failed}"
        )


def rewrite_data_files(
    table: Table,
    *,
    where: Filter | None = None,
    strategy: str | None = None,
    order_by: str | Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str,
    dry_run: bool = False,
    progress: Progress | None = None,
    run: Runner = side_by_side,
    worth: Callable[[pa.Table], bool] | None = None,
) -> Rewritten:
    """Rewrite the data files that the options choose, of those which may hold rows that match.

    New files are written first, then committed; what is written and not committed is deleted again.
    `run` carries out groups; those that it does not begin stay as they are. So do those of which
    `worth`, told their files, says so.
    """
    table.refresh()
    if branch is None:
        raise InvalidInput("a compaction is for a branch: name one")
    branch_of(branch, table.metadata, create=False)
    predicate = AlwaysTrue() if where is None else parse_filter(where)
    done, left = Rewritten(dry_run=dry_run), None
    for attempt in range(_TRIES):
        state = table.refresh().state
        job = _Job(
            base=copy.copy(table),
            branch=branch,
            options=options_of(options, table.metadata),
            arrangement=arrangement_of(strategy, order_by, table.metadata),
            tell=progress or (lambda *_: None),
            alone=attempt > 0,
            run=run,
            worth=worth,
        )
        outcome = _Outcome()
        try:
            plan = job.planned(predicate, left)
            groups = job.groups(plan)
            if dry_run:
                return done + sum((job.would(plan, each) for each in groups), Rewritten())
            job.carry_out(plan, groups, outcome)
        except (CorruptTable, NotFound):
            if attempt == _TRIES - 1 or not has_gone_on(table, state):
                raise
            done += outcome.done
            continue
        done, left = done + outcome.done, outcome.left
        if left is None:
            break
        if attempt == _TRIES - 1:
            assert outcome.error is not None
            if not job.options.partial:
                raise outcome.error
            done += Rewritten(failed_data_files_count=len(left))
    table.refresh()
    return done


@dataclass(slots=True)
class _Outcome:
    """What came of groups: what is done, and files that met a conflict, to be tried again."""

    done: Rewritten = field(default_factory=Rewritten)
    left: pa.Array | None = None
    error: CommitConflict | None = None

    def conflict(self, files: pa.Array, error: CommitConflict) -> None:
        """Put files off."""
        self.left = files if self.left is None else pa.concat_arrays([self.left, files])
        self.error = error


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A compaction of a table as it was when it was planned."""

    base: Table
    branch: str
    options: CompactOptions
    arrangement: Arrangement
    tell: Progress
    #: Each group is a commit of its own: they met a conflict before.
    alone: bool
    run: Runner
    worth: Callable[[pa.Table], bool] | None

    def planned(self, where: BooleanExpression, only: pa.Array | None) -> Plan:
        """Return the data files that may hold rows which match, with all their deletes."""
        table = self.base
        plan = planner(
            table.files,
            table.metadata,
            table.state.head(self.branch),
            where,
            stats_columns=True,
            every_row=True,
        ).whole()
        if only is not None:
            plan = replace(plan, tasks=plan.tasks.filter(pc.is_in(plan.tasks["location"], only)))
        return plan.unfiltered()

    def groups(self, plan: Plan) -> list[_Numbers]:
        """Return the files of each group that is worth it, by their numbers in the plan."""
        tasks, options = plan.tasks, self.options
        group = grouped(tasks, self.base.metadata.shape(), options.rules, spec_id=options.spec_id)
        chosen = np.flatnonzero(group >= 0)
        chosen = chosen[np.argsort(group[chosen], kind="stable")]
        ends = np.flatnonzero(np.diff(group[chosen])) + 1
        found = np.split(chosen, ends) if len(chosen) else []
        if self.worth is not None:
            found = [each for each in found if self.worth(tasks.take(pa.array(each)))]
        what, _, direction = options.job_order.partition("-")
        if what != "none":
            size = tasks["file_size_in_bytes"].to_numpy()
            found.sort(
                key=len if what == "files" else lambda each: size[each].sum(),
                reverse=direction == "desc",
            )
        return found

    def would(self, plan: Plan, group: _Numbers) -> Rewritten:
        """Return what rewriting a group is going to come to, about."""
        tasks = plan.tasks.take(pa.array(group))
        size = pc.sum(tasks["file_size_in_bytes"]).as_py()
        rows = max(1, pc.sum(tasks["record_count"]).as_py())
        return Rewritten(
            rewritten_data_files_count=len(group),
            added_data_files_count=file_count(size * live_rows(tasks) / rows, self.options.rules),
            rewritten_bytes_count=size,
            removed_delete_files_count=tasks.num_rows - tasks["dv_location"].null_count,
        )

    def carry_out(self, plan: Plan, groups: list[_Numbers], outcome: _Outcome) -> None:
        """Rewrite groups and commit them: all at once, or some at a time; keep what comes of them."""
        most = self.options.max_commits if self.options.partial else 1
        each = 1 if self.alone else max(1, -(-len(groups) // most))
        number = count(1)

        def tell() -> None:
            self.tell("file groups rewritten", next(number), len(groups))

        for start in range(0, len(groups), each):
            with copy.copy(self.base).transaction(branch=self.branch) as transaction:
                some = groups[start : start + each]
                self._commit(transaction, plan, some, outcome, tell)

    def _commit(
        self,
        transaction: Transaction,
        plan: Plan,
        groups: list[_Numbers],
        outcome: _Outcome,
        tell: Callable[[], None],
    ) -> None:
        """Write the files of groups and add them in the place of the old ones, as one snapshot."""
        written, failed = self._written(transaction, plan, groups, tell)
        if not written:
            outcome.done += Rewritten(failed_data_files_count=failed)
            return
        old = plan.tasks.take(pa.array(np.concatenate([group for group, _ in written])))
        new = concat([entries for _, entries in written])
        snapshot = transaction.snapshot
        age = snapshot.sequence_number if snapshot and self.options.keeps_age else None
        transaction.apply(
            Changes(
                intent=Intent.REWRITE,
                added=transaction.entries_of(new, sequence_number=age),
                removed=removal_of_tasks(old),
            )
        )
        transaction.count(RowCounts())
        if old["first_row_id"].null_count:
            # Of an upgraded table: the next commit numbers them, and these have to be the numbers.
            transaction.rely_on(f"ref {self.branch}")
        try:
            made = transaction.commit().snapshot
        except CommitConflict as error:
            log.info("%s: %d files are looked at anew: %s", self.base.name, old.num_rows, error)
            outcome.conflict(old["location"].combine_chunks(), error)
            return
        except CommitUnknown:
            raise
        except IcetreeError as error:
            if not self.options.partial:
                raise
            log.warning("%s: %d files stay as they are: %s", self.base.name, old.num_rows, error)
            outcome.done += Rewritten(failed_data_files_count=failed + old.num_rows)
            return
        assert made is not None
        outcome.done += Rewritten(
            rewritten_data_files_count=old.num_rows,
            added_data_files_count=new.num_rows,
            rewritten_bytes_count=pc.sum(old["file_size_in_bytes"]).as_py(),
            failed_data_files_count=failed,
            removed_delete_files_count=int((made.summary or {}).get("removed-delete-files", 0)),
            snapshot_ids=(made.snapshot_id,),
        )

    def _written(
        self,
        transaction: Transaction,
        plan: Plan,
        groups: list[_Numbers],
        tell: Callable[[], None],
    ) -> tuple[list[tuple[_Numbers, Entries]], int]:
        """Write groups side by side; return those that are, and how many files are in others.

        Without partial progress, none may fail.
        """
        found: list[tuple[_Numbers, Entries]] = []
        failed, error = 0, None
        base = self.base
        rewriting = Rewriting(
            name=str(base.name),
            metadata=base.metadata,
            store=base.files.store,
            options=self.options,
            arrangement=self.arrangement,
        )
        plans = [replace(plan, tasks=plan.tasks.take(pa.array(group))) for group in groups]
        with closing(self.run(rewriting, plans)) as made:
            for group, result in zip(groups, made, strict=True):
                if isinstance(result, IcetreeError):
                    failed += len(group)
                    error = error or result
                    log.warning("%s: %d files stay: %s", base.name, len(group), result)
                elif result is not None:
                    found.append((group, transaction.adopt(result)))
                    tell()
                if error is not None and not self.options.partial:
                    break
            else:
                return found, failed
            # What is under way comes to its end, so that nothing of it is left behind.
            for result in made:
                if result is not None and not isinstance(result, IcetreeError):
                    transaction.adopt(result)
        assert error is not None
        raise error
