"""A v4 table's metadata as v3 or v2 has it, for clients that know nothing of v4.

What is shown says the same of the table in their words: expressions are partition fields again,
roots are manifest lists, locations are in full. What they would refuse and can do without is left
out or put right; what they cannot say at all is `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile
from typing import Final, TypeVar

from msgspec.structs import replace

from icetree.errors import InvalidInput, Unsupported
from icetree.spec.location import absolute
from icetree.spec.metadata.layout import (
    UNSORTED,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
)
from icetree.spec.metadata.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from icetree.spec.metadata.pages import ReadPage
from icetree.spec.metadata.retention import GC_ENABLED
from icetree.spec.metadata.snapshot import LogEntry, Page, Ref, Snapshot
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.tree import Place, walk
from icetree.table.export.places import FORMAT_VERSIONS, list_shown

#: The operations that clients know. Any other may have changed anything.
_OPERATIONS: Final = ("append", "replace", "overwrite", "delete")
_ANY_CHANGE: Final = "overwrite"
#: Partition fields of writers that gave them no ids: above all that anybody counts up to.
_UNNUMBERED: Final = 2**30
#: What may be in a statistics file, by Iceberg's own specification: PyIceberg refuses all else.
_BLOBS: Final = ("apache-datasketches-theta-v1", "deletion-vector-v1")
#: Whether clients that commit rewrite small manifests to large ones, all of a table's if need be.
MERGES_MANIFESTS: Final = "commit.manifest-merge.enabled"
_SINCE_V3: Final = ("variant", "geometry", "geography", "unknown", "timestamp_ns", "timestamptz_ns")
_DEFAULTS: Final = ("initial-default", "write-default")


_Statistics = TypeVar("_Statistics", StatisticsFile, PartitionStatisticsFile)


def shown(
    metadata: TableMetadata,
    *,
    format_version: int = 3,
    more: Iterable[Snapshot] = (),
    more_log: Iterable[LogEntry] = (),
) -> TableMetadata:
    """Return a v4 table's metadata in an older format version.

    `more` are snapshots of the pages of history, to be shown beside those of metadata.json, and
    `more_log` what these pages log, by which clients find what was current at a time. The
    manifest list of a snapshot with a root is where its export lies, or would lie. A table that is
    not above the version asked for is returned as it is.
    """
    if format_version not in FORMAT_VERSIONS:
        raise InvalidInput(f"format_version={format_version!r}: give 3 or 2")
    if metadata.format_version <= format_version:
        return metadata
    for reason in _unsayable(metadata, format_version):
        raise Unsupported(f"this table cannot be shown as v{format_version}: {reason}")
    known = metadata.by_id
    snapshots = (*(each for each in more if each.snapshot_id not in known), *metadata.snapshots)
    log = _log(metadata, more_log, {each.snapshot_id for each in snapshots})
    specs = partition_specs(metadata)
    orders = _sort_orders(metadata)
    default_order = _default_order(metadata, orders)
    has_lineage = format_version >= 3
    return TableMetadata(
        format_version=format_version,
        table_uuid=metadata.table_uuid,
        location=metadata.location,
        last_sequence_number=metadata.last_sequence_number,
        last_updated_ms=max([metadata.last_updated_ms, *(each.timestamp_ms for each in log[-1:])]),
        last_column_id=metadata.last_column_id,
        schemas=metadata.schemas,
        current_schema_id=metadata.current_schema_id,
        partition_specs=specs,
        default_spec_id=metadata.default_spec_id,
        last_partition_id=max([metadata.last_partition_id, *_field_ids(specs)]),
        sort_orders=orders,
        default_sort_order_id=default_order,
        properties=metadata.properties,
        current_snapshot_id=metadata.current_snapshot_id,
        refs={name: _ref(each) for name, each in metadata.refs.items()},
        snapshots=tuple(_snapshot(each, metadata, format_version) for each in snapshots),
        snapshot_log=log,
        # Of the metadata log nothing: former metadata files are v4, of no use to who reads this.
        statistics=_in_full(_known_statistics(metadata), metadata),
        partition_statistics=_in_full(metadata.partition_statistics, metadata),
        next_row_id=metadata.next_row_id if has_lineage else None,
        encryption_keys=metadata.encryption_keys if has_lineage else (),
    )


def older_pages(metadata: TableMetadata, read_page: ReadPage) -> list[Page]:
    """Return the pages of history, oldest first, as `shown` takes what is in them."""
    by_age = sorted(metadata.snapshot_pages, key=lambda each: each.first_log_timestamp_ms or 0)
    return [read_page(each) for each in by_age]


def guarded(document: TableMetadata) -> TableMetadata:
    """Return what is shown of a tree, with words that keep clients off what is not theirs.

    Roots, leaves and pages of history are not among the files that they see: to who looks for
    orphans, or for what expires, they would be of no use. Manifests that they merge would be read
    once and never again: the tree's own are shown to the next.
    """
    kept = {GC_ENABLED: "false", MERGES_MANIFESTS: "false"}
    return replace(document, properties={**document.properties, **kept})


def partition_field_id(expression: Expression) -> int:
    """Return the id under which an expression is a partition field."""
    given = expression.partition_field_id
    return _UNNUMBERED + expression.expr_id if given is None else given


def _unsayable(metadata: TableMetadata, version: int) -> Iterator[str]:
    used = {id for spec in metadata.partition_specs for id in spec.expr_ids}
    for each in metadata.expressions:
        if each.expr_id in used and each.source_id is None:
            yield f"partition field {each.name!r} is of several columns, which its clients do not read"
    current = {place.id for place in walk(metadata.schema_json())}
    for each in _default_expressions(metadata):
        if each.transform != "void" and each.source_id not in current:
            yield f"partition field {each.name!r} is of a column that is gone: remove it first"
    for schema in metadata.schemas:
        for place in walk(schema):
            yield from _unsayable_column(place, version)
    if version < 3 and metadata.encryption_keys:
        yield "it is encrypted, which is new in v3"


def _unsayable_column(place: Place, version: int) -> Iterator[str]:
    defaults = [name for name in _DEFAULTS if place.holder.get(name) is not None]
    if place.part is None and defaults and isinstance(place.type, dict):
        yield f"column {place.name!r} is nested and has a default value, which its clients do not read"
    if version >= 3:
        return
    if place.part is None and defaults:
        yield f"column {place.name!r} has a default value, which is new in v3"
    if isinstance(place.type, str) and place.type.startswith(_SINCE_V3):
        yield f"column {place.name!r} is of type {place.type}, which is new in v3"


def _default_expressions(metadata: TableMetadata) -> list[Expression]:
    known = {each.expr_id: each for each in metadata.expressions}
    default = metadata.default_spec_id
    specs = (spec for spec in metadata.partition_specs if spec.spec_id == default)
    return [known[id] for spec in specs for id in spec.expr_ids]


def partition_specs(metadata: TableMetadata) -> tuple[PartitionSpec, ...]:
    """Return a table's specs with transforms in place of expressions, in the same order."""
    known = {each.expr_id: each for each in metadata.expressions}
    columns = {place.name: place.id for place in walk(metadata.schema_json())}
    return tuple(
        PartitionSpec(
            spec_id=spec.spec_id,
            fields=(
                # Before v4 there are no expressions.
                *(each for each in spec.fields if isinstance(each, PartitionField)),
                *_fields([known[id] for id in spec.expr_ids], columns),
            ),
        )
        for spec in metadata.partition_specs
    )


