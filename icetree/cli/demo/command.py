"""The command `icetree demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from icetree.cli.refusal import STOPPED

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.option("--small", is_flag=True, help="A few files in one process: no Spark, no Java.")
@click.option(
    "--commits",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    default=120,
    show_default="120",
    help="How many commits each side makes.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Leave the table and its picture in this folder; icetree-demo without.",
)
def demo(small: bool, commits: int, keep: Path | None) -> None:
    """Commit beside PyIceberg, run a pipeline on Spark, draw the tree, verify it all.

    Exits with 0 when all is as it must be, else with 1.
    """
    from icetree.cli.console import stdout

    console = stdout()
    if not console.is_terminal:
        console.width = 80
    if small:
        from icetree.cli.demo.show import show

        holds = show(console, keep)
    else:
        holds = _show_whole(console, keep or Path("icetree-demo"), commits)
    if not holds:
        raise click.exceptions.Exit(1)


def _show_whole(console: Console, folder: Path, commits: int) -> bool:
    from icetree.errors import NotFound

    try:
        from icetree.cli.demo.screen import show_demo
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in ("pyspark", "py4j", "sqlalchemy"):
            raise
        raise NotFound(
            f"the demo needs {package}, which is not installed: pip install 'icetree[demo]', "
            "or try `icetree demo --small`, which needs neither Spark nor Java"
        ) from None
    try:
        return show_demo(console, folder, commits=commits)
    except KeyboardInterrupt:
        console.print("\nStopped.")
        raise click.exceptions.Exit(STOPPED) from None
