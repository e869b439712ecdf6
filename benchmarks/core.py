"""The core: rewriting a root, planning over leaves, removing one file.

No disk and no catalog: entries in memory, manifests as bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks import data, table
from benchmarks.data import Numbers
from benchmarks.harness import Report, main, rss_rise_mb, time_each
from benchmarks.table import Need, Recorder, Table
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.tree.draft import Draft
from icetree.tree.plan.plan import plan

Runs: TypeAlias = dict[str, Callable[[], object]]

FILES_IN_A_LEAF = 100_000
#: How many files the selective filter matches.
MATCHES = 100
COLUMNS = 10
#: A commit may cost so many times what its root's bytes do.
_REWRITE = 3


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    _rewrite_root(report, quick)
    _remove_one_file(report, quick)
    _plan(report, quick)


def _rewrite_root(report: Report, quick: bool) -> None:
    """Append one file to a root: read the root, grow it, write it."""
    seconds = 0.7 if quick else 2.0
    for columns in (10, 50):
        shape = data.shape_of(columns)
        for count in (1, 100, 1000, 5000):
            old = table.in_root(count, shape)
            head = old.decode()
            one = table.append(data.new_files(np.array([count]), shape, seed=count))
            append = partial(old.draft, head, one)
            made = append().root_bytes
            runs: Runs = {
                "decode": old.decode,
                "append and encode": append,
                "write its columns": table.raw_writing(made),
            }
            took = time_each(runs, seconds=seconds)
            for step, timing in took.items():
                case = f"root of {count} entries x {columns} columns, {step}"
                system = "pyarrow" if step == "write its columns" else "icetree"
                report.add(case, timing, system=system, bytes=len(made), files=count + 1)
            if (count, columns) == (1000, 10):
                # Not so many milliseconds: a machine that others use makes them two.
                ratio = took["append and encode"].cpu_ms / took["write its columns"].cpu_ms
                case = "append and encode against bare writing, 1000 entries x 10 columns"
                report.at_most(case, ratio, _REWRITE)


def _remove_one_file(report: Report, quick: bool) -> None:
    """Remove a file that a leaf tracks, from tables of different sizes."""
    shape = data.shape_of(COLUMNS)
    sizes = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    tables = {size: table.in_appended_leaves(size, shape) for size in sizes}
    for hint in (True, False):
        runs = {str(size): _removal(each, hint=hint) for size, each in tables.items()}
        took = time_each(runs, seconds=1.5 if quick else 4.0)
        how = "told where it is" if hint else "by name alone"
        for size, timing in took.items():
            draft = runs[size]()
            report.add(
                f"remove one file of {int(size):,}, {how}",
                timing,
                bytes=len(draft.root_bytes) + sum(len(file.content) for file in draft.files),
                files=int(size),
            )
        if hint:
            ratio = took[str(sizes[-1])].cpu_ms / took[str(sizes[0])].cpu_ms
            report.at_most("removal from the largest table against the smallest", ratio, 1.5)


def _removal(old: Table, *, hint: bool) -> Callable[[], Draft]:
    changes = table.removal_of(old, row=1234, hint=hint)
    return lambda: old.draft(old.decode(), changes)


def _plan(report: Report, quick: bool) -> None:
    """Plan a selective filter, beside the bare cost of reading what the plan needs."""
    shape = data.shape_of(COLUMNS)
    # Fewer leaves, not smaller ones: the figures to reach are about what one leaf costs.
    leaves = 2 if quick else 10
    count = leaves * FILES_IN_A_LEAF
    shuffled = np.split(np.random.default_rng(7).permutation(count), leaves)
    orders: dict[str, list[Numbers]] = {
        "sorted": np.split(np.arange(count), leaves),
        "sorted within each leaf": [np.sort(part) for part in shuffled],
        "unsorted": shuffled,
    }
    for order, parts in orders.items():
        _plan_order(report, order, table.in_leaves_of(parts, shape), count, quick)


def _plan_order(report: Report, order: str, held: Table, count: int, quick: bool) -> None:
    root = held.decode()
    # In the middle of a leaf and of a row group: at a border twice as much would be read.
    first = count // 2 + FILES_IN_A_LEAF // 2
    predicate = data.slots(first, first + MATCHES)

    def run() -> object:
        return plan(root, held.reader, held.shape, predicate)

    recorder = Recorder(reader=held.reader)
    found = plan(root, recorder, held.shape, predicate)
    if found.tasks.num_rows != MATCHES:
        raise AssertionError(f"{found.tasks.num_rows} files planned, {MATCHES} match")
    every = list(range(-(-FILES_IN_A_LEAF // LEAF_ROW_GROUP)))
    bounds = [replace(each, columns=_bounds(each), groups=every) for each in recorder.needs]
    runs: Runs = {
        f"plan {count:,} files, {order}": run,
        f"read what that plan needs, {order}": table.raw_reading(held, recorder.needs),
        f"read all bounds of the filter, {order}": table.raw_reading(held, bounds),
    }
    took = time_each(runs, seconds=2.0 if quick else 8.0)
    for case, each in runs.items():
        system = "icetree" if each is run else "pyarrow"
        report.add(case, took[case], system=system, files=count, rss_mb=rss_rise_mb(each))
    planned, raw, _ = took.values()
    if order != "unsorted":
        report.at_most(f"plan against bare reading, {order}", planned.cpu_ms / raw.cpu_ms, 4)


def _bounds(need: Need) -> frozenset[str]:
    return frozenset(name for name in need.columns if name.endswith((":lower", ":upper")))


if __name__ == "__main__":
    # One thread, so that CPU time tells of work and not of waiting threads.
    pa.set_cpu_count(1)
    sys.exit(main("core", __doc__, measure))
