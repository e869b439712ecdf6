"""Figures of what is measured: bytes of metadata that small commits write, beside PyIceberg."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

import icetree

_COMMITS: Final = 300
_ROWS: Final = pa.table({"id": list(range(10)), "kind": ["view"] * 10, "n": [1.5] * 10})


def figures() -> dict[str, str]:
    """Return the figures as SVG, by name."""
    with TemporaryDirectory() as folder:
        theirs = _grown(Path(folder, "v2"), _pyiceberg(Path(folder)))
        ours = _grown(Path(folder, "v4"), _icetree(Path(folder)))
    return {"bytes-per-commit": _plot(theirs, ours)}


def _grown(place: Path, append: Callable[[], object]) -> list[int]:
    """Return the bytes of metadata that each of many commits writes."""
    sizes, before = [], 0
    for _ in range(_COMMITS):
        append()
        now = sum(path.stat().st_size for path in place.rglob("metadata/*"))
        sizes.append(now - before)
        before = now
    return sizes


def _pyiceberg(folder: Path) -> Callable[[], object]:
    from pyiceberg.catalog.sql import SqlCatalog

    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    catalog = SqlCatalog("v2", uri=f"sqlite:///{folder}/v2.db", warehouse=f"file://{folder}/v2")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _ROWS.schema)
    return lambda: table.append(_ROWS)


def _icetree(folder: Path) -> Callable[[], object]:
    lake = icetree.connect(f"sqlite:///{folder}/v4.db", warehouse=str(folder / "v4"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", _ROWS.schema)
    return lambda: table.append(_ROWS)


def _plot(theirs: list[int], ours: list[int]) -> str:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "icetree", "svg.fonttype": "none", "path.simplify": True}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    # Every third commit is enough to see.
    for sizes, name, colour in (
        (theirs, "v2, PyIceberg", "#c2410c"),
        (ours, "V4, icetree", "#0f766e"),
    ):
        axes.plot(
            range(1, len(sizes) + 1, 3), [n / 1024 for n in sizes[::3]], label=name, color=colour
        )
    axes.set(xlabel="commit", ylabel="KB of metadata it writes", ylim=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    sink = io.StringIO()
    figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()
