"""What a client requires of a table before it is changed, in the words of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from icetree.errors import AlreadyExists, CommitConflict
from icetree.serve.protocol.bodies import Body
from icetree.spec.metadata.metadata import TableMetadata


class AssertCreate(Body, tag_field="type", tag="assert-create", frozen=True, kw_only=True):
    """There is no such table yet."""


class AssertUUID(Body, tag_field="type", tag="assert-table-uuid", frozen=True, kw_only=True):
    """It is this very table."""

    uuid: str


class AssertRef(Body, tag_field="type", tag="assert-ref-snapshot-id", frozen=True, kw_only=True):
    """A branch or tag points there; to nothing where it is not to be."""

    ref: str
    snapshot_id: int | None = None


class AssertLastColumn(
    Body, tag_field="type", tag="assert-last-assigned-field-id", frozen=True, kw_only=True
):
    """No column came since."""

    last_assigned_field_id: int


class AssertSchema(
    Body, tag_field="type", tag="assert-current-schema-id", frozen=True, kw_only=True
):
    """The current schema is that one."""

    current_schema_id: int


class AssertLastPartition(
    Body, tag_field="type", tag="assert-last-assigned-partition-id", frozen=True, kw_only=True
):
    """No partition field came since."""

    last_assigned_partition_id: int


class AssertSpec(Body, tag_field="type", tag="assert-default-spec-id", frozen=True, kw_only=True):
    """The default partition spec is that one."""

    default_spec_id: int


class AssertOrder(
    Body, tag_field="type", tag="assert-default-sort-order-id", frozen=True, kw_only=True
):
    """The default sort order is that one."""

    default_sort_order_id: int


Requirement: TypeAlias = (
    AssertCreate
    | AssertUUID
    | AssertRef
    | AssertLastColumn
    | AssertSchema
    | AssertLastPartition
    | AssertSpec
    | AssertOrder
)

#: What is compared, by the requirement's field; and the fact of `table.state` that tells it again.
_COMPARED: Final[Mapping[type[Any], tuple[str, Callable[[TableMetadata], Any], str]]] = {
    AssertUUID: ("uuid", lambda m: m.table_uuid, "table uuid"),
    AssertLastColumn: ("last_assigned_field_id", lambda m: m.last_column_id, "last column id"),
    AssertSchema: ("current_schema_id", lambda m: m.current_schema_id, "current schema"),
    AssertLastPartition: (
        "last_assigned_partition_id",
        lambda m: m.last_partition_id,
        "last partition id",
    ),
    AssertSpec: ("default_spec_id", lambda m: m.default_spec_id, "default partition spec"),
    AssertOrder: (
        "default_sort_order_id",
        lambda m: m.default_sort_order_id,
        "default sort order",
    ),
}


def require(requirement: Requirement, shown: TableMetadata) -> str:
    """Return the fact that a requirement is about, after it was found to hold; CommitConflict.

    `shown` is the table as its clients see it, which is what they speak of.
    """
    match requirement:
        case AssertCreate():
            raise AlreadyExists("the table exists already")
        case AssertRef(ref=name, snapshot_id=wanted):
            ref = shown.refs.get(name)
            now = None if ref is None else ref.snapshot_id
            fact = told = f"ref {name}"
        case _:
            field, of, fact = _COMPARED[type(requirement)]
            wanted, now = getattr(requirement, field), of(shown)
            told = field.replace("_", " ")
    if wanted != now:
        raise CommitConflict(
            f"Requirement failed: {told} has changed: expected {wanted}, found {now}; load it again"
        )
    return fact


def asks_for_new(requirements: list[Requirement]) -> bool:
    """Tell whether the table is to be made."""
    return any(isinstance(each, AssertCreate) for each in requirements)
