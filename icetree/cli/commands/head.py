"""The command `head`: the first rows of a table."""

from __future__ import annotations

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, at_option, pass_lake, table_argument, where_option


@click.command()
@table_argument
@where_option
@click.option("--columns", multiple=True, metavar="COLUMN", help="Only this one; repeat for more.")
@at_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    show_default="10",
    help="Read so many.",
)
@as_json_option
@pass_lake
def head(
    lake: Chosen,
    name: str,
    where: str | None,
    columns: tuple[str, ...],
    at: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the first rows, in no order.

    Only as many files are read as it takes.
    """
    from icetree.cli.output import print_json, print_rows

    with lake.table(name) as table:
        scan = table.scan(where, columns=columns or None, at=at, limit=limit)
        found = scan.to_arrow()
    rows = found.to_pylist(maps_as_pydicts="lossy")
    if as_json:
        print_json(rows)
        return
    print_rows(rows, {each: each for each in found.column_names}, empty="No rows.")
