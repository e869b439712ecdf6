"""The command that writes data files anew."""

from __future__ import annotations

import click

from icetree.cli.commands.carrying import carry_out
from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pairs, pass_lake, table_argument, yes_option


@click.command("rewrite-data-files")
@table_argument
@click.option("--where", help="Only files that may hold rows which match.")
@click.option("--strategy", help="binpack (if not said), sort or zorder.")
@click.option(
    "--order-by",
    multiple=True,
    metavar="KEY",
    help="Such as 'ts desc' or 'zorder(a, b)', may be repeated; else the table's own.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    help="One of Iceberg's: rewrite-all=true; repeat for more.",
)
@click.option("--branch", default="main", show_default=True, help="The branch to compact.")
@yes_option
@as_json_option
@pass_lake
def rewrite_data_files(
    lake: Chosen,
    name: str,
    where: str | None,
    strategy: str | None,
    order_by: tuple[str, ...],
    options: tuple[str, ...],
    branch: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Write small, oversized and worn data files anew, at the size they should have.

    Rows stay the same, and in the order that is asked for. It is safe beside writers. The old files
    stay until their snapshots expire.
    """
    carry_out(
        lake,
        name,
        lambda of, **how: of.rewrite_data_files(
            where=where,
            strategy=strategy,
            order_by=order_by or None,
            options=pairs(options, option="--option"),
            branch=branch,
            **how,
        ),
        due=lambda done: done.rewritten_data_files_count,
        yes=yes,
        as_json=as_json,
    )
