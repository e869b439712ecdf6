"""What each update of table metadata does, and what it is refused for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.apply import alone
from icetree.spec.apply import history as past
from icetree.spec.apply.history import Forget
from icetree.spec.entry.stats import can_be_stored
from icetree.spec.fields import FORMAT_VERSION, LAST_STATS_FIELD, MAX_ID
from icetree.spec.metadata.column_uses import uses
from icetree.spec.metadata.encryption import require_same_secrecy, require_told
from icetree.spec.metadata.layout import PartitionField, expressions_for
from icetree.spec.metadata.metadata import TableMetadata, with_snapshot
from icetree.spec.metadata.pages import inline_forgotten
from icetree.spec.metadata.update import (
    LAST_ADDED,
    AddEncryptionKey,
    AddExpression,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    DropSnapshotPages,
    ExpireSnapshots,
    RecallSnapshot,
    RemoveEncryptionKey,
    RemoveExpressions,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveSortOrders,
    RemoveStatistics,
    RenameExpressions,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)
from icetree.spec.properties.values import properties_of
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema import columns
from icetree.spec.schema.expressions import Expression


@dataclass(slots=True, kw_only=True)
class _Progress:
    """What later updates of one list may refer to."""

    at_ms: int
    forget: Forget
    last_added: dict[str, int] = field(default_factory=dict)

    def resolve(self, kind: str, id: int, known: Iterable[int]) -> int:
        """Return the id meant, which must be known."""
        if id == LAST_ADDED:
            if kind not in self.last_added:
                raise InvalidInput(f"no {kind} was added, so there is no last one to choose")
            return self.last_added[kind]
        if id not in known:
            raise InvalidInput(f"there is no {kind} {id}")
        return id


def apply(
    metadata: TableMetadata,
    updates: Iterable[Update],
    *,
    at_ms: int,
    forget: Forget = inline_forgotten,
) -> TableMetadata:
    """Return the metadata after the updates, in order; InvalidInput changes nothing.

    `forget` takes snapshots away: whoever can read pages of history takes them off these, too.
    """
    progress = _Progress(at_ms=at_ms, forget=forget)
    before = metadata
    for update in updates:
        handler = _HANDLERS.get(type(update))
        if handler is None:
            raise InvalidInput(
                f"{update!r} is no update of a table: icetree.spec.metadata.update has them"
            )
        metadata = handler(metadata, update, progress)
    _keep_sources(before, metadata)
    broken = broken_rule(metadata)
    if broken is not None:
        raise InvalidInput(f"the updates would break the table: {broken}")
    return replace(metadata, last_updated_ms=at_ms)


def _keep_sources(before: TableMetadata, after: TableMetadata) -> None:
    """Refuse to take away columns that the table is partitioned or sorted by.

    Tables that lack one already, as old writers left them, can still be changed.
    """
    if after.current_schema_id == before.current_schema_id:
        return
    gone = columns.column_ids(before.schema_json()) - columns.column_ids(after.schema_json())
    for use in uses(after, {}, gone) if gone else ():
        raise InvalidInput(f"a column cannot go: {use}")


def _assign_uuid(m: TableMetadata, update: AssignUUID, _: _Progress) -> TableMetadata:
    if m.table_uuid not in {None, update.uuid}:
        raise InvalidInput(f"the table is {m.table_uuid} and cannot become {update.uuid}")
    return replace(m, table_uuid=update.uuid)


def _upgrade(m: TableMetadata, update: UpgradeFormatVersion, _: _Progress) -> TableMetadata:
    now, then = m.format_version, update.format_version
    if type(then) is not int or not now <= then <= FORMAT_VERSION:
        raise InvalidInput(f"a v{now} table can become v{now} to v{FORMAT_VERSION}, not v{then}")
    if now < 3 <= then:
        m = replace(m, next_row_id=m.next_row_id or 0)
    if now < 4 <= then:
        require_told(m)
        expressions, specs, last = expressions_for(m.partition_specs, m.last_column_id)
        _must_have_stats(expressions)
        m = replace(m, expressions=expressions, partition_specs=specs, last_column_id=last)
    return replace(m, format_version=then)


def _add_schema(m: TableMetadata, update: AddSchema, progress: _Progress) -> TableMetadata:
    body = {name: value for name, value in update.schema.items() if name != "schema-id"}
    for schema in m.schemas:
        if {name: value for name, value in schema.items() if name != "schema-id"} == body:
            progress.last_added["schema"] = schema["schema-id"]
            return m
    ids = columns.column_ids(body)
    columns.parsed(body)
    known: frozenset[int] = frozenset().union(*(columns.column_ids(each) for each in m.schemas))
    reused = sorted(id for id in ids - known if id <= m.last_column_id)
    if reused:
        raise InvalidInput(
            f"ids {reused} of new columns are not above last-column-id {m.last_column_id}"
        )
    columns.require_room(ids - known)
    added = max(schema["schema-id"] for schema in m.schemas) + 1
    progress.last_added["schema"] = added
    return replace(
        m,
        schemas=(*m.schemas, {"type": "struct", **body, "schema-id": added}),
        last_column_id=max(m.last_column_id, *ids) if ids else m.last_column_id,
    )


def _set_schema(m: TableMetadata, update: SetCurrentSchema, progress: _Progress) -> TableMetadata:
    known = [schema["schema-id"] for schema in m.schemas]
    return replace(m, current_schema_id=progress.resolve("schema", update.schema_id, known))


def _add_expression(m: TableMetadata, update: AddExpression, _: _Progress) -> TableMetadata:
    expression = update.expression
    if m.format_version < 4:
        raise InvalidInput(f"expressions need v4, this table is v{m.format_version}")
    if expression.expr_id <= m.last_column_id:
        raise InvalidInput(
            f"expr-id {expression.expr_id} is not above last-column-id {m.last_column_id}"
        )
    if expression.expr_id > MAX_ID:
        raise InvalidInput("the table has no ids left for expressions: copy the rows to a new one")
    _must_exist(m, expression.source_ids, f"expression {expression.name!r}")
    if any(each.name == expression.name for each in m.expressions):
        raise InvalidInput(f"there is an expression {expression.name!r}")
    return replace(
        m,
        expressions=(*m.expressions, expression),
        last_column_id=expression.expr_id,
        last_partition_id=max(m.last_partition_id, expression.partition_field_id or 0),
    )


def _rename_expressions(m: TableMetadata, update: RenameExpressions, _: _Progress) -> TableMetadata:
    known = {each.expr_id for each in m.expressions}
    for id, name in update.names.items():
        if id not in known:
            raise InvalidInput(f"there is no expression {id}")
        if not name:
            raise InvalidInput(f"expression {id} needs a name")
    renamed = tuple(
        dataclasses.replace(each, name=update.names.get(each.expr_id, each.name))
        for each in m.expressions
    )
    names = [each.name for each in renamed]
    for name in update.names.values():
        if names.count(name) > 1:
            raise InvalidInput(f"two expressions would be named {name!r}")
    return replace(m, expressions=renamed)


def _must_exist(m: TableMetadata, sources: Iterable[int], who: str) -> None:
    known = columns.column_ids(m.schema_json())
    missing = [id for id in sources if id not in known]
    if missing:
        raise InvalidInput(f"{who}: the current schema has no column with id {missing[0]}")


def _must_have_stats(expressions: Iterable[Expression]) -> None:
    """Refuse to partition by what cannot have stats: a file's partition is told by nothing else."""
    for each in expressions:
        if each.transform != "void" and not can_be_stored(each.stats_field):
            raise InvalidInput(
                f"no partitions by {each.name!r}: its id {each.stats_field} is too large to have "
                f"stats, which only ids up to {LAST_STATS_FIELD} have; copy the rows to a new table"
            )


