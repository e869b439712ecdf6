"""The commands that take in what is there already: `add-files` and `register`."""

from __future__ import annotations

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import (
    as_json_option,
    branch_option,
    dry_run_option,
    pass_lake,
    table_argument,
)


@click.command("add-files")
@table_argument
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@branch_option
@dry_run_option
@as_json_option
@pass_lake
def add_files(
    lake: Chosen, name: str, paths: tuple[str, ...], branch: str, dry_run: bool, as_json: bool
) -> None:
    """Add Parquet, ORC and Avro files that are there already; none is copied or changed.

    A path that ends with a slash is a folder, of which all such files are added.
    """
    from icetree.cli.output import print_json, say

    with lake.table(name) as table:
        count = table.add_files(paths, branch=branch, dry_run=dry_run).files.added
    if as_json:
        print_json({"name": name, "files": count, "dry_run": dry_run})
    else:
        say(f"{'would add' if dry_run else 'added'} {count:,} data files to {branch} of {name}")


@click.command()
@table_argument
@click.option(
    "--metadata-location", required=True, metavar="FILE", help="Its newest metadata file."
)
@dry_run_option
@as_json_option
@pass_lake
def register(lake: Chosen, name: str, metadata_location: str, dry_run: bool, as_json: bool) -> None:
    """Give a name to a table that is there already, such as a backup.

    Where its folder was copied to another place, it is registered there.
    """
    from icetree.cli.commands.tables import described, tell_made
    from icetree.cli.output import print_json, say
    from icetree.table.moving.source import folder_of

    metadata_location = folder_of(metadata_location)
    if not dry_run:
        with lake.making(name) as connection:
            tell_made(connection.register_table(name, metadata_location), as_json=as_json)
        return
    with lake.open(create=True) as connection:
        would = connection.register_table(name, metadata_location, dry_run=True)
    if as_json:
        print_json(described(would))
    else:
        say(f"would register {name} at {would.location}")