def _fields(expressions: list[Expression], columns: dict[str, int]) -> tuple[PartitionField, ...]:
    """Return a spec's fields; a name that another has, or another column, gets its id added."""
    taken: set[str] = set()
    found = []
    for each in expressions:
        id, name = partition_field_id(each), each.name
        while name in taken or columns.get(name, each.source_id) != each.source_id:
            name = f"{name}_{id}"
        taken.add(name)
        found.append(
            PartitionField(
                source_id=each.source_id, field_id=id, name=name, transform=each.transform
            )
        )
    return tuple(found)


def _field_ids(specs: Iterable[PartitionSpec]) -> Iterator[int]:
    for spec in specs:
        yield from (each.field_id for each in spec.fields if isinstance(each, PartitionField))


def _sort_orders(metadata: TableMetadata) -> tuple[SortOrder, ...]:
    """Return the orders up to their first key of several columns; none that is empty but order 0.

    What is sorted by some keys is sorted by the first of them.
    """
    found = [UNSORTED]
    for order in metadata.sort_orders:
        keys = takewhile(lambda key: len(key.sources) == 1, order.fields)
        fields = tuple(
            SortField(
                transform=key.transform,
                source_id=key.sources[0],
                direction=key.direction,
                null_order=key.null_order,
            )
            for key in keys
        )
        if fields and order.order_id != UNSORTED.order_id:
            found.append(SortOrder(order_id=order.order_id, fields=fields))
    return tuple(found)


