"""The command `icetree`: its options and its commands."""

from __future__ import annotations

import sys

import click

from icetree.cli.commands.adding import add_files, register
from icetree.cli.commands.compact import rewrite_data_files
from icetree.cli.commands.explore import explore
from icetree.cli.commands.export import export
from icetree.cli.commands.head import head
from icetree.cli.commands.history import changes, refs, snapshots
from icetree.cli.commands.layout import properties, schema, spec
from icetree.cli.commands.maintain import (
    expire,
    maintain,
    optimize,
    orphans,
    rewrite_manifests,
    rewrite_position_delete_files,
)
from icetree.cli.commands.moving import downgrade, migrate, snapshot, trial, upgrade
from icetree.cli.commands.publishing import ancestors, cherry_pick, fast_forward, publish
from icetree.cli.commands.reading import explain, files, plan
from icetree.cli.commands.refs import branch, rollback, set_current, tag
from icetree.cli.commands.serve import serve
from icetree.cli.commands.statistics import compute_partition_stats, compute_table_stats
from icetree.cli.commands.tables import create, describe, ls
from icetree.cli.commands.tree import tree
from icetree.cli.commands.verify import repair, verify
from icetree.cli.commands.whole import backup, copy, drop, rename
from icetree.cli.complete import completion
from icetree.cli.demo.command import demo
from icetree.cli.group import Commands
from icetree.cli.lake import Chosen
from icetree.cli.refusal import show_failure
from icetree.cli.sql.command import sql


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
    "given",
    metavar="KEY=VALUE",
    multiple=True,
    help="A property of the catalog or its store, as PyIceberg names it; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and errors as JSON.")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
@click.pass_context
def cli(
    ctx: click.Context,
    catalog: str | None,
    warehouse: str | None,
    given: tuple[str, ...],
    as_json: bool,
    debug: bool,
) -> None:
    """Iceberg V4 tables with an adaptive metadata tree.

    Options may stand before or after the command.
    """
    del as_json  # each command looks it up
    ctx.obj = Chosen(catalog=catalog, warehouse=warehouse, properties=given, debug=debug)


cli.add_section(
    "Look", ls, describe, head, schema, spec, snapshots, ancestors, refs, files, tree, explore
)
cli.add_section("Ask", plan, explain, changes, sql)
cli.add_section(
    "Change",
    create,
    properties,
    tag,
    branch,
    rollback,
    set_current,
    fast_forward,
    cherry_pick,
    publish,
    rename,
    copy,
    drop,
)
cli.add_section("Check", verify, repair)
cli.add_section(
    "Maintain",
    optimize,
    maintain,
    expire,
    orphans,
    rewrite_data_files,
    rewrite_manifests,
    rewrite_position_delete_files,
    compute_table_stats,
    compute_partition_stats,
    backup,
)
cli.add_section(
    "Move in and out",
    add_files,
    register,
    upgrade,
    downgrade,
    trial,
    snapshot,
    migrate,
    export,
)
cli.add_section("Others", serve, completion, demo)


def main() -> None:
    """Run the command line, and exit."""
    # What nobody foresaw may name a hostile table's things, too.
    sys.excepthook = show_failure
    cli(prog_name="icetree")
