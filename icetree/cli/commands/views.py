"""What the commands for tables tell of a view, and do with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icetree.cli.commands.layout import columns_of, print_columns
from icetree.errors import InvalidInput

if TYPE_CHECKING:
    from icetree.table.lake import Lake
    from icetree.table.views.view import View


def tell_view(view: View, *, as_json: bool) -> None:
    """Print what a view is."""
    from icetree.cli.output import print_facts, print_json

    found = described(view)
    if as_json:
        print_json(found)
        return
    print_facts(
        {
            "view": found["name"],
            "location": found["location"],
            "uuid": found["uuid"],
            "versions": found["version_count"],
            "namespace": found["namespace"] or "none",
            "properties": [f"{k}={v}" for k, v in found["properties"].items()] or "none",
            **{f"query ({dialect})": text for dialect, text in found["texts"].items()},
        }
    )
    print()
    print_columns(found["columns"])


def described(view: View) -> dict[str, Any]:
    """Return a view as plain values."""
    return {
        "name": str(view.name),
        "kind": "view",
        "location": view.location,
        "metadata_location": view.state.metadata_location,
        "uuid": view.metadata.view_uuid,
        "namespace": view.namespace,
        "texts": dict(view.texts),
        "version_count": len(view.metadata.versions),
        "columns": columns_of(view.schema),
        "properties": dict(view.properties),
    }


def drop_view(connection: Lake, name: str, *, purge: bool, yes: bool, as_json: bool) -> None:
    """Remove a view's name, or tell what that would be."""
    from icetree.cli.output import print_json, say

    if purge:
        raise InvalidInput(f"{name} is a view: it has no rows, so leave out --purge")
    at = connection.view(name).state.metadata_location
    if yes:
        connection.drop_view(name)
    if as_json:
        print_json({"name": name, "metadata_location": at, "dry_run": not yes, "result": None})
    elif yes:
        say(f"dropped {name}; its newest metadata was {at}")
    else:
        say(f"would drop {name}, whose newest metadata is {at}")
        click.echo("nothing was changed: repeat with --yes to do it")
