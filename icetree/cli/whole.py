"""The commands for whole tables: `rename`, `copy`, `backup` and `drop`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from icetree.cli.health import progress_line
from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pass_lake, table_argument, yes_option

if TYPE_CHECKING:
    from icetree.table.progress import Progress

_to_option = click.option("--to", required=True, metavar="TABLE", help="The other name.")


@click.command()
@table_argument
@_to_option
@as_json_option
@pass_lake
def rename(lake: Chosen, name: str, to: str, as_json: bool) -> None:
    """Give a table or a view another name; its files stay where they are."""
    from icetree.cli.output import print_json, say

    with lake.open() as connection:
        is_view = connection.view_exists(name)
        (connection.rename_view if is_view else connection.rename_table)(name, to)
    if as_json:
        print_json({"name": to})
    else:
        say(f"{name} is {to} now")


@click.command()
@table_argument
@_to_option
@click.option("--location", help="The copy's folder; below the warehouse without.")
@as_json_option
@pass_lake
def copy(lake: Chosen, name: str, to: str, location: str | None, as_json: bool) -> None:
    """Copy a table with all of its history: a table of its own."""
    from icetree.cli.tables import tell_made

    with lake.open() as connection:
        made = connection.copy_table(name, to, location=location, progress=_progress(as_json))
        tell_made(made, as_json=as_json)


@click.command()
@table_argument
@click.option("--location", required=True, help="The folder of the backup.")
@as_json_option
@pass_lake
def backup(lake: Chosen, name: str, location: str, as_json: bool) -> None:
    """Copy a table's files elsewhere, of which only what is not there yet.

    Prints the metadata file by which the backup can be registered as a table again.
    """
    from icetree.cli.output import print_json, say

    with lake.open() as connection:
        at = connection.backup_table(name, location, progress=_progress(as_json))
    if as_json:
        print_json({"metadata_location": at})
    else:
        say(at)


@click.command()
@table_argument
@click.option("--purge", is_flag=True, help="Delete its files too, those of old snapshots as well.")
@yes_option
@as_json_option
@pass_lake
def drop(lake: Chosen, name: str, purge: bool, yes: bool, as_json: bool) -> None:
    """Remove a table's or a view's name; its files stay unless told otherwise."""
    from icetree.cli.output import print_json, say
    from icetree.cli.views import drop_view

    with lake.open() as connection:
        if connection.view_exists(name):
            drop_view(connection, name, purge=purge, yes=yes, as_json=as_json)
            return
        at = connection.table(name).state.metadata_location
        done = connection.drop_table(name, purge=purge) if yes else None
    if as_json:
        gone = None if done is None else done.as_dict()
        print_json({"name": name, "metadata_location": at, "dry_run": not yes, "result": gone})
    elif yes:
        say(f"dropped {name}; files deleted: {done or 'none'}; its newest metadata was {at}")
    else:
        say(f"would drop {name}, whose newest metadata is {at}")
        click.echo("nothing was changed: repeat with --yes to do it")


def _progress(as_json: bool) -> Progress | None:
    return None if as_json or not sys.stderr.isatty() else progress_line()
