"""Columns with names that icetree gives to none, as tables of other writers may have them."""

from __future__ import annotations

from collections.abc import Mapping

from icetree.spec.metadata.update import AddSchema, SetCurrentSchema
from icetree.table.table import Table


def rename_as_others_may(table: Table, names: Mapping[str, str]) -> None:
    """Give columns other names, past all rules for them."""
    schema = table.metadata.schema_json()
    body = {name: value for name, value in schema.items() if name != "schema-id"}
    body["fields"] = [
        {**field, "name": names.get(field["name"], field["name"])} for field in schema["fields"]
    ]
    with table.transaction() as transaction:
        transaction.update_metadata(AddSchema(schema=body), SetCurrentSchema())