def _default_order(metadata: TableMetadata, orders: tuple[SortOrder, ...]) -> int:
    """Return the default order's id; unsorted where a column of it is gone."""
    current = {place.id for place in walk(metadata.schema_json())}
    for order in orders:
        is_default = order.order_id == metadata.default_sort_order_id
        if is_default and all(key.source_id in current for key in order.fields):
            return order.order_id
    return UNSORTED.order_id


def _ref(ref: Ref) -> Ref:
    """Return a ref without spans and counts that can keep nothing."""

    def sensible(number: int | None, *, on: bool = True) -> int | None:
        return number if on and number is not None and number > 0 else None

    is_branch = ref.type == "branch"
    return Ref(
        snapshot_id=ref.snapshot_id,
        type=ref.type,
        min_snapshots_to_keep=sensible(ref.min_snapshots_to_keep, on=is_branch),
        max_snapshot_age_ms=sensible(ref.max_snapshot_age_ms, on=is_branch),
        max_ref_age_ms=sensible(ref.max_ref_age_ms),
    )


def _snapshot(snapshot: Snapshot, metadata: TableMetadata, version: int) -> Snapshot:
    at = list_shown(snapshot, metadata.location, version)
    has_lineage = version >= 3 and snapshot.first_row_id is not None
    summary = dict(snapshot.summary or {})
    if summary.get("operation") not in _OPERATIONS:
        summary["operation"] = _ANY_CHANGE
    return Snapshot(
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        timestamp_ms=snapshot.timestamp_ms,
        manifest_list=absolute(at, metadata.location),
        summary=summary,
        schema_id=snapshot.schema_id,
        first_row_id=snapshot.first_row_id if has_lineage else None,
        added_rows=(snapshot.added_rows or 0) if has_lineage else None,
        key_id=snapshot.key_id if version >= 3 else None,
    )


def _log(
    metadata: TableMetadata, more: Iterable[LogEntry], shown: Collection[int]
) -> tuple[LogEntry, ...]:
    """Return the log of what is shown, in the order of time, up to the current snapshot.

    Clocks of writers differ, and a later entry with an earlier time hides the one before it from
    who asks what was current when: hidden ones are left out, and every answer stays what it was.
    """
    found: list[LogEntry] = []
    for each in reversed((*more, *metadata.snapshot_log)):
        if each.snapshot_id not in shown:
            break
        if not found or each.timestamp_ms < found[-1].timestamp_ms:
            found.append(each)
    found.reverse()
    current = metadata.current_snapshot()
    if current is not None and (not found or found[-1].snapshot_id != current.snapshot_id):
        since = max([current.timestamp_ms, *(each.timestamp_ms for each in found[-1:])])
        found.append(LogEntry(timestamp_ms=since, snapshot_id=current.snapshot_id))
    return tuple(LogEntry(timestamp_ms=e.timestamp_ms, snapshot_id=e.snapshot_id) for e in found)


def _known_statistics(metadata: TableMetadata) -> Iterator[StatisticsFile]:
    for each in metadata.statistics:
        blobs = tuple(blob for blob in each.blob_metadata if blob.get("type") in _BLOBS)
        if blobs:
            yield replace(each, blob_metadata=blobs)


def _in_full(files: Iterable[_Statistics], metadata: TableMetadata) -> tuple[_Statistics, ...]:
    return tuple(
        replace(each, statistics_path=absolute(each.statistics_path, metadata.location), extra={})
        for each in files
    )