def _add_spec(m: TableMetadata, update: AddPartitionSpec, progress: _Progress) -> TableMetadata:
    fields = update.spec.fields
    for spec in m.partition_specs:
        if spec.fields == fields:
            progress.last_added["partition spec"] = spec.spec_id
            return m
    plain = [each for each in fields if isinstance(each, PartitionField)]
    for each in plain:
        _must_exist(m, each.sources, f"partition field {each.name!r}")
    _must_have_stats(each for each in m.expressions if each.expr_id in update.spec.expr_ids)
    named: dict[str, Sequence[object]] = {
        "name": [each.name for each in plain],
        "field-id": [each.field_id for each in plain],
        "expr-id": update.spec.expr_ids,
    }
    for what, values in named.items():
        if len(set(values)) < len(values):
            raise InvalidInput(f"two fields of the partition spec have the same {what}")
    added = max((spec.spec_id for spec in m.partition_specs), default=-1) + 1
    progress.last_added["partition spec"] = added
    return replace(
        m,
        partition_specs=(*m.partition_specs, replace(update.spec, spec_id=added)),
        last_partition_id=max([m.last_partition_id, *(each.field_id for each in plain)]),
    )


def _set_spec(m: TableMetadata, update: SetDefaultSpec, progress: _Progress) -> TableMetadata:
    known = [spec.spec_id for spec in m.partition_specs]
    return replace(m, default_spec_id=progress.resolve("partition spec", update.spec_id, known))


