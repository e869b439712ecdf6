"""What a client changes, in the words of the protocol: one class for each kind of update."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from icetree.serve.protocol.bodies import Body
from icetree.spec.metadata.layout import PartitionField, SortField
from icetree.spec.metadata.metadata import EncryptionKey, PartitionStatisticsFile, StatisticsFile
from icetree.spec.noun import Int, Long


class Action(Body, tag_field="action", frozen=True, kw_only=True):
    """An update of a table."""


class Field(Body, frozen=True, kw_only=True):
    """A partition field: its id may be left to us."""

    name: str
    transform: str
    source_id: Int | None = None
    source_ids: tuple[Int, ...] | None = None
    field_id: Int | None = None

    def noun(self) -> PartitionField:
        """Return the field as ours; 0 is an id that is to be given."""
        return PartitionField(
            source_id=self.source_id,
            source_ids=self.source_ids if self.source_id is None else None,
            field_id=self.field_id or 0,
            name=self.name,
            transform=self.transform,
        )


class Spec(Body, frozen=True, kw_only=True):
    """A partition spec."""

    fields: list[Field]


class Key(Body, frozen=True, kw_only=True):
    """A key of a sort order."""

    transform: str
    source_id: Int | None = None
    source_ids: tuple[Int, ...] | None = None
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]

    def noun(self) -> SortField:
        """Return the key as ours."""
        return SortField(
            transform=self.transform,
            source_id=self.source_id,
            source_ids=self.source_ids if self.source_id is None else None,
            direction=self.direction,
            null_order=self.null_order,
        )


class Order(Body, frozen=True, kw_only=True):
    """A sort order."""

    fields: list[Key]


class AssignUUID(Action, tag="assign-uuid", frozen=True, kw_only=True):
    uuid: str


class UpgradeFormatVersion(Action, tag="upgrade-format-version", frozen=True, kw_only=True):
    format_version: int


class AddSchema(Action, tag="add-schema", frozen=True, kw_only=True):
    schema: dict[str, Any]


class SetCurrentSchema(Action, tag="set-current-schema", frozen=True, kw_only=True):
    schema_id: int


class AddSpec(Action, tag="add-spec", frozen=True, kw_only=True):
    spec: Spec


class SetDefaultSpec(Action, tag="set-default-spec", frozen=True, kw_only=True):
    spec_id: int


class AddSortOrder(Action, tag="add-sort-order", frozen=True, kw_only=True):
    sort_order: Order


class SetDefaultSortOrder(Action, tag="set-default-sort-order", frozen=True, kw_only=True):
    sort_order_id: int


#: What a snapshot must have, and of which type.
_OF_A_SNAPSHOT: Final = {
    "snapshot-id": int,
    "parent-snapshot-id": int | None,
    "sequence-number": int | None,
    "manifest-list": str,
}


class AddSnapshot(Action, tag="add-snapshot", frozen=True, kw_only=True):
    #: As it came, but for what tells it from others: whoever turns it into changes reads the rest.
    snapshot: dict[str, Any]

    def __post_init__(self) -> None:
        for name, kinds in _OF_A_SNAPSHOT.items():
            if not isinstance(found := self.snapshot.get(name), kinds) or found is True:
                raise ValueError(f"{name} of a snapshot is {found!r:.80}")


class SetSnapshotRef(Action, tag="set-snapshot-ref", frozen=True, kw_only=True):
    ref_name: str
    type: Literal["branch", "tag"]
    snapshot_id: Long
    max_ref_age_ms: Long | None = None
    max_snapshot_age_ms: Long | None = None
    min_snapshots_to_keep: Int | None = None


class RemoveSnapshots(Action, tag="remove-snapshots", frozen=True, kw_only=True):
    snapshot_ids: list[Long]


class RemoveSnapshotRef(Action, tag="remove-snapshot-ref", frozen=True, kw_only=True):
    ref_name: str


class SetLocation(Action, tag="set-location", frozen=True, kw_only=True):
    location: str


class SetProperties(Action, tag="set-properties", frozen=True, kw_only=True):
    updates: dict[str, str]


class RemoveProperties(Action, tag="remove-properties", frozen=True, kw_only=True):
    removals: list[str]


class SetStatistics(Action, tag="set-statistics", frozen=True, kw_only=True):
    statistics: StatisticsFile


class RemoveStatistics(Action, tag="remove-statistics", frozen=True, kw_only=True):
    snapshot_id: Long


class SetPartitionStatistics(Action, tag="set-partition-statistics", frozen=True, kw_only=True):
    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(
    Action, tag="remove-partition-statistics", frozen=True, kw_only=True
):
    snapshot_id: Long


class RemovePartitionSpecs(Action, tag="remove-partition-specs", frozen=True, kw_only=True):
    spec_ids: list[Int]


class RemoveSchemas(Action, tag="remove-schemas", frozen=True, kw_only=True):
    schema_ids: list[Int]


class AddEncryptionKey(Action, tag="add-encryption-key", frozen=True, kw_only=True):
    encryption_key: EncryptionKey


class RemoveEncryptionKey(Action, tag="remove-encryption-key", frozen=True, kw_only=True):
    key_id: str


AnyAction: TypeAlias = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)
