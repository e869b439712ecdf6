"""The explorer on large tables: how soon a browser shows the film, the scale and what a filter leaves.

The server is a process of its own, and has not seen the table before: what is measured is what
somebody waits for who opens the page of one. No data file is there: views read metadata alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from benchmarks import plan_tables
from benchmarks.chromium import Chromium, chromium
from benchmarks.harness import Report, Timing, cpu_ms, main

#: Files of the tables; a quick run has the first two.
SIZES: Final = (3, 100_000, 1_000_000, 3_000_000)
#: View -> address and what is there when it is shown.
VIEWS: Final = {
    "film": ("", ".leaf, .cell"),
    "to scale": ("&view=scale", ".bar"),
    "filter": ("&view=scale&by=id&where=id+%3C+5000", "[data-way=files]"),
}
#: Within what tables are to be shown, up to so many files. A filter's plan reads leaves.
MANY: Final = 1_000_000
REACH_MS: Final = {"film": 1_000, "to scale": 1_000, "filter": 2_000}


def measure(report: Report, quick: bool) -> None:
    """Measure each view of each table, in one browser."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        for size in SIZES[:2] if quick else SIZES:
            report.tell(f"making a table of {size:,} files")
            plan_tables.build(folder, size)
            for view, (address, shown) in VIEWS.items():
                took = min(
                    (_shown(folder, size, browser, address, shown) for _ in range(3)),
                    key=lambda each: each.wall_ms,
                )
                report.add(f"{view}, {size:,} files", took, files=size)
                if size <= MANY:
                    report.at_most(f"{view}, {size:,} files, ms", took.wall_ms, REACH_MS[view])


def _shown(folder: Path, size: int, browser: Chromium, address: str, shown: str) -> Timing:
    """Tell how long it takes from opening the page until something is there; CPU is the server's."""
    with _running(folder, f"db.t{size}") as (uri, pid):
        # What Python loads with the first question has nothing to do with a table's size.
        base = uri.partition("#")[0]
        for view in ("film", "scale", "pruned?where=id+%3C+5"):
            with urlopen(f"{base}/tables/db/t{SIZES[0]}/{view}") as answer:
                answer.read()
        busy, begun = cpu_ms(pid), time.perf_counter()
        page = browser.page(f"{uri}{address}", still=True)
        page.until(f"document.querySelector({shown!r})")
        took = (time.perf_counter() - begun) * 1000
        busy = cpu_ms(pid) - busy
        page.close()
        return Timing(cpu_ms=busy, wall_ms=took)


@contextmanager
def _running(folder: Path, table: str) -> Iterator[tuple[str, int]]:
    """Explore a table; return where, and in which process."""
    command = [
        sys.executable, "-m", "icetree",
        "--catalog", f"sqlite:///{folder}/lake.db", "--warehouse", str(folder / "lake"),
        "explore", table,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                yield found[0], process.pid
                break
    finally:
        # It only reads: there is nothing to finish.
        process.kill()
        process.communicate(timeout=30)


if __name__ == "__main__":
    sys.exit(main("explore", __doc__, measure))