def _add_order(m: TableMetadata, update: AddSortOrder, progress: _Progress) -> TableMetadata:
    fields = update.sort_order.fields
    for order in m.sort_orders:
        if order.fields == fields:
            progress.last_added["sort order"] = order.order_id
            return m
    for each in fields:
        _must_exist(m, each.sources, "sort order")
    # Order 0 is kept for unsorted.
    added = max((order.order_id for order in m.sort_orders), default=0) + 1 if fields else 0
    progress.last_added["sort order"] = added
    return replace(m, sort_orders=(*m.sort_orders, replace(update.sort_order, order_id=added)))


def _set_order(m: TableMetadata, update: SetDefaultSortOrder, progress: _Progress) -> TableMetadata:
    known = [0, *(order.order_id for order in m.sort_orders)]
    chosen = progress.resolve("sort order", update.sort_order_id, known)
    return replace(m, default_sort_order_id=chosen)


def _set_properties(m: TableMetadata, update: SetProperties, _: _Progress) -> TableMetadata:
    return _with_properties(m, {**m.properties, **properties_of(update.updates)})


def _remove_properties(m: TableMetadata, update: RemoveProperties, _: _Progress) -> TableMetadata:
    gone = set(update.removals)
    return _with_properties(m, {k: v for k, v in m.properties.items() if k not in gone})


def _with_properties(m: TableMetadata, properties: dict[str, str]) -> TableMetadata:
    require_same_secrecy(m.properties, properties)
    return replace(m, properties=properties)


def _set_location(m: TableMetadata, update: SetLocation, _: _Progress) -> TableMetadata:
    return replace(m, location=update.location)


def _add_snapshot(m: TableMetadata, update: AddSnapshot, progress: _Progress) -> TableMetadata:
    return with_snapshot(m, update.snapshot, ref=None, at_ms=progress.at_ms)


def _set_ref(m: TableMetadata, update: SetSnapshotRef, progress: _Progress) -> TableMetadata:
    return past.set_ref(m, update, at_ms=progress.at_ms)


def _expire_snapshots(
    m: TableMetadata, update: ExpireSnapshots, progress: _Progress
) -> TableMetadata:
    return past.expire_snapshots(m, update, forget=progress.forget)


def _by(
    change: Callable[[TableMetadata, Any], TableMetadata],
) -> Callable[[TableMetadata, Any, _Progress], TableMetadata]:
    return lambda m, update, _: change(m, update)


_HANDLERS: Final[Mapping[type, Callable[[TableMetadata, Any, _Progress], TableMetadata]]] = (
    MappingProxyType(
        {
            AssignUUID: _assign_uuid,
            UpgradeFormatVersion: _upgrade,
            AddSchema: _add_schema,
            SetCurrentSchema: _set_schema,
            AddExpression: _add_expression,
            RenameExpressions: _rename_expressions,
            AddPartitionSpec: _add_spec,
            SetDefaultSpec: _set_spec,
            AddSortOrder: _add_order,
            SetDefaultSortOrder: _set_order,
            RemoveSchemas: _by(alone.remove_schemas),
            RemovePartitionSpecs: _by(alone.remove_specs),
            RemoveExpressions: _by(alone.remove_expressions),
            RemoveSortOrders: _by(alone.remove_orders),
            SetProperties: _set_properties,
            RemoveProperties: _remove_properties,
            SetLocation: _set_location,
            AddSnapshot: _add_snapshot,
            RecallSnapshot: _by(past.recall),
            DropSnapshotPages: _by(past.drop_pages),
            SetSnapshotRef: _set_ref,
            RemoveSnapshotRef: _by(past.remove_ref),
            RemoveSnapshots: _by(past.remove_snapshots),
            ExpireSnapshots: _expire_snapshots,
            SetStatistics: _by(alone.set_statistics),
            RemoveStatistics: _by(alone.remove_statistics),
            SetPartitionStatistics: _by(alone.set_partition_statistics),
            RemovePartitionStatistics: _by(alone.remove_partition_statistics),
            AddEncryptionKey: _by(alone.add_key),
            RemoveEncryptionKey: _by(alone.remove_key),
        }
    )
)
