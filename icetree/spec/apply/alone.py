"""What updates do that look at nothing but the metadata: `spec.apply` calls them, one by one."""

from __future__ import annotations

from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.metadata.encryption import without_keys
from icetree.spec.metadata.metadata import StatisticsFile, TableMetadata
from icetree.spec.metadata.update import (
    AddEncryptionKey,
    RemoveEncryptionKey,
    RemoveExpressions,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveSchemas,
    RemoveSortOrders,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)


def remove_schemas(m: TableMetadata, update: RemoveSchemas) -> TableMetadata:
    """Return the metadata without schemas; ids that are not there are ignored."""
    gone = {*update.schema_ids}
    used = {each.schema_id for each in m.snapshots}
    for id in gone & {m.current_schema_id, *used}:
        raise InvalidInput(f"schema {id} cannot go: it is the current one, or a snapshot's")
    return replace(m, schemas=tuple(e for e in m.schemas if e["schema-id"] not in gone))


def remove_specs(m: TableMetadata, update: RemovePartitionSpecs) -> TableMetadata:
    """Return the metadata without specs; ids that are not there are ignored."""
    gone = {*update.spec_ids}
    if m.default_spec_id in gone:
        raise InvalidInput(f"partition spec {m.default_spec_id} cannot go: it is the default one")
    return replace(m, partition_specs=tuple(e for e in m.partition_specs if e.spec_id not in gone))


def remove_expressions(m: TableMetadata, update: RemoveExpressions) -> TableMetadata:
    """Return the metadata without expressions; ids that are not there are ignored."""
    gone = {*update.expr_ids}
    for spec in m.partition_specs:
        for id in gone & {*spec.expr_ids}:
            raise InvalidInput(f"expression {id} cannot go: partition spec {spec.spec_id} has it")
    return replace(m, expressions=tuple(e for e in m.expressions if e.expr_id not in gone))


def remove_orders(m: TableMetadata, update: RemoveSortOrders) -> TableMetadata:
    """Return the metadata without sort orders; ids that are not there are ignored."""
    gone = {*update.sort_order_ids}
    if m.default_sort_order_id in gone:
        raise InvalidInput(f"sort order {m.default_sort_order_id} cannot go: it is the default one")
    return replace(m, sort_orders=tuple(e for e in m.sort_orders if e.order_id not in gone))


def set_statistics(m: TableMetadata, update: SetStatistics) -> TableMetadata:
    """Return the metadata with statistics in place of any other of their snapshot."""
    new = update.statistics
    return _with_statistics(m, new.snapshot_id, new)


def remove_statistics(m: TableMetadata, update: RemoveStatistics) -> TableMetadata:
    """Return the metadata without the statistics of a snapshot."""
    return _with_statistics(m, update.snapshot_id)


def _with_statistics(m: TableMetadata, snapshot_id: int, *new: StatisticsFile) -> TableMetadata:
    """Return the metadata with the statistics of a snapshot; the key of former ones goes."""
    former = {each.key_metadata for each in m.statistics if each.snapshot_id == snapshot_id}
    others = (each for each in m.statistics if each.snapshot_id != snapshot_id)
    after = replace(m, statistics=(*others, *new))
    needed = {each.key_metadata for each in after.statistics}
    needed |= {each.key_id for each in m.snapshots}
    return without_keys(after, former - needed)


def set_partition_statistics(m: TableMetadata, update: SetPartitionStatistics) -> TableMetadata:
    """Return the metadata with partition statistics in place of any other of their snapshot."""
    new = update.partition_statistics
    others = (each for each in m.partition_statistics if each.snapshot_id != new.snapshot_id)
    return replace(m, partition_statistics=(*others, new))


def remove_partition_statistics(
    m: TableMetadata, update: RemovePartitionStatistics
) -> TableMetadata:
    """Return the metadata without the partition statistics of a snapshot."""
    kept = tuple(e for e in m.partition_statistics if e.snapshot_id != update.snapshot_id)
    return replace(m, partition_statistics=kept)


def add_key(m: TableMetadata, update: AddEncryptionKey) -> TableMetadata:
    """Return the metadata with an encryption key."""
    key = update.encryption_key
    if m.format_version < 3:
        raise InvalidInput(f"encryption keys need v3, this table is v{m.format_version}")
    if any(each.key_id == key.key_id for each in m.encryption_keys):
        raise InvalidInput(f"there is an encryption key {key.key_id!r}")
    return replace(m, encryption_keys=(*m.encryption_keys, key))


def remove_key(m: TableMetadata, update: RemoveEncryptionKey) -> TableMetadata:
    """Return the metadata without an encryption key, which nothing may need."""
    id = update.key_id
    if all(each.key_id != id for each in m.encryption_keys):
        raise InvalidInput(f"there is no encryption key {id!r}")
    if m.snapshot_pages:
        raise InvalidInput(f"snapshots in history pages may need encryption key {id!r}")
    for snapshot in m.snapshots:
        if snapshot.key_id == id:
            raise InvalidInput(f"snapshot {snapshot.snapshot_id} needs encryption key {id!r}")
    for each in m.statistics:
        if each.key_metadata == id:
            raise InvalidInput(
                f"statistics of snapshot {each.snapshot_id} need encryption key {id!r}"
            )
    for key in m.encryption_keys:
        if key.encrypted_by_id == id and key.key_id != id:
            raise InvalidInput(f"encryption key {key.key_id!r} is wrapped by {id!r}")
    return replace(m, encryption_keys=tuple(e for e in m.encryption_keys if e.key_id != id))
