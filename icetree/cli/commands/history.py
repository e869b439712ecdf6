"""The commands `snapshots`, `refs` and `changes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, limit_option, pass_lake, table_argument


@click.command()
@table_argument
@limit_option(50)
@as_json_option
@pass_lake
def snapshots(lake: Chosen, name: str, limit: int, as_json: bool) -> None:
    """List snapshots, newest first."""
    from itertools import islice

    from icetree.cli.output import moment, print_json, print_rows
    from icetree.cli.summary import counted

    with lake.table(name) as table:
        metadata = table.metadata
        total = len(metadata.snapshots) + sum(page.count for page in metadata.snapshot_pages)
        # Pages of history are read only as far as they are shown.
        shown = list(islice(table.history(), None if as_json else limit))
        known = table.inspect.snapshots() if as_json else None
        heads: dict[int, list[str]] = {}
        for ref_name, ref in table.refs.items():
            heads.setdefault(ref.snapshot_id, []).append(ref_name)
    if known is not None:
        by_id = {each["snapshot_id"]: each for each in known.to_pylist(maps_as_pydicts="strict")}
        found = [by_id[each.snapshot_id] for each in shown]
        for each in found:
            each["summary"] = counted(each["summary"] or {})
            each["refs"] = heads.get(each["snapshot_id"], [])
        print_json(found)
        return
    rows = []
    for each in shown:
        summary = counted(each.summary or {})
        rows.append(
            {
                "sequence": each.sequence_number,
                "snapshot": each.snapshot_id,
                "at": moment(each.timestamp_ms),
                "operation": each.operation,
                "files": _files(summary),
                "rows": summary.get("total-records"),
                "refs": heads.get(each.snapshot_id, []),
            }
        )
    headings = {"sequence": "#", "snapshot": "SNAPSHOT", "at": "AT", "operation": "OPERATION"}
    headings |= {"files": "FILES", "rows": "ROWS", "refs": "REFS"}
    print_rows(
        rows,
        headings,
        empty="No snapshots: nothing was ever committed.",
        more=total - len(rows),
    )


def _files(summary: Mapping[str, Any]) -> str:
    """Return how many data files came and went: `+3 -1`."""
    came, went = summary.get("added-data-files", 0), summary.get("deleted-data-files", 0)
    return " ".join(filter(None, (f"+{came}" if came else "", f"-{went}" if went else "")))


@click.command()
@table_argument
@as_json_option
@pass_lake
def refs(lake: Chosen, name: str, as_json: bool) -> None:
    """List branches and tags."""
    from icetree.cli.output import print_json, print_rows

    with lake.table(name) as table:
        rows = table.inspect.refs().sort_by("name").to_pylist()
    if as_json:
        print_json(rows)
        return
    headings = {"name": "NAME", "type": "TYPE", "snapshot_id": "SNAPSHOT"}
    kept = {
        "max_reference_age_in_ms": "MAX AGE MS",
        "min_snapshots_to_keep": "MIN SNAPSHOTS",
        "max_snapshot_age_in_ms": "MAX SNAPSHOT AGE MS",
    }
    # Few say how long they stay.
    headings |= {key: word for key, word in kept.items() if any(row[key] for row in rows)}
    print_rows(rows, headings, empty="No branches or tags: nothing was ever committed.")


@click.command()
@table_argument
@click.option("--since", metavar="POINT", help="Exclusive; from the very start without.")
@click.option("--upto", metavar="POINT", help="Inclusive; up to now without.")
@click.option("--net", is_flag=True, help="Only what is different between start and end.")
@limit_option(100)
@as_json_option
@pass_lake
def changes(
    lake: Chosen,
    name: str,
    since: str | None,
    upto: str | None,
    net: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List the files that came and went.

    A POINT is a snapshot id, a branch or tag, or a time such as 2026-01-31T12:00:00Z.
    """
    from icetree.cli.output import print_json, print_rows
    from icetree.table.changes.changes import ChangeRange

    with lake.table(name) as table:
        range_ = ChangeRange(table, since=since, upto=upto)
        found = range_.net() if net else range_.files()
    if as_json:
        print_json(found.to_pylist())
        return
    rows = found.slice(0, limit).to_pylist()
    for row in rows:
        row["kind"] = kind_of(row["content"], row["file_format"])
        of_rows = row["kind"] == "data DV"
        row["file"] = row["referenced_data_file" if of_rows else "file_path"]
    headings = {} if net else {"snapshot_id": "SNAPSHOT", "operation": "OPERATION"}
    headings |= {"change": "CHANGE", "kind": "KIND", "record_count": "ROWS", "file": "FILE"}
    more = found.num_rows - len(rows)
    print_rows(rows, headings, empty="No changes.", more=more, folder=table.location)


def kind_of(content: int, file_format: str) -> str:
    """Return what an entry is, in words."""
    if content == 1 and file_format.lower() == "puffin":
        return "data DV"
    return ("data", "position deletes", "equality deletes")[content]
