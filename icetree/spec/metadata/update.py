"""Changes of table metadata that a transaction can hold, named as in the REST catalog spec.

`spec.apply` carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from icetree.spec.metadata.layout import PartitionSpec, SortOrder
from icetree.spec.metadata.metadata import EncryptionKey, PartitionStatisticsFile, StatisticsFile
from icetree.spec.metadata.snapshot import Ref, Snapshot
from icetree.spec.schema.expressions import Expression
from icetree.spec.short import short

#: In place of an id: the one that this list of updates added last.
LAST_ADDED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignUUID:
    """Give the table its identity, which never changes."""

    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeFormatVersion:
    """Raise the format version; to v4, transforms become expressions."""

    format_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSchema:
    """Add a schema (JSON, every column with its id); one that is there already is reused."""

    schema: Mapping[str, Any]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCurrentSchema:
    """Choose the schema for what is written from now on."""

    schema_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True, kw_only=True)
class AddExpression:
    """Add an expression (v4), with an id above every id given so far."""

    expression: Expression

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameExpressions:
    """Give expressions (v4) other names, all at once; ids are what matters to files."""

    names: Mapping[int, str]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionSpec:
    """Add a spec; one with the same fields is reused."""

    spec: PartitionSpec

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefaultSpec:
    """Choose the spec for files written from now on."""

    spec_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSortOrder:
    """Add a sort order; one with the same fields is reused."""

    sort_order: SortOrder

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefaultSortOrder:
    """Choose the sort order for files written from now on."""

    sort_order_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSchemas:
    """Forget schemas, none of which is the current one or an inline snapshot's."""

    schema_ids: tuple[int, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePartitionSpecs:
    """Forget specs, none of which is the default one; no file may be of them."""

    spec_ids: tuple[int, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveExpressions:
    """Forget expressions (v4) that no spec names; their ids are never given again."""

    expr_ids: tuple[int, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSortOrders:
    """Forget sort orders, none of which is the default one."""

    sort_order_ids: tuple[int, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperties:
    """Set table properties."""

    updates: Mapping[str, str]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveProperties:
    """Remove table properties; missing ones are ignored."""

    removals: tuple[str, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLocation:
    """Change where new files go. In v4 relative locations follow: the files must be there."""

    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSnapshot:
    """Add a snapshot that no ref points to yet."""

    snapshot: Snapshot

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSnapshot:
    """Bring a snapshot back from a page of history, so that a ref can point to it.

    Only while the page is there: expiry and merging replace pages, and an expired snapshot
    must not come back.
    """

    snapshot: Snapshot
    page_location: str

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSnapshotPages:
    """Forget pages of history that are lost, with the snapshots on them: for repair."""

    locations: tuple[str, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSnapshotRef:
    """Create or move a branch or tag."""

    ref_name: str
    ref: Ref

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSnapshotRef:
    """Drop a branch or tag; without `main` the table has no current snapshot."""

    ref_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSnapshots:
    """Forget snapshots that no ref points to; with history in pages, `spec.metadata.pages` does it."""

    snapshot_ids: tuple[int, ...]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSnapshots:
    """Forget snapshots that no ref points to, wherever they are, on pages of history too.

    Ids that are not there any more are ignored.
    """

    snapshot_ids: frozenset[int]

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatistics:
    """Register a statistics file in place of any other of its snapshot."""

    statistics: StatisticsFile

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveStatistics:
    """Forget the statistics of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPartitionStatistics:
    """Register a partition statistics file in place of any other of its snapshot."""

    partition_statistics: PartitionStatisticsFile

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePartitionStatistics:
    """Forget the partition statistics of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddEncryptionKey:
    """Add an encryption key."""

    encryption_key: EncryptionKey

    __repr__ = short


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveEncryptionKey:
    """Forget an encryption key that no snapshot and no other key uses."""

    key_id: str


Update: TypeAlias = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddExpression
    | RenameExpressions
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | RemoveSchemas
    | RemovePartitionSpecs
    | RemoveExpressions
    | RemoveSortOrders
    | SetProperties
    | RemoveProperties
    | SetLocation
    | AddSnapshot
    | RecallSnapshot
    | DropSnapshotPages
    | SetSnapshotRef
    | RemoveSnapshotRef
    | RemoveSnapshots
    | ExpireSnapshots
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | AddEncryptionKey
    | RemoveEncryptionKey
)
