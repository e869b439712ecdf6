"""The commands `ls`, `create` and `describe`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from icetree.cli.commands.layout import columns_of, print_columns
from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pairs, pass_lake, table_argument
from icetree.cli.summary import counted

if TYPE_CHECKING:
    from icetree.table.table import Table


@click.command()
@click.argument("namespace", required=False)
@as_json_option
@pass_lake
def ls(lake: Chosen, namespace: str | None, as_json: bool) -> None:
    """List namespaces, tables and views."""
    from icetree.cli.output import print_json, print_rows

    with lake.open() as connection:
        inner = connection.namespaces(namespace or "")
        rows = [{"kind": "namespace", "name": name} for name in inner]
        for each in [namespace] if namespace else inner:
            rows += [{"kind": "table", "name": name} for name in connection.tables(each)]
            rows += [{"kind": "view", "name": name} for name in connection.views(each)]
    if as_json:
        print_json(rows)
    else:
        print_rows(
            rows,
            {"kind": "KIND", "name": "NAME"},
            empty="Nothing here yet: make a table with icetree create.",
        )


@click.command()
@table_argument
@click.option(
    "--schema",
    "columns",
    required=True,
    metavar="COLUMNS",
    help='Such as "id long not null, ts timestamptz, tags list<string>".',
)
@click.option(
    "--partition-by", multiple=True, metavar="TRANSFORM", help='Such as "day(ts)"; may be repeated.'
)
@click.option(
    "--order-by", multiple=True, metavar="KEY", help='Such as "ts desc"; may be repeated.'
)
@click.option("--set", "properties", multiple=True, metavar="KEY=VALUE", help="A table property.")
@click.option("--location", help="The table's folder; below the warehouse without.")
@as_json_option
@pass_lake
def create(
    lake: Chosen,
    name: str,
    columns: str,
    partition_by: tuple[str, ...],
    order_by: tuple[str, ...],
    properties: tuple[str, ...],
    location: str | None,
    as_json: bool,
) -> None:
    """Make an empty table, and its namespace."""
    from icetree.spec.schema.text import read_columns

    schema = read_columns(columns)
    with lake.making(name) as connection:
        table = connection.create_table(
            name,
            schema,
            partition_by=split_terms(partition_by),
            order_by=split_terms(order_by),
            properties=pairs(properties, option="--set"),
            location=location,
        )
        tell_made(table, as_json=as_json)


def tell_made(table: Table, *, as_json: bool, more: str = "") -> None:
    """Tell of a table that was made, as `describe` has it in JSON."""
    from icetree.cli.output import print_json, say

    if as_json:
        print_json(described(table))
    else:
        say(f"Made {table.name} at {table.location}{more}")


def split_terms(texts: tuple[str, ...]) -> list[str]:
    """Split lists such as `day(ts), bucket(16, id)` at the commas outside parentheses."""
    found = []
    for text in texts:
        depth, start = 0, 0
        for at, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                found.append(text[start:at].strip())
                start = at + 1
        found.append(text[start:].strip())
    return [each for each in found if each]


@click.command()
@table_argument
@as_json_option
@pass_lake
def describe(lake: Chosen, name: str, as_json: bool) -> None:
    """Show a table's columns, layout and size; or a view's columns and query."""
    from icetree.cli.commands.views import tell_view
    from icetree.cli.output import print_facts, print_json

    with lake.open() as connection:
        if connection.view_exists(name):
            tell_view(connection.view(name), as_json=as_json)
            return
        found = described(connection.table(name))
    if as_json:
        print_json(found)
        return
    current = found["current_snapshot"] or {}
    facts = {
        "table": found["name"],
        "location": found["location"],
        "format version": found["format_version"],
        "uuid": found["uuid"],
        "partitioned by": ", ".join(found["partition_by"]) or "nothing",
        "ordered by": ", ".join(found["order_by"]) or "nothing",
        "snapshots": found["snapshot_count"],
        "current snapshot": current.get("snapshot_id") or "none: the table is empty",
        "data files": current.get("data_files"),
        "delete files": current.get("delete_files") or None,
        "rows": current.get("record_count"),
        "bytes": current.get("file_size_in_bytes"),
        "properties": [f"{k}={v}" for k, v in found["properties"].items()] or "none",
    }
    print_facts({key: value for key, value in facts.items() if value is not None})
    print()
    print_columns(found["columns"])


def described(table: Table) -> dict[str, Any]:
    """Return a table as plain values."""
    metadata = table.metadata
    snapshot = table.current_snapshot
    current = None
    if snapshot is not None:
        totals = counted(snapshot.summary or {})
        current = {
            "snapshot_id": snapshot.snapshot_id,
            "sequence_number": snapshot.sequence_number,
            "committed_at": datetime.fromtimestamp(snapshot.timestamp_ms / 1000, tz=timezone.utc),
            "operation": snapshot.operation,
            "record_count": totals.get("total-records"),
            "data_files": totals.get("total-data-files"),
            "delete_files": totals.get("total-delete-files"),
            "file_size_in_bytes": totals.get("total-files-size"),
        }
    return {
        "name": str(table.name),
        "location": table.location,
        "metadata_location": table.state.metadata_location,
        "format_version": metadata.format_version,
        "uuid": metadata.table_uuid,
        "columns": columns_of(table.schema),
        "partition_by": [*table.spec],
        "order_by": [*table.sort_order],
        "properties": dict(table.properties),
        "refs": {name: ref.snapshot_id for name, ref in table.refs.items()},
        "snapshot_count": len(metadata.snapshots)
        + sum(page.count for page in metadata.snapshot_pages),
        "current_snapshot": current,
    }
