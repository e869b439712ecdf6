"""How many files a condition on one column or two leaves to read, as rows lie in files.

The same rows as they came, sorted by one column, and in z-order of both. Drawn with `--svg FILE`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import icetree
from benchmarks.harness import Report, Timing
from icetree.table.lake import Lake
from icetree.table.table import Table

ROWS: Final = 400_000
FILES: Final = 200
#: What part of a column's range a condition is about.
PART: Final = 0.05
ASKED: Final = 40

#: How rows lie, and the options of the rewrite that has them so.
ORDERS: Final[dict[str, dict[str, Any]]] = {
    "as they came": {},
    "sorted by x": {"strategy": "sort", "order_by": "x"},
    "z-order of x and y": {"strategy": "sort", "order_by": "zorder(x, y)"},
}


def conditions() -> dict[str, list[str]]:
    """Return conditions of each kind, drawn by one seed."""
    choose = np.random.default_rng(5)
    starts = choose.random((ASKED, 2)) * (1 - PART)

    def between(column: str, start: float) -> str:
        return f"{column} >= {start:.6f} and {column} < {start + PART:.6f}"

    return {
        "x": [between("x", x) for x, _ in starts],
        "y": [between("y", y) for _, y in starts],
        "x and y": [f"{between('x', x)} and {between('y', y)}" for x, y in starts],
    }


def measure(report: Report, folder: Path, *, rows: int = ROWS) -> dict[str, dict[str, float]]:
    """Return, by the order of rows and the kind of condition, how many files of a hundred are read."""
    lake = icetree.connect(f"sqlite:///{folder}/t.db", warehouse=str(folder / "t"))
    lake.create_namespace("db")
    found: dict[str, dict[str, float]] = {}
    for number, (order, how) in enumerate(ORDERS.items()):
        table = _table(lake, f"db.t{number}", rows, how)
        files = table.scan().plan().tasks.num_rows
        found[order] = {}
        for kind, asked in conditions().items():
            started, cpu = time.perf_counter(), time.process_time()
            read = [table.scan(each).plan().tasks.num_rows for each in asked]
            took = Timing(
                cpu_ms=(time.process_time() - cpu) * 1000 / ASKED,
                wall_ms=(time.perf_counter() - started) * 1000 / ASKED,
            )
            share = 100 * float(np.mean(read)) / files
            found[order][kind] = share
            read_each = round(float(np.mean(read)))
            report.add(f"{order}: condition on {kind}", took, files=read_each)
    sorted_, z = found["sorted by x"], found["z-order of x and y"]
    report.at_most("files of a hundred for y alone, in z-order", z["y"], 50)
    report.at_most(
        "files for x and y, z-order over sorted by x", z["x and y"] / sorted_["x and y"], 0.6
    )
    return found


def _table(lake: Lake, name: str, rows: int, how: dict[str, Any]) -> Table:
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("note", pa.string())])
    table = lake.create_table(name, schema)
    draw = np.random.default_rng(3)
    x, y = draw.random(rows), draw.random(rows)
    notes = pa.array(draw.integers(0, 1 << 40, rows)).cast(pa.string())
    data = pa.table({"x": x, "y": y, "note": notes})
    each = rows // FILES
    with table.transaction() as transaction:
        for start in range(0, rows, each):
            transaction.append(data.slice(start, each))
        transaction.commit()
    if how:
        size = table.scan().plan().tasks["file_size_in_bytes"][0].as_py()
        options = {"rewrite-all": True, "target-file-size-bytes": size}
        table.maintenance.rewrite_data_files(**how, options=options)
    return table


def draw(found: dict[str, dict[str, float]], target: Path) -> None:
    """Draw the shares as bars."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "icetree"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    kinds = list(next(iter(found.values())))
    width = 0.8 / len(found)
    for number, (order, shares) in enumerate(found.items()):
        places = np.arange(len(kinds)) + (number - (len(found) - 1) / 2) * width
        bars = axes.bar(places, [shares[kind] for kind in kinds], width * 0.92, label=order)
        axes.bar_label(bars, fmt="%.0f", padding=2, fontsize=9)
    axes.set_xticks(np.arange(len(kinds)), [f"condition on {kind}" for kind in kinds])
    axes.set_ylabel("files read, of a hundred")
    axes.set_ylim(0, 112)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=len(found), loc="upper center", bbox_to_anchor=(0.5, 1.18))
    figure.savefig(target, metadata={"Date": None})


def main() -> int:
    """Measure, and draw where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files_read", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write JSON lines")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw it")
    given = parser.parse_args()
    report = Report("files_read")
    with tempfile.TemporaryDirectory(prefix="icetree-bench-") as folder:
        found = measure(report, Path(folder), rows=ROWS // 10 if given.quick else ROWS)
    print(f"\n{report.text()}")
    if given.json is not None:
        given.json.write_text("".join(f"{line}\n" for line in report.lines()))
    if given.svg is not None:
        draw(found, given.svg)
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
