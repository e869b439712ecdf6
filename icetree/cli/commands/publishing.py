"""The commands that bring more to a branch, and its line: `fast-forward`, `cherry-pick`, `publish`, `ancestors`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import (
    as_json_option,
    at_option,
    branch_option,
    dry_run_option,
    limit_option,
    pass_lake,
    table_argument,
)

if TYPE_CHECKING:
    from icetree.spec.metadata.snapshot import Snapshot
    from icetree.table.evolve.refs import References


@click.command("fast-forward")
@table_argument
@click.option(
    "--to", required=True, metavar="POINT", help="What descends from it: a branch, tag, id or time."
)
@branch_option
@dry_run_option
@as_json_option
@pass_lake
def fast_forward(
    lake: Chosen, name: str, to: str, branch: str, dry_run: bool, as_json: bool
) -> None:
    """Move a branch ahead to a snapshot that descends from its head."""
    _bring(
        lake,
        name,
        branch,
        lambda refs: refs.fast_forward(branch, to),
        dry_run=dry_run,
        as_json=as_json,
    )


@click.command("cherry-pick")
@table_argument
@click.option(
    "--at", required=True, metavar="POINT", help="The snapshot: its id, a branch, a tag or a time."
)
@branch_option
@dry_run_option
@as_json_option
@pass_lake
def cherry_pick(
    lake: Chosen, name: str, at: str, branch: str, dry_run: bool, as_json: bool
) -> None:
    """Apply the changes of a snapshot to a branch, such as one that was staged."""
    _bring(
        lake,
        name,
        branch,
        lambda refs: refs.cherry_pick(at, branch=branch),
        dry_run=dry_run,
        as_json=as_json,
    )


@click.command()
@table_argument
@click.option("--wap-id", required=True, metavar="ID", help="The id that it was staged under.")
@branch_option
@dry_run_option
@as_json_option
@pass_lake
def publish(
    lake: Chosen, name: str, wap_id: str, branch: str, dry_run: bool, as_json: bool
) -> None:
    """Make part of a branch what was staged for an audit."""
    _bring(
        lake,
        name,
        branch,
        lambda refs: refs.publish(wap_id, branch=branch),
        dry_run=dry_run,
        as_json=as_json,
    )


@click.command()
@table_argument
@at_option
@limit_option(50)
@as_json_option
@pass_lake
def ancestors(lake: Chosen, name: str, at: str | None, limit: int, as_json: bool) -> None:
    """List a snapshot and those that it was made on, newest first."""
    from itertools import islice

    from icetree.cli.output import moment, print_json, print_rows
    from icetree.spec.edit.refs import ancestors as line_of

    with lake.table(name) as table:
        last = table.current_snapshot if at is None else table.snapshot(at)
        if last is None:
            line = []
        else:
            every = line_of(table.metadata, last.snapshot_id, table.files.page)
            # One more than is shown tells that there are more.
            line = list(islice(every, None if as_json else limit + 1))
    if as_json:
        print_json([_told(each) for each in line])
        return
    shown = [{**_told(each), "committed_at": moment(each.timestamp_ms)} for each in line[:limit]]
    headings = {"snapshot_id": "SNAPSHOT", "committed_at": "AT", "operation": "OPERATION"}
    print_rows(shown, headings, empty="no snapshots")
    if len(line) > limit:
        click.echo("older ones are not shown: --limit shows more")


def _told(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "snapshot_id": snapshot.snapshot_id,
        "committed_at": datetime.fromtimestamp(snapshot.timestamp_ms / 1000, tz=timezone.utc),
        "operation": snapshot.operation,
    }


def _bring(
    lake: Chosen,
    name: str,
    branch: str,
    verb: Callable[[References], object],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring a branch ahead, or only say where it would be then."""
    from icetree.cli.commands.refs import tell_ref
    from icetree.cli.output import print_json, say
    from icetree.table.evolve.rehearsal import Rehearsal

    with lake.table(name) as table:
        if not dry_run:
            verb(table)
            tell_ref(table.refresh(), branch, as_json=as_json)
            return
        rehearsal = Rehearsal(table)
        verb(rehearsal)
    picked, after = rehearsal.picked, rehearsal.metadata.refs.get(branch)
    if as_json:
        # One that is to be made has no id yet.
        at = None if picked is not None or after is None else after.snapshot_id
        print_json({"name": branch, "dry_run": True, "snapshot_id": at})
    elif picked is not None:
        say(f"would apply snapshot {picked} to {branch} of {table.name}, as a new snapshot")
    else:
        assert after is not None
        say(f"would move {branch} of {table.name} to snapshot {after.snapshot_id}")
