"""Table metadata, format versions 1 to 4, as one frozen noun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, VoidTransform

from icetree.errors import InvalidInput, NotFound
from icetree.spec.entry import metrics
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.metadata.layout import (
    FIRST_PARTITION_ID,
    UNPARTITIONED,
    UNSORTED,
    PartitionSpec,
    SortField,
    SortOrder,
    expressions_for,
)
from icetree.spec.metadata.snapshot import (
    MAIN,
    LogEntry,
    MetadataLogEntry,
    Ref,
    Snapshot,
    SnapshotPage,
)
from icetree.spec.noun import Int, Long, Noun
from icetree.spec.properties.values import flag, whole_number
from icetree.spec.recent import Recent
from icetree.spec.schema import columns
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape, SortKey
from icetree.spec.texts import did_you_mean, json_bytes, storable

#: How many snapshots stay in metadata.json when older ones move to pages.
INLINE_SNAPSHOTS: Final = "write.metadata.inline-snapshots"
DEFAULT_INLINE_SNAPSHOTS: Final = 10
#: How many former metadata files the log remembers.
PREVIOUS_VERSIONS: Final = "write.metadata.previous-versions-max"
DEFAULT_PREVIOUS_VERSIONS: Final = 20
DELETE_AFTER_COMMIT: Final = "write.metadata.delete-after-commit.enabled"

#: Shapes by all that they follow from. Few commits change that, and what is worked out of a shape
#: takes longer than what they do.
_SHAPES: Final[Recent[bytes, Shape]] = Recent(most=32)


class StatisticsFile(Noun, frozen=True, kw_only=True):
    """A Puffin file with statistics of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    key_metadata: str | None = None
    blob_metadata: tuple[dict[str, Any], ...]


class PartitionStatisticsFile(Noun, frozen=True, kw_only=True):
    """A file with statistics of every partition of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long


class EncryptionKey(Noun, frozen=True, kw_only=True):
    """A wrapped key that snapshots refer to by id."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


