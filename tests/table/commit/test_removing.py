"""Which files an operation leaves without a row."""

from __future__ import annotations

import random

import pyarrow as pa

from icetree.table.commit.removing import emptied


def test_files_are_emptied_whose_last_rows_go() -> None:
    """Of more files than could be held against one another one by one."""
    chance, size = random.Random(5), 20_000
    rows = [chance.randrange(1, 5) for _ in range(size)]
    marked = [chance.choice([None, *range(each)]) for each in rows]
    gone = {
        task: range(chance.randint(1, rows[task] - (marked[task] or 0)))
        for task in chance.sample(range(size), size // 2)
    }
    tasks = pa.table({"record_count": rows, "dv_cardinality": marked})
    whole, part = emptied(tasks, gone)
    assert whole == [
        task for task, each in gone.items() if len(each) + (marked[task] or 0) == rows[task]
    ]
    assert part == [task for task in gone if task not in {*whole}]
    assert emptied(tasks, {}) == ([], [])
