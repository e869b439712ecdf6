"""The commands that keep a table fast and small."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from icetree.cli.commands.carrying import carry_out
from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pairs, pass_lake, table_argument, yes_option
from icetree.cli.refusal import kind_of_error
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.rounds import Round


@click.command()
@table_argument
@click.option(
    "--older-than", help="Snapshots from this time on stay, such as 2026-01-31T12:00:00Z."
)
@click.option("--retain-last", type=int, help="So many of a branch stay, however old.")
@click.option(
    "--snapshot-id",
    "snapshot_ids",
    type=int,
    multiple=True,
    help="Expire this one; repeat for more.",
)
@click.option(
    "--clean-expired-metadata", is_flag=True, help="Forget schemas and layouts nothing uses, too."
)
@yes_option
@as_json_option
@pass_lake
def expire(
    lake: Chosen,
    name: str,
    older_than: str | None,
    retain_last: int | None,
    snapshot_ids: tuple[int, ...],
    clean_expired_metadata: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget old snapshots, and delete files that only they needed.

    What goes is decided by the retention of branches and tags and by the table's properties
    history.expire.*, which the options take the place of.
    """
    carry_out(
        lake,
        name,
        lambda of, **how: of.expire_snapshots(
            older_than=older_than,
            retain_last=retain_last,
            snapshot_ids=snapshot_ids or None,
            clean_expired_metadata=clean_expired_metadata,
            **how,
        ),
        due=lambda done: done.snapshot_ids or done.cleaned,
        yes=yes,
        as_json=as_json,
    )


@click.command()
@table_argument
@click.option("--older-than", help="Files from this time on stay; three days ago without.")
@click.option("--location", help="Look in this folder of the table alone.")
@click.option(
    "--prefix-mismatch-mode",
    type=click.Choice(["error", "ignore", "delete"]),
    default="error",
    show_default=True,
    help="What to do about files that the table names under another scheme or bucket.",
)
@click.option(
    "--equal-schemes",
    multiple=True,
    metavar="MANY=ONE",
    help="Schemes that are one: s3a,s3n=s3; repeat for more.",
)
@click.option(
    "--equal-authorities",
    multiple=True,
    metavar="MANY=ONE",
    help="Buckets or hosts that are one: a,b=c; repeat for more.",
)
@click.option("--force", is_flag=True, help="Take a time less than an hour ago, too.")
@yes_option
@as_json_option
@pass_lake
def orphans(
    lake: Chosen,
    name: str,
    older_than: str | None,
    location: str | None,
    prefix_mismatch_mode: str,
    equal_schemes: tuple[str, ...],
    equal_authorities: tuple[str, ...],
    force: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete files in the table's folder that nothing of the table names."""
    carry_out(
        lake,
        name,
        lambda of, **how: of.remove_orphan_files(
            older_than=older_than,
            location=location,
            prefix_mismatch_mode=prefix_mismatch_mode,
            equal_schemes=pairs(equal_schemes, option="--equal-schemes"),
            equal_authorities=pairs(equal_authorities, option="--equal-authorities"),
            force=force,
            **how,
        ),
        due=lambda done: done.orphan_file_location,
        lines=lambda done: done.orphan_file_location,
        yes=yes,
        as_json=as_json,
    )


@click.command("rewrite-manifests")
@table_argument
@click.option("--by", multiple=True, help="Put entries in order of this column; repeat for more.")
@click.option("--branch", default="main", show_default=True, help="The branch whose tree it is.")
@yes_option
@as_json_option
@pass_lake
def rewrite_manifests(
    lake: Chosen, name: str, by: tuple[str, ...], branch: str, yes: bool, as_json: bool
) -> None:
    """Put the entries of manifests in order, so that plans read fewer.

    Without --by the order is that of the partition fields and the sort order. What is in good order
    stays as it is.
    """
    carry_out(
        lake,
        name,
        lambda of, **how: of.rewrite_manifests(by=by or None, branch=branch, **how),
        due=lambda done: done.rewritten_manifests_count,
        yes=yes,
        as_json=as_json,
    )


@click.command("rewrite-position-delete-files")
@table_argument
@click.option("--where", help="Only for data files that may have rows which match.")
@click.option(
    "--rewrite-equality-deletes", is_flag=True, help="Turn equality deletes into vectors, too."
)
@click.option("--branch", default="main", show_default=True, help="The branch whose deletes.")
@yes_option
@as_json_option
@pass_lake
def rewrite_position_delete_files(
    lake: Chosen,
    name: str,
    where: str | None,
    rewrite_equality_deletes: bool,
    branch: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Merge small files of deletes, and turn position delete files of v2 into vectors.

    What deletes nothing any more goes. What is deleted stays the same.
    """
    carry_out(
        lake,
        name,
        lambda of, **how: of.rewrite_position_delete_files(
            where=where, rewrite_equality_deletes=rewrite_equality_deletes, branch=branch, **how
        ),
        due=lambda done: done.rewritten_delete_files_count,
        yes=yes,
        as_json=as_json,
    )


@click.command()
@table_argument
@click.option("--max-seconds", type=float, help="Begin nothing after so many seconds.")
@click.option("--max-bytes", type=int, help="Read and write no more than so many bytes of data.")
@click.option("--branch", default="main", show_default=True, help="The branch to look at.")
@yes_option
@as_json_option
@pass_lake
def optimize(
    lake: Chosen,
    name: str,
    max_seconds: float | None,
    max_bytes: int | None,
    branch: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Look at the table, and do what is worth it: data files, deletes, leaves, history, orphans."""
    carry_out(
        lake,
        name,
        lambda of, **how: of.optimize(
            max_seconds=max_seconds, max_bytes=max_bytes, branch=branch, **how
        ),
        due=lambda done: done.steps,
        yes=yes,
        as_json=as_json,
    )


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--every", type=float, default=600, show_default=True, help="Seconds from round to round."
)
@click.option("--rounds", type=int, help="Stop after so many; without, go on until stopped.")
@click.option("--max-seconds", type=float, help="For each table and round.")
@click.option("--max-bytes", type=int, help="For each table and round.")
@as_json_option
@pass_lake
def maintain(
    lake: Chosen,
    names: tuple[str, ...],
    every: float,
    rounds: int | None,
    max_seconds: float | None,
    max_bytes: int | None,
    as_json: bool,
) -> None:
    """Optimize tables again and again; all of the catalog without names.

    It may be stopped at any moment: what is under way is simply not committed.
    """
    from icetree.cli.output import print_json, say_lines
    from icetree.table.rounds import rounds as each_round

    with lake.open() as connection:
        for each in each_round(
            connection,
            names,
            every_seconds=every,
            max_rounds=rounds,
            max_seconds=max_seconds,
            max_bytes=max_bytes,
        ):
            if as_json:
                print_json({"name": each.table, **_round_told(each)})
            else:
                done = each.done or visible(str(each.error))
                say_lines(f"{visible(str(each.table))}: {done}")
            sys.stdout.flush()


def _round_told(one: Round) -> dict[str, Any]:
    if one.error is None:
        return {} if one.done is None else one.done.as_dict()
    return {"error": {"kind": kind_of_error(one.error), "message": str(one.error)}}
