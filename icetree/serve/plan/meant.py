"""Which schema is meant by who asks for a snapshot's own: that one, or the table's of another day.

Iceberg Java 1.11 pins every read of Spark's to a snapshot and asks for its schema, also where the table
has another since: its columns have the names that they had when it loaded the table. Others may have
committed meanwhile, so that nothing tells one that was pinned just now from one of long ago.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pyiceberg.schema import Schema

from icetree.errors import InvalidInput
from icetree.filters.from_json import filter_from_json
from icetree.filters.to_json import names_in
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """A schema, and whether the filter's names may mean columns of another one."""

    schema: Schema
    is_unsure: bool = False


def schema_meant(
    metadata: TableMetadata,
    snapshot: Snapshot,
    names: Collection[str],
    filter: Any,
    *,
    case_sensitive: bool,
) -> Meant:
    """Return the schema in which all names, and the filter's, are those of columns.

    The snapshot's own, where it is one. But in another of the table's schemas a filter's name may mean
    another column: then nothing is ruled out by it, as its client will test rows. Where it may leave
    that to whole partitions, the name means, of a branch's head, what it does today.
    """
    then, now = metadata.schema(snapshot.schema_id), metadata.schema()
    if then.schema_id == now.schema_id:
        return Meant(schema=then)
    found = {
        each["schema-id"]: ids
        for each in metadata.schemas
        if (ids := _ids(metadata, each["schema-id"], names, filter, case_sensitive)) is not None
    }
    meant, today = found.get(then.schema_id), found.get(now.schema_id)
    if meant is None:
        return Meant(schema=then if today is None else now)
    is_head = any(each.snapshot_id == snapshot.snapshot_id for each in _branches(metadata))
    schema = now if is_head and today not in (None, meant) else then
    tests_rows = not any(spec.fields for spec in metadata.partition_specs)
    is_unsure = any(ids != meant for ids in found.values())
    return Meant(schema=schema, is_unsure=tests_rows and is_unsure)


def _branches(metadata: TableMetadata) -> Collection[Any]:
    return [each for each in metadata.refs.values() if each.type == "branch"]


def _ids(
    metadata: TableMetadata,
    schema_id: int,
    names: Collection[str],
    filter: Any,
    case_sensitive: bool,
) -> dict[str, int] | None:
    """Return the columns that a filter looks at, by its names; None where names mean nothing."""
    try:
        schema = metadata.schema(schema_id)
        for name in names:
            schema.find_field(name, case_sensitive=case_sensitive)
        if filter is None:
            return {}
        where = filter_from_json(filter, schema, case_sensitive=case_sensitive)
        return {
            name: schema.find_field(name, case_sensitive=case_sensitive).field_id
            for name in names_in(where)
        }
    except (ValueError, InvalidInput):
        return None
