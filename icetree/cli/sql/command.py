"""The command `sql`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pass_lake
from icetree.errors import NotFound, Unsupported

if TYPE_CHECKING:
    from icetree.cli.sql.run import Runner


@click.command()
@click.option(
    "-e", "--execute", multiple=True, metavar="SQL", help="Run this, and exit; may be repeated."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=100,
    show_default="100",
    help="Show so many rows of a result.",
)
@as_json_option
@pass_lake
def sql(lake: Chosen, execute: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Run SQL on local Spark: in a shell, from -e, or from standard input.

    The shell has history and completes keywords, tables and columns; a statement ends with a
    semicolon, and Ctrl-D leaves. The first statement that fails ends -e and standard input.
    """
    from icetree.cli.sql.statements import statements

    asks = not execute and sys.stdin.isatty()
    if not execute and not asks:
        execute = (sys.stdin.read(),)
    given = [each for text in execute for each in statements(text)]
    if not asks and not given:
        return
    runner = _runner()
    with runner(lake, limit=limit, as_json=as_json) as run:
        if asks:
            _shell(run)
        for each in given:
            run.show(each)


def _runner() -> type[Runner]:
    try:
        from icetree.cli.sql.run import Runner
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise NotFound(
            "SQL runs on Spark, which is not installed: pip install 'icetree[spark,java]'"
        ) from None
    return Runner


def _shell(run: Runner) -> None:
    try:
        from icetree.cli.sql.shell import shell
    except ModuleNotFoundError as missing:
        raise Unsupported(
            f"a shell needs prompt_toolkit: pip install 'icetree[spark]', or run statements with -e "
            f"({missing})"
        ) from None
    shell(run)
