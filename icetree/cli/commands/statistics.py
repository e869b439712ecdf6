"""The commands that compute statistics, which planners read."""

from __future__ import annotations

import sys

import click

from icetree.cli.commands.verify import progress_line
from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, at_option, pass_lake, table_argument, yes_option
from icetree.table.progress import Progress


@click.command("compute-table-stats")
@table_argument
@click.option("--columns", multiple=True, help="Of this column alone; repeat for more.")
@at_option
@yes_option
@as_json_option
@pass_lake
def compute_table_stats(
    lake: Chosen, name: str, columns: tuple[str, ...], at: str | None, yes: bool, as_json: bool
) -> None:
    """Count the distinct values of columns, nearly: all rows are read."""
    from icetree.cli.output import print_json, say

    with lake.table(name) as table:
        done = table.maintenance.compute_table_stats(
            columns=columns or None, at=at, dry_run=not yes, progress=_progress(as_json)
        )
    if as_json:
        print_json(done.as_dict())
        return
    say(str(done))
    _tell(done.statistics_file, yes)


@click.command("compute-partition-stats")
@table_argument
@at_option
@yes_option
@as_json_option
@pass_lake
def compute_partition_stats(
    lake: Chosen, name: str, at: str | None, yes: bool, as_json: bool
) -> None:
    """Write down what each partition holds, from metadata alone."""
    from icetree.cli.output import print_json, say

    with lake.table(name) as table:
        done = table.maintenance.compute_partition_stats(
            at=at, dry_run=not yes, progress=_progress(as_json)
        )
    if as_json:
        print_json(done.as_dict())
        return
    say(str(done))
    _tell(done.partition_statistics_file, yes)


def _progress(as_json: bool) -> Progress | None:
    return None if as_json or not sys.stderr.isatty() else progress_line()


def _tell(file: str | None, yes: bool) -> None:
    from icetree.cli.output import say

    if file is not None:
        say(file)
    elif not yes:
        click.echo("nothing was changed: repeat with --yes to do it")
