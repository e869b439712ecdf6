"""The command `icetree demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.option("--small", is_flag=True, help="A few files in one process: no Spark, no Java.")
@click.option(
    "--commits",
    type=click.IntRange(min=1, max=10_000),
    default=200,
    show_default=True,
    help="How many commits the stream makes.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the table and its picture in this new folder.",
)
def demo(small: bool, commits: int, keep: Path | None) -> None:
    """Run a data pipeline on Spark, beside what v3 would write; draw its tree, verify it.

    Exits with 0 when all is as it must be, else with 1.
    """
    from icetree.cli.console import stdout

    console = stdout()
    if small:
        from icetree.cli.demo.show import show

        holds = show(console, keep)
    else:
        holds = _show_on_spark(console, keep, commits)
    if not holds:
        raise click.exceptions.Exit(1)


def _show_on_spark(console: Console, keep: Path | None, commits: int) -> bool:
    from icetree.errors import NotFound

    try:
        from icetree.cli.demo.screen import show_on_spark
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise NotFound(
            "the demo runs on Spark, which is not installed: pip install 'icetree[spark,java]', "
            "or try `icetree demo --small`, which needs neither Spark nor Java"
        ) from None
    try:
        return show_on_spark(console, keep, commits=commits)
    except KeyboardInterrupt:
        console.print("\nStopped; nothing is left behind." if keep is None else "\nStopped.")
        raise click.exceptions.Exit(130) from None
