"""The demo on the screen: small commits beside PyIceberg, a pipeline on Spark, and what must be so."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from icetree.cli.aside import aside
from icetree.cli.demo.events import EVENTS, USER
from icetree.cli.demo.folder import demo_folder
from icetree.cli.demo.pipeline import BATCHES, Pipeline, Step
from icetree.cli.demo.progress import busy, progress_of, watched
from icetree.cli.demo.race import EACH
from icetree.cli.demo.race_screen import fair, show_race
from icetree.cli.demo.show import heading, print_laws
from icetree.cli.demo.truth import truths
from icetree.errors import InvalidInput, NotFound, Unsupported
from icetree.explore.cost import Cost
from icetree.explore.page import one_file
from icetree.picture.page import to_html
from icetree.picture.terminal import Drawing
from icetree.picture.tree import picture
from icetree.picture.words import counted, size
from icetree.spark import connect
from icetree.spark.java import java_home
from icetree.spark.session import local_session
from icetree.table.table import Table
from icetree.tree.reading import leaves_in

_WHAT: Final = 40
#: Rows are few: to compile code for each plan would take longer than to run it.
_FEW_ROWS: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


def show_demo(console: Console, folder: Path, *, commits: int) -> bool:
    """Run the demo in a folder that stays; tell whether all is as it must be."""
    # Whoever lacks Java hears of it before anything is made.
    try:
        java_home()
    except NotFound as error:
        raise NotFound(f"{error}; `icetree demo --small` needs no Java") from None
    folder = demo_folder(folder)
    return show_all(
        console, folder, lambda: session(console, folder / "spark.log"), commits=commits
    )


def show_all(
    console: Console,
    folder: Path,
    spark: Callable[[], AbstractContextManager[Any]],
    *,
    commits: int,
    each: int = EACH,
    batches: int = BATCHES,
) -> bool:
    """Show it all; `spark` makes a session, and ends it. Each of the writers makes `each` commits."""
    start = time.perf_counter()
    done = show_race(console, folder, commits, each=each)
    with spark() as running:
        warehouse = str(folder / "warehouse")
        lake = connect(_catalog(folder), warehouse=warehouse, spark=running)
        try:
            pipeline = Pipeline(lake=lake, folder=folder / "stream", past=done.end, batches=batches)
            _steps(console, pipeline)
            is_film = _tree(console, pipeline, folder / "tree.html")
            heading(console, "4  Truth", "the table beside the events themselves")
            holds = print_laws(console, watched(console, [fair(done), *truths(pipeline)]))
        finally:
            lake.close()
    _next(console, folder, is_film=is_film)
    console.print(Text(f"  {time.perf_counter() - start:.0f} seconds in all.\n", style="dim"))
    return holds


def _catalog(folder: Path) -> str:
    return f"sqlite:///{folder}/catalog.db"


@contextmanager
def session(console: Console, log: Path) -> Iterator[Any]:
    """Run a Spark of our own."""
    with busy(console, "Starting Spark"), aside(log):
        spark = local_session("icetree demo", shuffle_partitions=2, extra_conf=_FEW_ROWS)
    try:
        yield spark
    finally:
        spark.stop()


# --- steps ---------------------------------------------------------------------------------


def _steps(console: Console, pipeline: Pipeline) -> None:
    heading(console, "2  The same table on Spark", "and the metadata that each step writes")
    head = f"  {'step':<{_WHAT}}{'rows':>9}{'seconds':>9}{'files':>7}{'bytes':>10}"
    console.print(Text(head, style="dim"))
    with progress_of(console) as progress:

        def start(what: str) -> None:
            for done in progress.task_ids:
                progress.remove_task(done)
            progress.add_task(what, total=pipeline.batches if what.startswith("stream") else None)

        def count(made: int) -> None:
            progress.update(progress.task_ids[0], completed=made)

        pipeline.on_start, pipeline.on_commit = start, count
        for step in pipeline.run():
            progress.console.print(_line(step))


def _line(step: Step) -> Text:
    rows = "" if step.rows is None else f"{step.rows:,}"
    cost: Cost = step.cost
    return Text.assemble(
        f"  {step.what:<{_WHAT}}{rows:>9}{step.seconds:>9.1f}",
        (f"{cost.files:>7,}{size(cost.size_bytes):>10}", "green"),
    )


# --- the end -------------------------------------------------------------------------------


def _tree(console: Console, pipeline: Pipeline, file: Path) -> bool:
    """Draw the tree and write its page; return whether that has its history, not the newest alone."""
    table = pipeline.table
    shape, newest = table.metadata.shape(), table.snapshot()
    assert newest is not None  # the story ends with an append
    root = table.files.counted_root(newest, shape)
    leaves = counted(len(leaves_in(root)), "leaf", "leaves")
    drawn = picture(
        root,
        table.files.reader(shape),
        shape,
        caption=f"{table.name} · {newest.operation}",
        root_file=newest.root_file,
    )
    film = _film(table)
    file.write_text(to_html(drawn) if film is None else film, encoding="utf-8")
    heading(console, "3  Its tree", f"a root and {leaves} are all of it")
    console.print(Drawing(drawn))
    return film is not None


def _film(table: Table) -> str | None:
    """Return the explorer with all of the table's history; None where none was built."""
    try:
        return one_file(table)
    except (InvalidInput, Unsupported):
        return None


def _next(console: Console, folder: Path, *, is_film: bool) -> None:
    """Print what to try, as it can be pasted where one is."""
    heading(console, "5  Yours now", "the table stays; paste these")
    place, program = _near(folder), _program()
    for line in (
        f"export ICETREE_CATALOG=sqlite:///{place}/catalog.db",
        f'{program} explain {EVENTS} --where "user_id = {USER + 1}"',
        f"{program} snapshots {EVENTS} --limit 10",
        f'{program} sql -e "SELECT kind, count(*) FROM {EVENTS} GROUP BY 1"',
    ):
        console.print(Text(f"  {line}", style="bold"), soft_wrap=True)
    what = "Its history" if is_film else "Its newest snapshot, still"
    console.print(f"\n  {what}, for a browser: {place}/tree.html", soft_wrap=True)
    if not is_film:
        console.print("  (With npm there, `make page` builds the explorer, which shows all of it.)")


def _near(path: Path) -> str:
    """Return a path as one would type it here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path.resolve())


def _program() -> str:
    """Return how the program is called here."""
    own = Path(sys.executable).parent / "icetree"
    found = shutil.which("icetree")
    if found and Path(found).resolve() == own.resolve():
        return "icetree"
    return _near_or_module(own)


def _near_or_module(program: Path) -> str:
    if os.access(program, os.X_OK):
        # Not resolved: an environment's folder may be a link.
        here = Path.cwd()
        return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)
    return f"{sys.executable} -m icetree"
