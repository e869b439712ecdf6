"""The command `icetree`: its options, its commands, and how errors reach the user."""

from __future__ import annotations

from typing import Any

import click

from icetree.cli.compact import rewrite_data_files
from icetree.cli.demo.command import demo
from icetree.cli.export import export
from icetree.cli.health import repair, verify
from icetree.cli.lake import Chosen
from icetree.cli.maintain import (
    expire,
    maintain,
    optimize,
    orphans,
    rewrite_manifests,
    rewrite_position_delete_files,
)
from icetree.cli.moving import downgrade, migrate, snapshot, trial, upgrade
from icetree.cli.past import changes, refs, snapshots
from icetree.cli.reading import explain, files, plan, tree
from icetree.cli.refusal import Refusal
from icetree.cli.serve import serve
from icetree.cli.statistics import compute_partition_stats, compute_table_stats
from icetree.cli.tables import create, describe, ls
from icetree.cli.whole import backup, copy, drop, rename
from icetree.errors import IcetreeError


class Commands(click.Group):
    """A group whose commands raise our errors, and whose users see a line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except IcetreeError as error:
            if ctx.params.get("debug"):
                raise
            raise Refusal(error) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands as they were added: from looking around to putting right."""
        del ctx
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="icetree")
@click.option(
    "--catalog",
    metavar="NAME|URI",
    envvar="ICETREE_CATALOG",
    show_envvar=True,
    help="A catalog configured as for PyIceberg, or an address such as sqlite:///catalog.db.",
)
@click.option(
    "--warehouse",
    metavar="LOCATION",
    envvar="ICETREE_WAREHOUSE",
    show_envvar=True,
    help="Where new tables go: a folder, or s3://bucket/prefix.",
)
@click.option(
    "--property",
    "properties",
    metavar="KEY=VALUE",
    multiple=True,
    help="A property of the catalog or its store, as PyIceberg names it; may be repeated.",
)
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
@click.pass_context
def cli(
    ctx: click.Context,
    catalog: str | None,
    warehouse: str | None,
    properties: tuple[str, ...],
    debug: bool,
) -> None:
    """Iceberg V4 tables with an adaptive metadata tree."""
    ctx.obj = Chosen(catalog=catalog, warehouse=warehouse, properties=properties, debug=debug)


for _command in (
    ls,
    create,
    describe,
    snapshots,
    refs,
    files,
    tree,
    plan,
    explain,
    changes,
    verify,
    repair,
    expire,
    orphans,
    rewrite_data_files,
    rewrite_manifests,
    compute_table_stats,
    compute_partition_stats,
    rewrite_position_delete_files,
    optimize,
    maintain,
    upgrade,
    downgrade,
    trial,
    snapshot,
    migrate,
    rename,
    copy,
    backup,
    drop,
    export,
    serve,
    demo,
):
    cli.add_command(_command)


def main() -> None:
    """Run the command line, and exit."""
    cli(prog_name="icetree")
