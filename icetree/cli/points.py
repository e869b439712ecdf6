"""The commands that make and move branches and tags: `tag`, `branch` and `rollback`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, at_option, branch_option, pass_lake, table_argument
from icetree.errors import InvalidInput

if TYPE_CHECKING:
    from icetree.table.table import Table

_drop_option = click.option("--drop", is_flag=True, help="Remove it; what it points to stays.")


@click.command()
@table_argument
@click.argument("tag", metavar="TAG")
@at_option
@_drop_option
@as_json_option
@pass_lake
def tag(lake: Chosen, name: str, tag: str, at: str | None, drop: bool, as_json: bool) -> None:
    """Give a snapshot a name that stays, or take it back."""
    with lake.table(name) as table:
        if _wants_drop(drop, at):
            table.remove_tag(tag)
        else:
            table.create_tag(tag, at=at)
        _tell(table.refresh(), tag, as_json=as_json)


@click.command()
@table_argument
@click.argument("branch", metavar="BRANCH")
@at_option
@_drop_option
@as_json_option
@pass_lake
def branch(lake: Chosen, name: str, branch: str, at: str | None, drop: bool, as_json: bool) -> None:
    """Begin a branch at a snapshot, or remove one."""
    with lake.table(name) as table:
        if _wants_drop(drop, at):
            table.remove_branch(branch)
        else:
            table.create_branch(branch, at=at)
        _tell(table.refresh(), branch, as_json=as_json)


@click.command()
@table_argument
@click.option(
    "--to", required=True, metavar="POINT", help="A snapshot id of the branch's past, or a time."
)
@branch_option
@as_json_option
@pass_lake
def rollback(lake: Chosen, name: str, to: str, branch: str, as_json: bool) -> None:
    """Move a branch back to a snapshot of its past.

    Nothing is deleted: later snapshots stay until they expire.
    """
    with lake.table(name) as table:
        table.rollback(to, branch=branch)
        _tell(table.refresh(), branch, as_json=as_json)


def _wants_drop(drop: bool, at: str | None) -> bool:
    if drop and at is not None:
        raise InvalidInput("--drop removes a name wherever it points: leave out --at")
    return drop


def _tell(table: Table, ref: str, *, as_json: bool) -> None:
    """Tell where a ref is now, as `refs` has it in JSON: null is gone."""
    from icetree.cli.output import print_json, say

    found = [each for each in table.inspect.refs().to_pylist() if each["name"] == ref]
    if as_json:
        print_json(found[0] if found else None)
    elif found:
        say(f"{ref} of {table.name} is at snapshot {found[0]['snapshot_id']}")
    else:
        say(f"{ref} is gone from {table.name}")
