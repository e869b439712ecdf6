"""What the simulation comes to, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.sim import MIB, Store, all_trees, commits, formats
from docs.make.tables import table

_WRITERS: Final = (1, 4, 16, 64, 256)
_SECONDS: Final = 60


def writers() -> str:
    """Return what many writers come to, by way of committing."""
    rows = []
    for name, kind in formats(1000).items():
        for number in _WRITERS:
            rate = commits(kind, number, seconds=_SECONDS, store=Store())
            told = (rate.per_s, rate.median_ms / 1000, rate.p99_ms / 1000, rate.requests)
            rows.append([name, number, *(f"{each:,.1f}" for each in told)])
    head = [
        "",
        "writers",
        "commits a second",
        "seconds, median",
        "seconds, 1 in 100",
        "requests each",
    ]
    return table(head, rows)


def trees() -> str:
    """Return what trees of all sizes come to."""
    return table(
        [
            "files",
            "entries of a leaf",
            "leaves",
            "root, MiB",
            "commit, ms",
            "plan, ms",
            "plan of v3, s",
        ],
        (
            [
                f"{tree.files:,}",
                f"{tree.leaf_entries:,}",
                f"{tree.leaves:,}",
                f"{tree.root_bytes / MIB:.2f}",
                f"{commit:.0f}",
                f"{plan:.0f}",
                f"{old / 1000:,.1f}",
            ]
            for tree, commit, plan, old in all_trees()
        ),
    )


PARTS: Final[dict[str, Callable[[], str]]] = {
    "simulated writers": writers,
    "simulated trees": trees,
}
