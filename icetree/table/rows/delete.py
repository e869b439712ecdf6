"""DELETE: rows that a condition is true of go; files of nothing else go without being read."""

from __future__ import annotations

import numpy as np

from icetree.table.rows.change import Gone, carry_out
from icetree.table.rows.condition import Condition
from icetree.table.rows.target import Target, positions_of


def delete(target: Target, condition: Condition, whole: list[int], part: list[int]) -> int:
    """Add to the transaction that rows of some files go, and all of others.

    Return how many of the former do.
    """
    gone = found(target, condition, part)
    carry_out(target, gone, whole=whole)
    return gone.count


def split(target: Target, condition: Condition) -> tuple[list[int], list[int]]:
    """Return the files of which every row matches, and those that only their rows can tell of."""
    if condition.test is not None:
        return [], list(range(target.plan.tasks.num_rows))
    sure = target.plan.match_whole().to_numpy()
    return np.flatnonzero(sure).tolist(), np.flatnonzero(~sure).tolist()


def found(target: Target, condition: Condition, tasks: list[int]) -> Gone:
    """Return where the rows of these files stand that the condition is true of."""
    gone = Gone()
    test = condition.test
    names = frozenset() if test is None else frozenset(name for _, name in test.needs)
    for task, batch in target.read(names, tasks=tasks):
        rows = positions_of(batch)
        if test is not None:
            columns = {("target", name): batch.column(name) for name in names}
            holds = test.holds(columns, batch.num_rows)
            rows = rows[holds.to_numpy(zero_copy_only=False)]
        gone.add(task, rows)
    return gone
