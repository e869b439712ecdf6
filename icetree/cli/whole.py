"""The commands for whole tables: `rename`, `copy`, `backup` and `drop`."""

from __future__ import annotations

import sys

import click

from icetree.cli.health import progress_line
from icetree.cli.lake import Chosen, pass_lake, table_argument

_to_option = click.option("--to", required=True, metavar="TABLE", help="The other name.")


@click.command()
@table_argument
@_to_option
@pass_lake
def rename(lake: Chosen, name: str, to: str) -> None:
    """Give a table another name; its files stay where they are."""
    from icetree.cli.output import say

    with lake.open() as connection:
        connection.rename_table(name, to)
    say(f"{name} is {to} now")


@click.command()
@table_argument
@_to_option
@click.option("--location", help="The copy's folder; below the warehouse without.")
@pass_lake
def copy(lake: Chosen, name: str, to: str, location: str | None) -> None:
    """Copy a table with all of its history: a table of its own."""
    from icetree.cli.output import say

    with lake.open() as connection:
        made = connection.copy_table(
            name, to, location=location, progress=progress_line() if sys.stderr.isatty() else None
        )
    say(f"Made {made.name} at {made.location}")


@click.command()
@table_argument
@click.option("--location", required=True, help="The folder of the backup.")
@pass_lake
def backup(lake: Chosen, name: str, location: str) -> None:
    """Copy a table's files elsewhere, of which only what is not there yet.

    Prints the metadata file by which the backup can be registered as a table again.
    """
    from icetree.cli.output import say

    with lake.open() as connection:
        at = connection.backup_table(
            name, location, progress=progress_line() if sys.stderr.isatty() else None
        )
    say(at)


@click.command()
@table_argument
@click.option("--purge", is_flag=True, help="Delete its files too, those of old snapshots as well.")
@click.option("--yes", is_flag=True, help="Do it; without, only say what would be done.")
@pass_lake
def drop(lake: Chosen, name: str, purge: bool, yes: bool) -> None:
    """Remove a table's name; its files stay unless told otherwise."""
    from icetree.cli.output import say

    with lake.open() as connection:
        at = connection.table(name).state.metadata_location
        if not yes:
            say(f"would drop {name}, whose newest metadata is {at}")
            click.echo("nothing was changed: repeat with --yes to do it")
            return
        done = connection.drop_table(name, purge=purge)
    say(f"dropped {name}; files deleted: {done or 'none'}; its newest metadata was {at}")