class TableMetadata(Noun, frozen=True, kw_only=True, dict=True):
    """All that a table is, as of one commit; `spec.rules.metadata` says what makes it sound."""

    format_version: Int
    #: Only a v1 table may lack one.
    table_uuid: str | None = None
    location: str
    #: 0 in a v1 table, which has none.
    last_sequence_number: Long
    last_updated_ms: Long
    #: The highest id ever given to a column or, in v4, to an expression.
    last_column_id: Int
    #: JSON objects: parsed on demand by `spec.schema.columns`.
    schemas: tuple[dict[str, Any], ...]
    current_schema_id: Int
    expressions: tuple[Expression, ...] = ()
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: Int
    last_partition_id: Int
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: Int
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    current_snapshot_id: Long | None = None
    refs: dict[str, Ref] = msgspec.field(default_factory=dict)
    #: The newest snapshots and those that refs point to; older ones are in the pages.
    snapshots: tuple[Snapshot, ...] = ()
    snapshot_log: tuple[LogEntry, ...] = ()
    #: Oldest first.
    snapshot_pages: tuple[SnapshotPage, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    #: From v3 on.
    next_row_id: Long | None = None
    encryption_keys: tuple[EncryptionKey, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[int, Snapshot]:
        """The snapshots that metadata.json itself holds."""
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    @property
    def all_statistics(self) -> tuple[StatisticsFile | PartitionStatisticsFile, ...]:
        """The files of statistics of both kinds."""
        return (*self.statistics, *self.partition_statistics)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot that metadata.json itself holds; `spec.metadata.pages` looks further."""
        try:
            return self.by_id[snapshot_id]
        except KeyError:
            raise NotFound(f"there is no snapshot {snapshot_id} in the table's metadata") from None

    def current_snapshot(self) -> Snapshot | None:
        """Return the current snapshot; None when nothing was ever committed."""
        return None if self.current_snapshot_id is None else self.snapshot(self.current_snapshot_id)

    def ref(self, name: str, kind: Literal["branch", "tag"] | None = None) -> Ref:
        """Return a branch or tag; NotFound or InvalidInput when there is none, or another kind."""
        found = self.refs.get(storable(name, what=kind or "ref"))
        if found is None:
            what = kind or "branch or tag"
            raise NotFound(f"there is no {what} {name!r}{did_you_mean(name, self.refs)}")
        if kind is not None and found.type != kind:
            raise InvalidInput(f"{name!r} is a {found.type}, not a {kind}")
        return found

    def schema_json(self, schema_id: int | None = None) -> dict[str, Any]:
        """Return a schema as JSON: the one asked for, else the current one."""
        wanted = self.current_schema_id if schema_id is None else schema_id
        for schema in self.schemas:
            if schema["schema-id"] == wanted:
                return schema
        raise NotFound(f"there is no schema {wanted}")

    def schema(self, schema_id: int | None = None) -> Schema:
        """Return a schema: the one asked for, else the current one."""
        return columns.parsed(self.schema_json(schema_id))

    @cached_property
    def partitioning(self) -> tuple[tuple[Expression, ...], Mapping[int, tuple[int, ...]]]:
        """Expressions, and each spec as ids of them; before v4, those an upgrade would give."""
        expressions, specs = self.expressions, self.partition_specs
        if self.format_version < 4:
            expressions, specs, _ = expressions_for(specs, self.last_column_id)
        return expressions, {spec.spec_id: spec.expr_ids for spec in specs}

    @cached_property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """The default sort order, up to the first key that is not known here."""
        for order in self.sort_orders:
            if order.order_id == self.default_sort_order_id:
                return sort_keys_of(order.fields)
        return ()

    def metrics(self, schema_id: int | None = None) -> dict[int, metrics.Mode]:
        """Return how much stats each column has; a column without any is left out."""
        schema = self.schema(schema_id)
        expressions, specs = self.partitioning
        used = {id for ids in specs.values() for id in ids}
        sources = [e for e in expressions if e.expr_id in used]
        always = {id for e in sources for id in e.source_ids}
        always |= {id for key in self.sort_keys for id in key.source_ids} | set(
            schema.identifier_field_ids
        )
        exact = {e.source_ids[0] for e in sources if e.is_identity}
        return metrics.tracked(schema, self.properties, always=always, exact=exact)

    def shape(self, schema_id: int | None = None) -> Shape:
        """Return what one must know to make sense of the table's entries."""
        wanted = self.current_schema_id if schema_id is None else schema_id
        known = self._shapes.get(wanted)
        if known is None:
            key = b"%d %b" % (wanted, self._layout)
            known = _SHAPES.get(key)
            if known is None:
                known = self._new_shape(wanted)
                _SHAPES.put(key, known)
            self._shapes[wanted] = known
        return known

    @cached_property
    def _shapes(self) -> dict[int, Shape]:
        """The shapes that were asked for, by schema id."""
        return {}

    @cached_property
    def _layout(self) -> bytes:
        """All that shapes follow from, but for the schema's id."""
        return json_bytes(
            (
                self.format_version,
                self.last_column_id,
                self.schemas,
                self.expressions,
                self.partition_specs,
                self.default_spec_id,
                self.sort_orders,
                self.default_sort_order_id,
                self.properties,
            )
        )

    def _new_shape(self, schema_id: int) -> Shape:
        schema = self.schema(schema_id)
        expressions, specs = self.partitioning
        used = {id for ids in specs.values() for id in ids}
        derived = tuple(e.expr_id for e in expressions if e.expr_id in used and _has_stats(e))
        return Shape(
            schema=schema,
            expressions={e.expr_id: e for e in expressions},
            specs=specs,
            default_spec_id=self.default_spec_id,
            sort_order=self.sort_keys,
            sort_order_id=self.default_sort_order_id,
            former=columns.former(self.schemas, schema) if len(self.schemas) > 1 else {},
            tracked=(*self.metrics(schema_id), *derived),
        )


def sort_keys_of(fields: Iterable[SortField]) -> tuple[SortKey, ...]:
    """Return the keys of an order, up to the first that is not known here."""
    keys = []
    for field in fields:
        source, *others = field.sources
        key = Expression(
            expr_id=0, source_ids=field.sources, transform=field.transform, name="sort key"
        )
        if key.is_unknown:
            break
        keys.append(
            SortKey(
                source_id=source,
                others=tuple(others),
                transform=field.transform,
                descending=field.direction == "desc",
                nulls_first=field.null_order == "nulls-first",
            )
        )
    return tuple(keys)


def _has_stats(expression: Expression) -> bool:
    """Tell whether an expression has stats under its own id: not identity or void."""
    without = (IdentityTransform, VoidTransform)
    return not isinstance(transform_of(expression), without)


def new_table(
    *,
    table_uuid: str,
    location: str,
    schema: Mapping[str, Any],
    at_ms: int,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """Return the metadata of a v4 table that has no snapshot yet.

    `schema` is JSON with every id assigned; `spec` has transforms, which become expressions.
    """
    schema_id = schema.get("schema-id", 0)
    last_column_id = max(columns.column_ids(schema), default=0)
    expressions, specs, last_column_id = expressions_for([spec], last_column_id)
    orders = (UNSORTED,) if sort_order.order_id == 0 else (UNSORTED, sort_order)
    partition_ids = (e.partition_field_id or 0 for e in expressions)
    return TableMetadata(
        format_version=FORMAT_VERSION,
        table_uuid=table_uuid,
        location=location,
        last_sequence_number=0,
        last_updated_ms=at_ms,
        last_column_id=last_column_id,
        schemas=({**schema, "schema-id": schema_id},),
        current_schema_id=schema_id,
        expressions=expressions,
        partition_specs=specs,
        default_spec_id=spec.spec_id,
        last_partition_id=max(partition_ids, default=FIRST_PARTITION_ID - 1),
        sort_orders=orders,
        default_sort_order_id=sort_order.order_id,
        properties=dict(properties or {}),
        next_row_id=0,
    )


def with_ref(metadata: TableMetadata, name: str, ref: Ref, *, at_ms: int) -> TableMetadata:
    """Return the metadata with a branch or tag set; `main` moves the current snapshot."""
    metadata.snapshot(ref.snapshot_id)
    changed = replace(metadata, refs={**metadata.refs, name: ref}, last_updated_ms=at_ms)
    if name != MAIN or ref.snapshot_id == metadata.current_snapshot_id:
        return changed
    return replace(
        changed,
        current_snapshot_id=ref.snapshot_id,
        snapshot_log=(
            *metadata.snapshot_log,
            LogEntry(timestamp_ms=at_ms, snapshot_id=ref.snapshot_id),
        ),
    )


def with_snapshot(
    metadata: TableMetadata, snapshot: Snapshot, *, ref: str | None = MAIN, at_ms: int
) -> TableMetadata:
    """Return the metadata with a snapshot added and made the head of a branch.

    The branch is made where there is none; with no `ref` the snapshot is only staged.
    """
    reason = _refusal(metadata, snapshot)
    if reason is not None:
        raise InvalidInput(f"snapshot {snapshot.snapshot_id} cannot be added: {reason}")
    changed = replace(
        metadata,
        snapshots=(*metadata.snapshots, snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
        last_updated_ms=at_ms,
    )
    if metadata.next_row_id is not None:
        changed = replace(changed, next_row_id=metadata.next_row_id + (snapshot.added_rows or 0))
    if ref is None:
        return changed
    head = metadata.refs.get(ref)
    if head is None:
        head = Ref(snapshot_id=snapshot.snapshot_id, type="branch")
    elif head.type != "branch":
        raise InvalidInput(f"{ref!r} is a tag: a tag never moves by a commit")
    return with_ref(changed, ref, replace(head, snapshot_id=snapshot.snapshot_id), at_ms=at_ms)


def _refusal(metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    """Return why the snapshot cannot follow what the table has, None when it can."""
    version = metadata.format_version
    if snapshot.snapshot_id in metadata.by_id:
        return "the table has a snapshot with this id"
    if version > 1 and snapshot.sequence_number <= metadata.last_sequence_number:
        return (
            f"its sequence number {snapshot.sequence_number} is not above "
            f"the table's last, {metadata.last_sequence_number}"
        )
    if version >= 3 and snapshot.first_row_id != metadata.next_row_id:
        return (
            f"its first-row-id {snapshot.first_row_id} is not "
            f"the table's next-row-id {metadata.next_row_id}"
        )
    if version >= 3 and (snapshot.added_rows is None or snapshot.added_rows < 0):
        return f"its added-rows {snapshot.added_rows} is not a count"
    if version >= 4 and snapshot.root_manifest is None:
        return "a v4 snapshot needs a root manifest"
    known = {schema["schema-id"] for schema in metadata.schemas}
    if snapshot.schema_id is not None and snapshot.schema_id not in known:
        return f"there is no schema {snapshot.schema_id}"
    return None


def with_previous(
    metadata: TableMetadata, previous_file: str, previous: TableMetadata
) -> TableMetadata:
    """Return the metadata with the file it replaces in its bounded log.

    Where commits delete what the log forgets, it forgets several at a time: one request for many.
    """
    keep = whole_number(
        metadata.properties, PREVIOUS_VERSIONS, default=DEFAULT_PREVIOUS_VERSIONS, least=1
    )
    entry = MetadataLogEntry(timestamp_ms=previous.last_updated_ms, metadata_file=previous_file)
    log = (*metadata.metadata_log, entry)
    if len(log) > keep and flag(metadata.properties, DELETE_AFTER_COMMIT, default=False):
        keep -= keep // 2
    return replace(metadata, metadata_log=log[-keep:])
