"""The command `icetree demo`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the table and its picture in this new folder.",
)
def demo(keep: Path | None) -> None:
    """Build a small table, draw its tree, prove a few laws."""
    from icetree.cli.console import stdout
    from icetree.cli.demo.show import show

    if not show(stdout(), keep):
        raise click.exceptions.Exit(1)
