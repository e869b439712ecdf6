"""The command that writes data files anew."""

from __future__ import annotations

import sys

import click

from icetree.cli.health import progress_line
from icetree.cli.lake import Chosen, as_json_option, pairs, pass_lake, table_argument


@click.command("rewrite-data-files")
@table_argument
@click.option("--where", help="Only files that may hold rows which match.")
@click.option("--strategy", help="binpack (if not said), sort or zorder.")
@click.option("--sort-order", help="Such as 'ts desc, id' or 'zorder(a, b)'; else the table's own.")
@click.option(
    "--option",
    "options",
    multiple=True,
    help="One of Iceberg's: rewrite-all=true; repeat for more.",
)
@click.option("--branch", default="main", show_default=True, help="The branch to compact.")
@click.option("--yes", is_flag=True, help="Do it; without, only say what would be done.")
@as_json_option
@pass_lake
def rewrite_data_files(
    lake: Chosen,
    name: str,
    where: str | None,
    strategy: str | None,
    sort_order: str | None,
    options: tuple[str, ...],
    branch: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Write small, oversized and worn data files anew, at the size they should have.

    Rows stay the same, and in the order that is asked for. It is safe beside writers. The old files
    stay until their snapshots expire.
    """
    from icetree.cli.output import print_json, say

    with lake.table(name) as table:
        done = table.maintenance.rewrite_data_files(
            where=where,
            strategy=strategy,
            sort_order=sort_order,
            options=pairs(options, option="--option"),
            branch=branch,
            dry_run=not yes,
            progress=None if as_json or not sys.stderr.isatty() else progress_line(),
        )
    if as_json:
        print_json(done.as_dict())
        return
    say(str(done))
    if done.rewritten_data_files_count and not yes:
        click.echo("nothing was changed: repeat with --yes to do it")
