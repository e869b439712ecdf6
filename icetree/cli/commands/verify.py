"""The commands `verify` and `repair`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pass_lake, table_argument, yes_option
from icetree.cli.refusal import CouldNotRun
from icetree.errors import CorruptTable, IcetreeError, NotFound

if TYPE_CHECKING:
    from icetree.table.progress import Progress
    from icetree.table.verify.findings import Report
    from icetree.table.verify.verify import Which


@click.command()
@table_argument
@click.option("--deep", is_flag=True, help="Read data files and deletion vectors whole, too.")
@click.option(
    "--snapshots",
    type=click.Choice(["all", "current"]),
    default="all",
    show_default=True,
    help="Which snapshots' trees are looked at.",
)
@as_json_option
@pass_lake
def verify(lake: Chosen, name: str, deep: bool, snapshots: Which, as_json: bool) -> None:
    """Check every rule of the format over every snapshot.

    Exits with 0 when the table is clean, 1 when something was found, 2 when it could not run.
    """
    from icetree.cli.output import print_json, say_lines

    try:
        report = _verified(lake, name, deep=deep, snapshots=snapshots, quiet=as_json)
    except IcetreeError as error:
        if lake.debug:
            raise
        raise CouldNotRun.of(error) from None
    if as_json:
        found = [finding.as_dict() for finding in report.findings]
        print_json({"clean": report.is_clean, "findings": found, "counts": dict(report.counts)})
    else:
        say_lines(report.text())
    if not report.is_clean:
        raise click.exceptions.Exit(report.exit_status)


def _verified(lake: Chosen, name: str, *, deep: bool, snapshots: Which, quiet: bool) -> Report:
    from icetree.catalog.base import parse_name
    from icetree.table.verify.verify import unreadable

    with lake.open() as connection:
        try:
            table = connection.table(name)
        except (CorruptTable, NotFound) as error:
            # A name that stands for a damaged or missing file is a finding; no name is none.
            if not connection.table_exists(name):
                raise
            return unreadable(error, file=connection.catalog.load(parse_name(name)))
        return table.verify(
            deep=deep,
            snapshots=snapshots,
            progress=None if quiet or not sys.stderr.isatty() else progress_line(),
        )


def progress_line() -> Progress:
    """Return what shows progress on one line of the terminal."""

    def tell(what: str, done: int, total: int) -> None:
        end = "\r" if done < total else "\n"
        if done == total or done % max(1, total // 100) == 0:
            click.echo(f"{what}: {done:,} of {total:,}{end}", nl=False, err=True)

    return tell


@click.command()
@table_argument
@yes_option
@as_json_option
@pass_lake
def repair(lake: Chosen, name: str, yes: bool, as_json: bool) -> None:
    """Put right what safely can be.

    That is: lost pages of history, DVs of files that are gone, lost statistics.
    """
    from icetree.cli.output import print_json, say_lines

    with lake.table(name) as table:
        done = table.repair(dry_run=not yes)
    if as_json:
        print_json(
            {
                "done": done.is_done,
                "actions": [{"does": each.does, "loses": each.loses} for each in done.actions],
                "left": [finding.as_dict() for finding in done.left],
            }
        )
        return
    say_lines(done.text())
    if done.actions and not yes:
        click.echo("nothing was changed: repeat with --yes to do it")
