"""Take the pictures of every face anew: `make screens`, or some of them by name.

    python -m docs.make.screens                       # all of them, in a few minutes
    python -m docs.make.screens terminal notebook

What is seen is real: the explorer and the site in Chromium, commands in a terminal of 80 columns, the
tutorial's cells with what their last value shows of itself. Ids and times differ from run to run.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal
from urllib.parse import urlencode

import pyarrow as pa

import icetree
from benchmarks import plan_tables
from benchmarks.chromium import Chromium, chromium
from docs.make.notebook import shown as notebook_shown
from docs.make.png import small
from docs.make.terminal import shown, typed
from icetree.explore.views import look
from icetree.serve.access.onlookers import Onlookers
from icetree.serve.http.run import Address, serving
from icetree.serve.routes import EXPLORER
from icetree.serve.server import Server
from icetree.table.lake import Lake
from icetree.table.table import Table

FIGURES: Final = Path(__file__).parents[1] / "figures"
ROOT: Final = Path(__file__).parents[2]
#: No picture is larger than a page can do with.
MOST_BYTES: Final = 150_000
MILLION: Final = 1_000_000
_EVENTS: Final = pa.schema(
    [("id", pa.int64()), ("country", pa.string()), ("total", pa.float64()), ("at", pa.timestamp("us"))]
)  # fmt: skip
_START: Final = datetime(2026, 3, 1)  # noqa: DTZ001 (the column has no zone)

Scheme = Literal["light", "dark"]


def main(names: list[str]) -> None:
    """Take all pictures, or those of some faces."""
    unknown = sorted(set(names) - FACES.keys())
    if unknown:
        raise SystemExit(f"there is no face {unknown[0]}; there are: {', '.join(FACES)}")
    with TemporaryDirectory() as folder, chromium() as browser:
        for name in names or FACES:
            FACES[name](browser, Path(folder))


# --- the explorer ---------------------------------------------------------------------------


def explorer(browser: Chromium, folder: Path) -> None:
    """Three scales of tables, in the light and in the dark."""
    with icetree.connect(f"sqlite:///{folder}/few.db", warehouse=f"{folder}/few") as lake:
        lake.create_namespace("shop")
        little, table = few(lake), grown(lake)
        with _served(lake) as uri:
            for scheme, view in (("dark", {}), ("light", {"view": "scale"})):
                _explored(browser, uri, f"explorer-small-{scheme}", little, view)
            flush = _flush_of(table)
            _explored(browser, uri, "explorer-film-dark", table, {"at": str(flush)})
            _explored(browser, uri, "explorer-scale-dark", table, {"view": "scale"})
            _explored(
                browser, uri, "explorer-filter-light", table,
                {"where": "id < 300 and country = 'DE'"}, until=".skipped",
            )  # fmt: skip
    (folder / "many").mkdir()
    plan_tables.build(folder / "many", MILLION)
    with plan_tables.open_lake(folder / "many") as lake, _served(lake) as uri:
        many = lake.table(f"db.t{MILLION}")
        _explored(browser, uri, "explorer-million-dark", many, {})
        by = {"view": "scale", "by": f"column_{plan_tables.UNSORTED}"}
        _explored(browser, uri, "explorer-million-light", many, by)


def few(lake: Lake) -> Table:
    """Make a table of three files, all in its root."""
    table = lake.create_table("shop.few", _EVENTS, partition_by=["day(at)"])
    for at in range(3):
        table.append(_rows(at * 20, at, 20, days=1))
    return table


def grown(lake: Lake, *, appends: int = 34) -> Table:
    """Make a table that has had a life: flushes, deletes of rows and of files, a branch."""
    table = lake.create_table(
        "shop.events",
        _EVENTS,
        partition_by=["day(at)"],
        properties={"write.root.max-data-entries": "12", "write.flush.affinity-min-entries": "4"},
    )
    for at in range(appends):
        table.append(_rows(at * 60, at, 60))
        if at == appends // 2:
            table.delete("id >= 100 and id < 130")
            table.delete("at >= '2026-03-03T00:00:00' and at < '2026-03-05T00:00:00'")
            table.create_branch("staging")
            table.append(_rows(9_000, 21, 60), branch="staging")
    table.create_tag("closed", at=list(table.history())[3].snapshot_id)
    return table


def _rows(first: int, day: int, count: int, *, days: int = 3) -> pa.Table:
    ids = list(range(first, first + count))
    at = [_START + timedelta(days=day, hours=24 * days * n / count) for n in range(count)]
    countries = [("DE", "FR", "US")[id % 3] for id in ids]
    return pa.table([ids, countries, [id / 4 for id in ids], at], schema=_EVENTS)


def _flush_of(table: Table) -> int:
    """Return the last snapshot in which the root was flushed, and something came after it."""
    frames = look(table, "film", {})
    return int(
        next(each["snapshot_id"] for each in reversed(frames) if "flushed" in str(each["did"]))
    )


@contextmanager
def _served(lake: Lake) -> Iterator[str]:
    """Show a lake's tables as `icetree explore` does, from a thread."""
    on = Address(port=0).listen()
    inner = serving(Server(lake, Onlookers(), routes=EXPLORER))
    thread = threading.Thread(target=inner.run, kwargs={"sockets": [on]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{on.getsockname()[1]}/ui"
    finally:
        inner.should_exit = True
        thread.join()


def _explored(
    browser: Chromium,
    uri: str,
    name: str,
    table: Table,
    view: Mapping[str, str],
    *,
    until: str = ".cell, .leaf, .bar",
) -> None:
    scheme: Scheme = "dark" if name.endswith("dark") else "light"
    address = f"{uri}#{urlencode({'table': str(table.name), **view})}"
    page = browser.page(address, width=1120, height=760, scheme=scheme, still=True)
    page.until(f"document.querySelector({until!r})")
    # What commits cost is asked last; of a table as large as this it may be told to be too much.
    page.until("document.querySelector('.note').textContent")
    _kept(name, page.picture)
    page.close()


# --- the terminal, the notebook, the site ----------------------------------------------------


def terminal(browser: Chromium, folder: Path) -> None:
    """Commands as they are typed, on a terminal of 80 columns."""
    place = folder / "terminal"
    place.mkdir()
    with icetree.connect(f"sqlite:///{place}/shop.db", warehouse=f"{place}/lake") as lake:
        lake.create_namespace("shop")
        grown(lake, appends=11)
    there = {"ICETREE_CATALOG": "sqlite:///shop.db", "ICETREE_WAREHOUSE": "lake"}
    for name, commands in {
        "terminal-tree": ["icetree tree shop.events"],
        "terminal-explain": [
            "icetree describe shop.events",
            "icetree explain shop.events --where \"id < 300 and country = 'DE'\"",
        ],
        "terminal-demo": ["icetree demo --small"],
    }.items():
        _drawn(browser, name, shown([typed(each, place, there) for each in commands]))


def notebook(browser: Chromium, folder: Path) -> None:
    """The first cells of the tutorial that show something, as a notebook shows them."""
    _drawn(browser, "notebook", notebook_shown(ROOT / "docs" / "tutorial.ipynb", folder))


def site(browser: Chromium, folder: Path) -> None:
    """The site's home page, and a page with drawings in the dark; `make docs` has its packages."""
    place = folder / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(place)]
    subprocess.run(command, cwd=ROOT, check=True)
    for name, file, scheme in (
        ("site-home", "index.html", "light"),
        ("site-dark", "understand/tree/index.html", "dark"),
    ):
        found = place / file if (place / file).exists() else place / file.replace("/index", "")
        page = browser.page(found.as_uri(), width=1280, height=760, scheme=_scheme(scheme))
        page.until("[...document.images].every((each) => each.complete)")
        _kept(name, page.picture)
        page.close()


def _scheme(name: str) -> Scheme:
    return "dark" if name == "dark" else "light"


def _drawn(browser: Chromium, name: str, html: str) -> None:
    """Keep a picture of a document, as high as it is."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shown.html"
        file.write_text(html, encoding="utf-8")
        page = browser.page(file.as_uri(), width=760, height=200)
        high = int(page.run("Math.ceil(document.body.getBoundingClientRect().height)"))
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=760, height=min(high, 1400), deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        _kept(name, page.picture)
        page.close()


def _kept(name: str, take: Callable[[Path], None]) -> None:
    file = FIGURES / f"{name}.png"
    take(file)
    file.write_bytes(small(file.read_bytes()))
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{file.name} has {size:,} bytes, more than {MOST_BYTES:,}: show less")
    print(f"{file.name}: {size:,} bytes")


FACES: Final[Mapping[str, Callable[[Chromium, Path], None]]] = {
    "explorer": explorer,
    "terminal": terminal,
    "notebook": notebook,
    "site": site,
}

if __name__ == "__main__":
    main(sys.argv[1:])
