"""The commands for whole tables: `rename`, `copy`, `backup` and `drop`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from icetree.cli.commands.verify import progress_line
from icetree.cli.lake import Chosen
from icetree.cli.options import (
    as_json_option,
    dry_run_option,
    pass_lake,
    table_argument,
    yes_option,
)

if TYPE_CHECKING:
    from icetree.table.maintain.copying import Copied
    from icetree.table.progress import Progress

_to_option = click.option("--to", required=True, metavar="TABLE", help="The other name.")


@click.command()
@table_argument
@_to_option
@dry_run_option
@as_json_option
@pass_lake
def rename(lake: Chosen, name: str, to: str, dry_run: bool, as_json: bool) -> None:
    """Give a table or a view another name; its files stay where they are."""
    from icetree.cli.output import print_json, say

    with lake.open() as connection:
        if not connection.view_exists(name):
            connection.rename_table(name, to, dry_run=dry_run)
        elif not dry_run:
            connection.rename_view(name, to)
    if as_json:
        print_json({"name": to, "dry_run": dry_run})
    else:
        say(f"{name} would be {to}" if dry_run else f"{name} is {to} now")


@click.command()
@table_argument
@_to_option
@click.option("--location", help="The copy's folder; below the warehouse without.")
@click.option("--metadata-only", is_flag=True, help="Share the data files, and never delete one.")
@dry_run_option
@as_json_option
@pass_lake
def copy(
    lake: Chosen,
    name: str,
    to: str,
    location: str | None,
    metadata_only: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Copy a table with all of its history: a table of its own."""
    from icetree.cli.commands.tables import tell_made

    with lake.open() as connection:
        told = _progress(as_json)
        if dry_run:
            would = connection.copy_table(
                name,
                to,
                location=location,
                metadata_only=metadata_only,
                dry_run=True,
                progress=told,
            )
            _tell_copied(would, as_json)
            return
        made = connection.copy_table(
            name, to, location=location, metadata_only=metadata_only, progress=told
        )
        tell_made(made, as_json=as_json)


@click.command()
@table_argument
@click.option("--location", required=True, help="The folder of the backup.")
@dry_run_option
@as_json_option
@pass_lake
def backup(lake: Chosen, name: str, location: str, dry_run: bool, as_json: bool) -> None:
    """Copy a table's files elsewhere, of which only what is not there yet.

    Prints the metadata file by which the backup can be registered as a table again.
    """
    from icetree.cli.output import print_json, say

    with lake.open() as connection:
        told = _progress(as_json)
        if dry_run:
            would = connection.backup_table(name, location, dry_run=True, progress=told)
            _tell_copied(would, as_json)
            return
        at = connection.backup_table(name, location, progress=told)
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
    from icetree.cli.commands.views import drop_view
    from icetree.cli.output import print_json, say

    with lake.open() as connection:
        if connection.view_exists(name):
            drop_view(connection, name, purge=purge, yes=yes, as_json=as_json)
            return
        at = connection.table(name).state.metadata_location
        told = _progress(as_json)
        done = connection.drop_table(name, purge=purge, dry_run=not yes, progress=told)
    if as_json:
        gone = None if done is None else done.as_dict()
        print_json({"name": name, "metadata_location": at, "dry_run": not yes, "result": gone})
    elif yes:
        say(f"dropped {name}; files deleted: {done or 'none'}; its newest metadata was {at}")
    else:
        files = f", and delete {done}" if purge else ""
        say(f"would drop {name}, whose newest metadata is {at}{files}")
        click.echo("nothing was changed: repeat with --yes to do it")


def _tell_copied(would: Copied, as_json: bool) -> None:
    from icetree.cli.output import print_json, say

    if as_json:
        print_json(would.as_dict())
    else:
        say(str(would))


def _progress(as_json: bool) -> Progress | None:
    return None if as_json or not sys.stderr.isatty() else progress_line()
