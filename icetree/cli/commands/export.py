"""The command that exports a table, for clients that do not know v4."""

from __future__ import annotations

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, at_option, pass_lake, table_argument


@click.command()
@table_argument
@click.option(
    "--format-version", type=int, default=3, help="3, or 2 for clients that know no other."
)
@at_option
@click.option("--history", is_flag=True, help="Write every snapshot that the table has.")
@as_json_option
@pass_lake
def export(
    lake: Chosen, name: str, format_version: int, at: str | None, history: bool, as_json: bool
) -> None:
    """Write a snapshot as v3 or v2 has it; data files are shared.

    Prints the metadata file that other engines open.
    """
    from icetree.cli.output import print_json, say

    with lake.table(name) as table:
        done = table.export(format_version=format_version, at=at, history=history)
    if as_json:
        print_json(done.as_dict())
        return
    say(str(done))
