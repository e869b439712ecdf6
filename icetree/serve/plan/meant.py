"""Which schema is meant by who asks for a snapshot's own: that one, or the table's of today.

Iceberg Java 1.11 pins every read of Spark's to a snapshot and asks for its schema, also where the table
has another since: its columns have their names of today all the same. Of a branch's head both may be
meant; names tell which.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pyiceberg.schema import Schema

from icetree.errors import InvalidInput
from icetree.filters.from_json import filter_from_json
from icetree.filters.to_json import names_in
from icetree.spec.metadata import TableMetadata
from icetree.spec.snapshot import Snapshot


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

    The snapshot's own, where both are such. But of a head a filter's name may mean another column
    today: then nothing is ruled out by it, as its client will test rows; or, where it may leave that to
    whole partitions, it means what it does today.
    """
    then, now = metadata.schema(snapshot.schema_id), metadata.schema()
    if then.schema_id == now.schema_id:
        return Meant(schema=then)
    found = {
        id(schema): ids
        for schema in (then, now)
        if (ids := _ids(schema, names, filter, case_sensitive)) is not None
    }
    if id(then) not in found:
        return Meant(schema=now if id(now) in found else then)
    is_head = any(each.snapshot_id == snapshot.snapshot_id for each in _branches(metadata))
    if not is_head or found.get(id(now), found[id(then)]) == found[id(then)]:
        return Meant(schema=then)
    if any(spec.fields for spec in metadata.partition_specs):
        return Meant(schema=now)
    return Meant(schema=now, is_unsure=True)


def _branches(metadata: TableMetadata) -> Collection[Any]:
    return [each for each in metadata.refs.values() if each.type == "branch"]


def _ids(
    schema: Schema, names: Collection[str], filter: Any, case_sensitive: bool
) -> dict[str, int] | None:
    """Return the columns that a filter looks at, by its names; None where names mean nothing."""
    try:
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
