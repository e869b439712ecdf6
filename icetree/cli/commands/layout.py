"""The commands that tell how a table is laid out: `schema`, `spec` and `properties`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, pairs, pass_lake, table_argument
from icetree.errors import InvalidInput

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from icetree.spec.metadata.metadata import TableMetadata

_all_option = click.option("--all", "former", is_flag=True, help="Former ones too, oldest first.")


@click.command()
@table_argument
@_all_option
@as_json_option
@pass_lake
def schema(lake: Chosen, name: str, former: bool, as_json: bool) -> None:
    """Show the columns, with the ids that they keep for ever."""
    from icetree.cli.output import print_json, say_lines

    with lake.table(name) as table:
        now = table.metadata
        chosen = (
            [now.schema(each["schema-id"]) for each in now.schemas] if former else [table.schema]
        )
    found: list[dict[str, Any]] = [
        {
            "schema_id": each.schema_id,
            "is_default": each.schema_id == now.current_schema_id,
            "columns": columns_of(each),
        }
        for each in chosen
    ]
    if as_json:
        print_json(found if former else found[0])
        return
    for at, each in enumerate(found):
        if former:
            mark = ", in use" if each["is_default"] else ""
            say_lines(f"{'' if at == 0 else chr(10)}schema {each['schema_id']}{mark}")
        print_columns(each["columns"])


def columns_of(schema: Schema) -> list[dict[str, Any]]:
    """Return columns as plain values."""
    from icetree.spec.schema.types import type_text

    return [
        {
            "id": field.field_id,
            "name": field.name,
            "type": type_text(field.field_type),
            "required": field.required,
            "doc": field.doc,
        }
        for field in schema.fields
    ]


def print_columns(columns: list[dict[str, Any]]) -> None:
    """Print columns as a table; a doc has a column only where there is one."""
    from icetree.cli.output import print_rows

    headings = {"id": "ID", "name": "COLUMN", "type": "TYPE", "required": "REQUIRED"}
    if any(each["doc"] for each in columns):
        headings["doc"] = "DOC"
    print_rows(columns, headings, empty="No columns.")


@click.command()
@table_argument
@_all_option
@as_json_option
@pass_lake
def spec(lake: Chosen, name: str, former: bool, as_json: bool) -> None:
    """Show what new files are partitioned and sorted by."""
    from icetree.cli.output import print_facts, print_json, print_rows

    with lake.table(name) as table:
        now = table.metadata
        found = _specs(now)
        order_by = [*table.sort_order]
    default = next(each for each in found if each["is_default"])
    if as_json:
        print_json(found if former else {**default, "order_by": order_by})
    elif former:
        for each in found:
            each["partition_by"] = each["partition_by"] or "nothing"
        headings = {"spec_id": "SPEC", "is_default": "IN USE", "partition_by": "PARTITIONED BY"}
        print_rows(found, headings, empty="No specs.")
    else:
        print_facts(
            {
                "partitioned by": ", ".join(default["partition_by"]) or "nothing",
                "ordered by": ", ".join(order_by) or "nothing",
                "spec": default["spec_id"],
            }
        )


def _specs(metadata: TableMetadata) -> list[dict[str, Any]]:
    from icetree.spec.edit.words import partition_words

    return [
        {
            "spec_id": each.spec_id,
            "is_default": each.spec_id == metadata.default_spec_id,
            "partition_by": [*partition_words(metadata, each.spec_id)],
        }
        for each in metadata.partition_specs
    ]


@click.command()
@table_argument
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="Set one; repeat for more.")
@click.option("--unset", multiple=True, metavar="KEY", help="Remove one; repeat for more.")
@click.option("--yes", is_flag=True, help="Unset; without, only say what would be done.")
@as_json_option
@pass_lake
def properties(
    lake: Chosen,
    name: str,
    set_: tuple[str, ...],
    unset: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Show a table's properties, or set and unset some in one commit."""
    from icetree.cli.output import print_json, print_rows, say

    if yes and not unset:
        raise InvalidInput(
            "--yes is for --unset: properties are shown and set at once, leave it out"
        )
    given = pairs(set_, option="--set")
    with lake.table(name) as table:
        if unset and not yes:
            if as_json:
                print_json({"properties": dict(sorted(table.properties.items())), "dry_run": True})
                return
            kept = f", and set {', '.join(given)}" if given else ""
            say(f"would unset {', '.join(unset)} of {table.name}{kept}")
            click.echo("nothing was changed: repeat with --yes to do it")
            return
        if set_ or unset:
            with table.transaction() as tx:
                if set_:
                    tx.set_properties(given)
                if unset:
                    tx.remove_properties(*unset)
        found = dict(sorted(table.refresh().properties.items()))
    if as_json:
        print_json({"properties": found})
        return
    rows = [{"key": key, "value": value} for key, value in found.items()]
    print_rows(rows, {"key": "PROPERTY", "value": "VALUE"}, empty="No properties are set.")
