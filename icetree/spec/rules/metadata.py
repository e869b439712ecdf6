"""What makes table metadata sound: every rule, once, for reading and for writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from icetree.errors import InvalidInput
from icetree.spec.fields import FORMAT_VERSION, MANIFEST_LIST, ROOT_MANIFEST
from icetree.spec.location import leads_up, no_name
from icetree.spec.metadata.layout import ExprField, PartitionField, sources_differ
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import MAIN, Page, Snapshot
from icetree.spec.schema import columns
from icetree.spec.schema.expressions import is_malformed


def broken_rule(metadata: TableMetadata) -> str | None:
    """Return the first rule the metadata breaks, in words, None when it is sound."""
    for rule in _RULES:
        for broken in rule(metadata):
            return broken
    return None


def broken_page_rule(page: Page, table_location: str) -> str | None:
    """Return the first rule a page of history breaks, None when it is sound."""
    for broken in _snapshots_are_sound(page.snapshots, FORMAT_VERSION):
        return broken
    for broken in _lead_nowhere_else(_tops(page.snapshots), table_location):
        return broken
    return None


def _versions_and_numbers(metadata: TableMetadata) -> Iterator[str]:
    version = metadata.format_version
    if not 1 <= version <= FORMAT_VERSION:
        yield f"format-version {version} is not one of 1 to {FORMAT_VERSION}"
    if version >= 2 and metadata.table_uuid is None:
        yield "table-uuid is missing"
    if version >= 3 and metadata.next_row_id is None:
        yield "next-row-id is missing"
    if version < 4 and metadata.expressions:
        yield f"expressions are new in v4, this is v{version}"
    if version < 4 and metadata.snapshot_pages:
        yield f"snapshot-pages are new in v4, this is v{version}"
    if not metadata.location:
        yield "location is empty"
    numbers = {
        "last-sequence-number": metadata.last_sequence_number,
        "last-column-id": metadata.last_column_id,
        "next-row-id": metadata.next_row_id or 0,
    }
    yield from (f"{name} {number} is negative" for name, number in numbers.items() if number < 0)


def _schemas(metadata: TableMetadata) -> Iterator[str]:
    ids = [schema.get("schema-id") for schema in metadata.schemas]
    if not all(isinstance(id, int) and not isinstance(id, bool) for id in ids):
        yield "a schema has no schema-id"
        return
    yield from _twice(ids, "schemas have schema-id")
    if metadata.current_schema_id not in ids:
        yield f"current-schema-id {metadata.current_schema_id} is not among the schemas"
        return
    for schema in metadata.schemas:
        try:
            highest = max(columns.column_ids(schema), default=0)
            if schema["schema-id"] == metadata.current_schema_id:
                columns.parsed(schema)
        except InvalidInput as error:
            yield f"schema {schema['schema-id']}: {error}"
            return
        if highest > metadata.last_column_id:
            yield f"column id {highest} is above last-column-id {metadata.last_column_id}"


def _expressions(metadata: TableMetadata) -> Iterator[str]:
    if not metadata.expressions:
        return
    ids = [expression.expr_id for expression in metadata.expressions]
    yield from _twice(ids, "expressions have expr-id")
    if max(ids) > metadata.last_column_id:
        yield f"expr-id {max(ids)} is above last-column-id {metadata.last_column_id}"
    taken: set[int] = set().union(*(columns.column_ids(schema) for schema in metadata.schemas))
    yield from (f"expr-id {id} is also the id of a column" for id in ids if id in taken)
    yield from _transforms(each.transform for each in metadata.expressions)


def _transforms(texts: Iterable[str]) -> Iterator[str]:
    yield from (f"{text!r} is no transform" for text in texts if is_malformed(text))


def _specs(metadata: TableMetadata) -> Iterator[str]:
    yield from _twice((spec.spec_id for spec in metadata.partition_specs), "specs have spec-id")
    known = {expression.expr_id for expression in metadata.expressions}
    for spec in metadata.partition_specs:
        where = f"partition spec {spec.spec_id}"
        named = (each for each in spec.fields if isinstance(each, PartitionField))
        yield from _transforms(each.transform for each in named)
        for field in spec.fields:
            match field:
                case ExprField() if metadata.format_version < 4:
                    yield f"{where} has an expr-id, which is new in v4"
                case ExprField(expr_id=id) if id not in known:
                    yield f"{where} names expr-id {id}, which is not among the expressions"
                case PartitionField() if metadata.format_version >= 4:
                    yield f"{where} has field {field.name!r} in place of an expr-id"
                case PartitionField() if not field.sources:
                    yield f"{where} has field {field.name!r} without a source-id"
                case PartitionField() if sources_differ(field.source_id, field.source_ids):
                    yield f"{where} has field {field.name!r} with {_OTHER_SOURCES}"
    if metadata.default_spec_id not in {spec.spec_id for spec in metadata.partition_specs}:
        yield f"default-spec-id {metadata.default_spec_id} is not among the partition-specs"


_OTHER_SOURCES: Final = "a source-id that is not the first of its source-ids"
_SORT_WORDS: Final = {"direction": ("asc", "desc"), "null_order": ("nulls-first", "nulls-last")}


def _sort_orders(metadata: TableMetadata) -> Iterator[str]:
    ids = [order.order_id for order in metadata.sort_orders]
    yield from _twice(ids, "sort orders have order-id")
    # Order 0 is unsorted whether it is listed or not.
    if metadata.default_sort_order_id not in {0, *ids}:
        yield f"default-sort-order-id {metadata.default_sort_order_id} is not among the sort-orders"
    for order in metadata.sort_orders:
        yield from _transforms(field.transform for field in order.fields)
        for field in order.fields:
            if not field.sources:
                yield f"sort order {order.order_id} has a field without a source-id"
            if sources_differ(field.source_id, field.source_ids):
                yield f"sort order {order.order_id} has a field with {_OTHER_SOURCES}"
            for name, allowed in _SORT_WORDS.items():
                if getattr(field, name) not in allowed:
                    yield f"sort order {order.order_id}: {getattr(field, name)!r} is none of {allowed}"


def _snapshots(metadata: TableMetadata) -> Iterator[str]:
    yield from _snapshots_are_sound(metadata.snapshots, metadata.format_version)
    highest = max((each.sequence_number for each in metadata.snapshots), default=0)
    if highest > metadata.last_sequence_number:
        yield (
            f"a snapshot has sequence-number {highest}, above "
            f"last-sequence-number {metadata.last_sequence_number}"
        )


def _snapshots_are_sound(snapshots: tuple[Snapshot, ...], version: int) -> Iterator[str]:
    yield from _twice((each.snapshot_id for each in snapshots), "snapshots have snapshot-id")
    for each in snapshots:
        tops = (each.root_manifest, each.manifest_list, each.manifests)
        if tops.count(None) != 2:
            yield (
                f"snapshot {each.snapshot_id} has not exactly one of "
                f"{ROOT_MANIFEST}, {MANIFEST_LIST} and manifests"
            )
        if each.root_manifest is not None and version < 4:
            yield f"snapshot {each.snapshot_id} has a {ROOT_MANIFEST}, which is new in v4"


def _refs(metadata: TableMetadata) -> Iterator[str]:
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.by_id:
            yield f"ref {name!r} points to snapshot {ref.snapshot_id}, which is not in the metadata"
    main = metadata.refs.get(MAIN)
    if main is not None and main.type != "branch":
        yield f"ref {MAIN!r} is a tag"
    pointed = None if main is None else main.snapshot_id
    if pointed != metadata.current_snapshot_id:
        yield f"current-snapshot-id {metadata.current_snapshot_id} differs from {MAIN!r}: {pointed}"


def _pages(metadata: TableMetadata) -> Iterator[str]:
    for page in metadata.snapshot_pages:
        log = (page.first_log_timestamp_ms, page.last_log_timestamp_ms)
        if (
            page.count < 0
            or page.log_count < 0
            or page.first_sequence_number > page.last_sequence_number
            or page.first_timestamp_ms > page.last_timestamp_ms
            or (page.log_count > 0 and (None in log or log[0] > log[1]))  # type: ignore[operator]
        ):
            yield f"snapshot page {page.location!r} has a range or count that cannot be"
    yield from _twice((page.location for page in metadata.snapshot_pages), "pages have location")


def _names(metadata: TableMetadata) -> Iterator[str]:
    files = (
        *_tops(metadata.snapshots),
        *(page.location for page in metadata.snapshot_pages),
        *(each.metadata_file for each in metadata.metadata_log),
        *(each.statistics_path for each in metadata.statistics),
        *(each.statistics_path for each in metadata.partition_statistics),
    )
    yield from _lead_nowhere_else(files, metadata.location)


def _tops(snapshots: Iterable[Snapshot]) -> Iterator[str]:
    for each in snapshots:
        yield from each.manifests or (each.root_manifest or each.manifest_list or "",)


def _lead_nowhere_else(files: Iterable[str], table_location: str) -> Iterator[str]:
    """A table may be at a place that is spelt with dots, and its files with it."""
    for file in files:
        if ".." in file and leads_up(file.removeprefix(table_location)):
            yield no_name(file)


def _other_ids(metadata: TableMetadata) -> Iterator[str]:
    yield from _twice(
        (key.key_id for key in metadata.encryption_keys), "encryption keys have key-id"
    )
    yield from _twice(
        (each.snapshot_id for each in metadata.partition_statistics),
        "partition statistics files have snapshot-id",
    )


def _twice(ids: Iterable[Any], what: str) -> Iterator[str]:
    seen = set()
    for id in ids:
        if id in seen:
            yield f"two {what} {id!r}"
            return
        seen.add(id)


_RULES: Final[tuple[Callable[[TableMetadata], Iterator[str]], ...]] = (
    _versions_and_numbers,
    _schemas,
    _expressions,
    _specs,
    _sort_orders,
    _snapshots,
    _refs,
    _pages,
    _names,
    _other_ids,
)
