"""The pipeline on the screen: each step a line beside v3, then the tree, then what must be so."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from icetree.cli.demo.events import PAST
from icetree.cli.demo.pipeline import Pipeline, Step
from icetree.cli.demo.show import heading, new_folder, print_laws
from icetree.cli.demo.truth import truths
from icetree.errors import NotFound, Unavailable
from icetree.explore.cost import Cost
from icetree.picture.svg import to_svg
from icetree.picture.terminal import Drawing
from icetree.picture.tree import picture
from icetree.picture.words import counted, size
from icetree.spark import local
from icetree.spark.session import local_session
from icetree.tree.reading import leaves_in

_WHAT = 42


def show_on_spark(console: Console, keep: Path | None, *, commits: int) -> bool:
    """Run the pipeline on a Spark of its own; tell whether all is as it must be."""
    with _folder(keep) as folder, _session(console, folder / "spark.log") as spark:
        return show_pipeline(console, spark, folder, commits=commits, kept=keep is not None)


def show_pipeline(
    console: Console,
    spark: Any,
    folder: Path,
    *,
    commits: int,
    past: int = PAST,
    kept: bool = False,
) -> bool:
    """Run the pipeline in a folder, on a session that goes on; tell whether all is as it must be."""
    start = time.perf_counter()
    lake = local(folder / "lake", spark=spark)
    try:
        pipeline = Pipeline(lake=lake, checkpoint=folder / "checkpoint", commits=commits, past=past)
        _steps(console, pipeline)
        _tree(console, pipeline, folder / "tree.svg" if kept else None)
        if kept:
            console.print(f"\n  Kept: {folder / 'tree.svg'} and {folder / 'lake'}", soft_wrap=True)
        _sums(console, pipeline)
        heading(console, "Truth", "the table beside the events themselves")
        holds = print_laws(console, _watched(console, truths(pipeline)))
    finally:
        lake.close()
    spent = time.perf_counter() - start
    console.print(Text(f"  {spent:.0f} seconds, without Spark's start.\n", style="dim"))
    return holds


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield new_folder(keep)
        return
    # Spark may still be writing to it when one has had enough.
    with tempfile.TemporaryDirectory(prefix="icetree-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def _session(console: Console, log: Path) -> Iterator[Any]:
    with _busy(console, "Starting Spark"), _aside(log):
        try:
            spark = local_session("icetree demo", shuffle_partitions=2)
        except NotFound as error:
            raise NotFound(f"{error}; `icetree demo --small` needs no Java") from None
        except RuntimeError as error:
            last = log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise Unavailable(f"Spark did not start: {last or error}") from None
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _aside(log: Path) -> Iterator[None]:
    """Let programs started meanwhile write what they have to say to a file, not to the screen."""
    screen = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(screen, 2)
        os.close(screen)


def _busy(console: Console, what: str) -> Any:
    """Show that something is under way, where somebody is looking."""
    return console.status(f"{what} …") if console.is_terminal else nullcontext()


def _watched(console: Console, laws: Iterable[Any]) -> Iterator[Any]:
    """Yield each law, and turn a wheel while it is being looked into."""
    waiting = iter(laws)
    while True:
        with _busy(console, "Looking"):
            law = next(waiting, None)
        if law is None:
            return
        yield law


# --- steps ---------------------------------------------------------------------------------


def _steps(console: Console, pipeline: Pipeline) -> None:
    heading(console, "A shop's events on Spark", "metadata of each step, beside v3's")
    head = f"  {'step':<{_WHAT}}{'rows':>9}{'seconds':>8}{'v4 files':>9}{'bytes':>10}"
    console.print(Text(f"{head}{'v3 files':>9}{'bytes':>10}", style="dim"))
    with _progress(console) as progress:

        def start(what: str) -> None:
            for done in progress.task_ids:
                progress.remove_task(done)
            progress.add_task(what, total=pipeline.commits if what.startswith("stream") else None)

        def count(made: int) -> None:
            progress.update(progress.task_ids[0], completed=made)

        pipeline.on_start, pipeline.on_commit = start, count
        for step in pipeline.run():
            progress.console.print(_line(step))


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=24),
        _Speed(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class _Speed(ProgressColumn):
    """How many commits are made, and how fast."""

    def render(self, task: Task) -> Text:
        """Return both, or nothing while none are made."""
        if not task.total or not task.speed:
            return Text("")
        made = f"{int(task.completed):,} of {int(task.total):,}"
        return Text(f"{made}, {task.speed:.1f} a second", style="dim")


def _line(step: Step) -> Text:
    what = Text(step.what)
    what.truncate(_WHAT - 1, overflow="ellipsis", pad=False)
    what.pad_right(_WHAT - what.cell_len)
    rows = "" if step.rows is None else f"{step.rows:,}"
    return Text.assemble(
        "  ",
        what,
        f"{rows:>9}{step.seconds:>8.1f}",
        (_cost(step.v4), "green"),
        (_cost(step.v3), "dim"),
    )


def _cost(cost: Cost) -> str:
    return f"{cost.files:>9,}{size(cost.size_bytes):>10}"


# --- the end -------------------------------------------------------------------------------


def _tree(console: Console, pipeline: Pipeline, file: Path | None) -> None:
    table = pipeline.table
    shape, newest = table.metadata.shape(), table.snapshot()
    assert newest is not None  # the story ends with an append
    drawn = picture(
        table.files.counted_root(newest, shape),
        table.files.reader(shape),
        shape,
        caption=f"{table.name} · {newest.operation}",
        root_file=newest.root_file,
    )
    if file is not None:
        file.write_text(to_svg(drawn), encoding="utf-8")
    heading(console, "Its tree", "the newest snapshot")
    console.print(Drawing(drawn))


def _sums(console: Console, pipeline: Pipeline) -> None:
    table = pipeline.table
    root = table.files.root(table.snapshot(), table.metadata.shape())
    v4 = sum((step.v4 for step in pipeline.steps), Cost())
    v3 = sum((step.v3 for step in pipeline.steps), Cost())
    commits = sum(step.commits for step in pipeline.steps)
    heading(console, "Beside v3", f"{counted(commits, 'commit')} to the same data files")
    for what, ours, theirs in (
        ("metadata files written", f"{v4.files:,}", f"{v3.files:,}"),
        ("bytes of metadata written", size(v4.size_bytes), size(v3.size_bytes)),
        ("opened to plan a full scan", f"{1 + len(leaves_in(root)):,}", f"{pipeline.v3.opened:,}"),
    ):
        console.print(f"  {what:<30} v4 {ours:>9}   v3 {theirs:>9}")
    console.print(
        Text(
            "  v3 is counted by the rules of Iceberg's Spark writers: a stream appends without "
            "merging,\n  others merge from 100 manifests on. Sizes are of files that PyIceberg "
            "encoded of these very\n  entries (1, 10 and 100 of them, straight lines in between) "
            "and of metadata.json with gzip;\n  Iceberg Java's own are about a third larger.",
            style="dim",
        )
    )
