"""How every command of maintenance goes: look or do, then say what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from icetree.cli.commands.verify import progress_line
from icetree.cli.lake import Chosen

if TYPE_CHECKING:
    from icetree.table.maintain.maintain import Maintenance


def carry_out(
    lake: Chosen,
    name: str,
    verb: Callable[..., Any],
    *,
    due: Callable[[Any], object],
    yes: bool,
    as_json: bool,
    lines: Callable[[Any], tuple[str, ...]] = lambda _: (),
) -> None:
    """Carry out a verb of `table.maintenance` with `yes`, else a dry run, and tell what it told.

    `due` says whether anything is left to do, and `lines` what to say before the result.
    """
    from icetree.cli.output import print_json, say, say_lines

    with lake.table(name) as table:
        of: Maintenance = table.maintenance
        progress = None if as_json or not sys.stderr.isatty() else progress_line()
        done = verb(of, dry_run=not yes, progress=progress)
    if as_json:
        print_json(done.as_dict())
        return
    for each in lines(done):
        say(each)
    say_lines(str(done))
    if due(done) and not yes:
        click.echo("nothing was changed: repeat with --yes to do it")
