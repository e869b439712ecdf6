"""The commands by which tables come in and go back: `upgrade`, `downgrade`, `trial`, `snapshot`, `migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import (
    as_json_option,
    dry_run_option,
    pass_lake,
    table_argument,
    yes_option,
)

if TYPE_CHECKING:
    from icetree.table.moving.downgrade import Downgraded
    from icetree.table.moving.upgrade import Upgraded
    from icetree.table.table import Table


@click.command()
@table_argument
@click.option(
    "--source", help="A metadata file, or a folder with numbered ones, that gets this name."
)
@yes_option
@as_json_option
@pass_lake
def upgrade(lake: Chosen, name: str, source: str | None, yes: bool, as_json: bool) -> None:
    """Make a table of v1 to v3 one of v4, by writing one metadata file.

    Says what happens, what is gained, and why it cannot be where it cannot.
    """
    with lake.open(create=source is not None) as connection:
        if source is not None and yes:
            connection.create_namespace(name.rpartition(".")[0], exist_ok=True)
        done = connection.upgrade_table(name, source, dry_run=not yes)
    _told(done, yes=yes, as_json=as_json)


@click.command()
@table_argument
@yes_option
@as_json_option
@pass_lake
def downgrade(lake: Chosen, name: str, yes: bool, as_json: bool) -> None:
    """Make a table of v4 one of v3, in place; data files stay as they are.

    What branches and tags point to stays; other snapshots are forgotten, and no file is deleted.
    """
    with lake.open() as connection:
        done = connection.downgrade_table(name, dry_run=not yes)
    _told(done, yes=yes, as_json=as_json)


@click.command()
@table_argument
@click.option(
    "--source",
    required=True,
    help="A table of the catalog, a metadata file, or a folder with numbered ones.",
)
@click.option("--location", help="The new table's folder; below the warehouse without.")
@dry_run_option
@as_json_option
@pass_lake
def trial(
    lake: Chosen, name: str, source: str, location: str | None, dry_run: bool, as_json: bool
) -> None:
    """Make a v4 table beside one of v1 to v3, which shares its files and never harms them."""
    from icetree.cli.commands.tables import tell_made

    if dry_run:
        with lake.open(create=True) as connection:
            made = connection.trial_table(name, source, location=location, dry_run=True)
            _would(made, source, as_json=as_json)
        return
    with lake.making(name) as connection:
        made = connection.trial_table(name, source, location=location)
        more = f", of the files of {source}: what is deleted there, it lacks"
        tell_made(made, as_json=as_json, more=more)


_folder_option = click.option(
    "--source", required=True, help="A folder of Parquet files, or of a Delta table."
)


@click.command()
@table_argument
@_folder_option
@click.option("--location", help="The new table's folder; below the warehouse without.")
@dry_run_option
@as_json_option
@pass_lake
def snapshot(
    lake: Chosen, name: str, source: str, location: str | None, dry_run: bool, as_json: bool
) -> None:
    """Make a table of a folder's files, which stay where they are and are never deleted."""
    if dry_run:
        with lake.open(create=True) as connection:
            made = connection.snapshot_table(name, source, location=location, dry_run=True)
            _would(made, source, as_json=as_json)
        return
    with lake.making(name) as connection:
        _tell(connection.snapshot_table(name, source, location=location), as_json=as_json)


@click.command()
@table_argument
@_folder_option
@yes_option
@as_json_option
@pass_lake
def migrate(lake: Chosen, name: str, source: str, yes: bool, as_json: bool) -> None:
    """Make a folder of Parquet files, or of a Delta table, a table where it is."""
    from icetree.cli.output import say

    if not yes:
        with lake.open(create=True) as connection:
            _would(connection.migrate_table(name, source, dry_run=True), source, as_json=as_json)
        if not as_json:
            say(
                "its files would be the table's own from then on: nobody may write to the folder or "
                "clean it up by other means any more"
            )
            click.echo("nothing was changed: repeat with --yes to do it")
        return
    with lake.making(name) as connection:
        _tell(connection.migrate_table(name, source), as_json=as_json)


def _told(done: Upgraded | Downgraded, *, yes: bool, as_json: bool) -> None:
    from icetree.cli.output import print_json, say_lines

    if as_json:
        print_json(done.as_dict())
        return
    say_lines(str(done))
    if not yes and done.reason is None:
        click.echo("nothing was changed: repeat with --yes to do it")


def _tell(made: Table, *, as_json: bool) -> None:
    from icetree.cli.commands.tables import tell_made

    tell_made(made, as_json=as_json, more=f", of {_files(made)} data files")


def _would(made: Table, source: str, *, as_json: bool) -> None:
    from icetree.cli.output import print_json, say

    if as_json:
        told = {"name": str(made.name), "source": source, "files": _files(made), "dry_run": True}
        print_json(told)
    else:
        say(f"would make {made.name} at {made.location}, of {_files(made):,} data files")


def _files(made: Table) -> int:
    from icetree.tree.summary import data_files

    now = made.current_snapshot
    return (now and data_files(now.summary)) or 0
