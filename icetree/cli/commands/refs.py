"""The commands that make branches and tags, and take something back: `tag`, `branch`, `rollback`, `set-current`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import (
    as_json_option,
    at_option,
    branch_option,
    pass_lake,
    table_argument,
    yes_option,
)
from icetree.errors import InvalidInput

if TYPE_CHECKING:
    from icetree.table.evolve.refs import References
    from icetree.table.table import Table

_drop_option = click.option("--drop", is_flag=True, help="Remove it; what it points to stays.")
_yes_option = click.option(
    "--yes", is_flag=True, help="Drop it; without, only say what would be done."
)


@click.command()
@table_argument
@click.argument("tag", metavar="TAG")
@at_option
@_drop_option
@_yes_option
@as_json_option
@pass_lake
def tag(
    lake: Chosen, name: str, tag: str, at: str | None, drop: bool, yes: bool, as_json: bool
) -> None:
    """Give a snapshot a name that stays, or take it back."""
    with lake.table(name) as table:
        if _wants_drop(drop, at, yes=yes):
            _take_back(table, tag, lambda refs: refs.remove_tag(tag), yes=yes, as_json=as_json)
        else:
            table.create_tag(tag, at=at)
            tell_ref(table.refresh(), tag, as_json=as_json)


@click.command()
@table_argument
@click.argument("branch", metavar="BRANCH")
@at_option
@_drop_option
@_yes_option
@as_json_option
@pass_lake
def branch(
    lake: Chosen, name: str, branch: str, at: str | None, drop: bool, yes: bool, as_json: bool
) -> None:
    """Begin a branch at a snapshot, or remove one."""
    with lake.table(name) as table:
        if _wants_drop(drop, at, yes=yes):
            remove = lambda refs: refs.remove_branch(branch)  # noqa: E731
            _take_back(table, branch, remove, yes=yes, as_json=as_json)
        else:
            table.create_branch(branch, at=at)
            tell_ref(table.refresh(), branch, as_json=as_json)


@click.command()
@table_argument
@click.option(
    "--to", required=True, metavar="POINT", help="A snapshot id of the branch's past, or a time."
)
@branch_option
@yes_option
@as_json_option
@pass_lake
def rollback(lake: Chosen, name: str, to: str, branch: str, yes: bool, as_json: bool) -> None:
    """Move a branch back to a snapshot of its past.

    Nothing is deleted: later snapshots stay until they expire.
    """
    with lake.table(name) as table:
        back = lambda refs: refs.rollback(to, branch=branch)  # noqa: E731
        _take_back(table, branch, back, yes=yes, as_json=as_json)


@click.command("set-current")
@table_argument
@click.option(
    "--to", required=True, metavar="POINT", help="Any snapshot of the table, a branch, tag or time."
)
@branch_option
@yes_option
@as_json_option
@pass_lake
def set_current(lake: Chosen, name: str, to: str, branch: str, yes: bool, as_json: bool) -> None:
    """Point a branch at any snapshot of the table, of its past or not.

    Nothing is deleted: what the branch had stays until it expires.
    """
    with lake.table(name) as table:
        point = lambda refs: refs.set_current(to, branch=branch)  # noqa: E731
        _take_back(table, branch, point, yes=yes, as_json=as_json)


def _take_back(
    table: Table,
    ref: str,
    verb: Callable[[References], object],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Do what takes something from readers, or only say where the ref would be then."""
    from icetree.cli.output import say
    from icetree.table.evolve.rehearsal import Rehearsal

    if yes:
        verb(table)
        tell_ref(table.refresh(), ref, as_json=as_json)
        return
    rehearsal = Rehearsal(table)
    verb(rehearsal)
    after = rehearsal.metadata.refs.get(ref)
    if as_json:
        from icetree.cli.output import print_json

        at = None if after is None else after.snapshot_id
        print_json({"name": ref, "dry_run": True, "snapshot_id": at})
        return
    if after is None:
        say(f"would drop {ref} of {table.name}, at snapshot {table.refs[ref].snapshot_id}")
    else:
        say(f"would move {ref} of {table.name} to snapshot {after.snapshot_id}")
    click.echo("nothing was changed: repeat with --yes to do it")


def _wants_drop(drop: bool, at: str | None, *, yes: bool) -> bool:
    if yes and not drop:
        raise InvalidInput("--yes is for --drop: a name is given at once, leave it out")
    if drop and at is not None:
        raise InvalidInput("--drop removes a name wherever it points: leave out --at")
    return drop


def tell_ref(table: Table, ref: str, *, as_json: bool) -> None:
    """Tell where a ref is now, as `refs` has it in JSON: null is gone."""
    from icetree.cli.output import print_json, say

    found = [each for each in table.inspect.refs().to_pylist() if each["name"] == ref]
    if as_json:
        print_json(found[0] if found else None)
    elif found:
        say(f"{ref} of {table.name} is at snapshot {found[0]['snapshot_id']}")
    else:
        say(f"{ref} is gone from {table.name}")
