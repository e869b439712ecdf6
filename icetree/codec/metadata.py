"""Table metadata and pages of history as JSON, gzip or plain."""

from __future__ import annotations

from typing import Final

import msgspec

from icetree.codec.nouns import (
    Broken,
    Json,
    list_in,
    noun_of,
    nouns,
    object_in,
    object_of,
    objects,
    packed,
    prime,
    slim,
    unpacked,
)
from icetree.errors import CorruptTable, Unsupported
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.metadata.layout import (
    FIRST_PARTITION_ID,
    ExprField,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    sources_differ,
    sources_of,
)
from icetree.spec.metadata.metadata import (
    EncryptionKey,
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
)
from icetree.spec.metadata.snapshot import (
    MAIN,
    LogEntry,
    MetadataLogEntry,
    Page,
    Ref,
    Snapshot,
    SnapshotPage,
)
from icetree.spec.noun import Int, Noun
from icetree.spec.rules.metadata import broken_page_rule, broken_rule
from icetree.spec.schema.expressions import Expression

_LISTS: Final[dict[str, type[Noun]]] = {
    "snapshots": Snapshot,
    "snapshot-log": LogEntry,
    "snapshot-pages": SnapshotPage,
    "metadata-log": MetadataLogEntry,
    "statistics": StatisticsFile,
    "partition-statistics": PartitionStatisticsFile,
    "encryption-keys": EncryptionKey,
}
_LIST_NAMES: Final = {name.replace("-", "_"): name for name in _LISTS}
#: Written only when there is something to write.
_OMITTED_EMPTY: Final = (
    "expressions",
    "snapshot-pages",
    "statistics",
    "partition-statistics",
    "encryption-keys",
)
#: Singletons that v1 requires and later versions replaced by lists.
_V1_ONLY: Final = ("schema", "partition-spec")


def decode(data: bytes, *, file: str) -> TableMetadata:
    """Read metadata.json of any format version; CorruptTable names the rule it breaks."""
    try:
        metadata = _metadata(unpacked(data, file))
    except (Broken, msgspec.ValidationError) as error:
        raise CorruptTable(file, str(error)) from None
    broken = broken_rule(metadata)
    if broken is not None:
        raise CorruptTable(file, broken)
    return metadata


def decode_page(data: bytes, *, file: str, table_location: str = "") -> Page:
    """Read a page of history of the table at a location."""
    try:
        document = unpacked(data, file)
        for name, noun in (("snapshots", Snapshot), ("snapshot-log", LogEntry)):
            document[name] = nouns(noun, document.get(name), name)
        page = noun_of(Page, document, "page")
    except (Broken, msgspec.ValidationError) as error:
        raise CorruptTable(file, str(error)) from None
    broken = broken_page_rule(page, table_location)
    if broken is not None:
        raise CorruptTable(file, broken)
    return page


def _metadata(document: Json) -> TableMetadata:
    version = document.get("format-version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise Broken(f"format-version {version!r} is not one of 1 to {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        raise Unsupported(
            f"this is a v{version} table; this version of icetree knows v1 to v{FORMAT_VERSION}"
        )
    if version == 1:
        document = _v1_completed(document)
    document = {name: value for name, value in document.items() if name not in _V1_ONLY}
    for name, noun in _LISTS.items():
        document[name] = nouns(noun, document.get(name), name)
    document["expressions"] = [
        _expression(each, f"expressions[{at}]")
        for at, each in enumerate(list_in(document.get("expressions"), "expressions"))
    ]
    if "partition-specs" in document:
        specs = list_in(document["partition-specs"], "partition-specs")
        document["partition-specs"] = [
            _spec(each, f"partition-specs[{at}]") for at, each in enumerate(specs)
        ]
    if "sort-orders" in document:
        orders = list_in(document["sort-orders"], "sort-orders")
        document["sort-orders"] = [
            _order(each, f"sort-orders[{at}]") for at, each in enumerate(orders)
        ]
    # Java writes -1 for none.
    if document.get("current-snapshot-id") == -1:
        document["current-snapshot-id"] = None
    document["refs"] = _refs(document)
    if document.get("properties") is None:
        document["properties"] = {}
    return noun_of(TableMetadata, document, "table metadata")


def _v1_completed(document: Json) -> Json:
    """Return v1 metadata with the lists of v2, made from its singletons where it lacks them."""
    done = {"last-sequence-number": 0, **document}
    if document.get("schemas") is None:
        schema = object_in(document.get("schema"), "schema")
        done["schemas"] = [{**schema, "schema-id": schema.get("schema-id", 0)}]
        done["current-schema-id"] = schema.get("schema-id", 0)
    if document.get("partition-specs") is None:
        fields = list_in(document.get("partition-spec"), "partition-spec")
        done["partition-specs"] = [{"spec-id": 0, "fields": fields}]
        done["default-spec-id"] = 0
    done["partition-specs"] = [
        _numbered(object_in(spec, "a partition spec"))
        for spec in list_in(done["partition-specs"], "partition-specs")
    ]
    if document.get("last-partition-id") is None:
        ids = [field["field-id"] for spec in done["partition-specs"] for field in spec["fields"]]
        whole = (id for id in ids if isinstance(id, int))
        done["last-partition-id"] = max(whole, default=FIRST_PARTITION_ID - 1)
    if document.get("sort-orders") is None:
        done["sort-orders"] = [{"order-id": 0, "fields": []}]
        done["default-sort-order-id"] = 0
    return done


def _numbered(spec: Json) -> Json:
    """Return a v1 spec with field ids, which its writers did not store but count from 1000."""
    fields = [
        object_in(each, "a partition field") for each in list_in(spec.get("fields"), "fields")
    ]
    return {
        **spec,
        "fields": [
            {"field-id": FIRST_PARTITION_ID + at, **field} for at, field in enumerate(fields)
        ],
    }


class _ExpressionObject(Noun, frozen=True, kw_only=True):
    expr_id: Int
    expr: Json
    partition_field_id: Int | None = None


class _ExpressionBody(Noun, frozen=True, kw_only=True):
    source_id: Int | None = None
    source_ids: tuple[Int, ...] | None = None
    transform: str
    name: str
    #: An example of the proposal has it here: read, never written.
    partition_field_id: Int | None = None


def _expression(raw: object, where: str) -> Expression:
    outer = noun_of(_ExpressionObject, raw, where)
    inner = noun_of(_ExpressionBody, outer.expr, f"{where}.expr")
    sources = sources_of(inner.source_id, inner.source_ids)
    if not sources:
        raise Broken(f"{where} has no source-id")
    if sources_differ(inner.source_id, inner.source_ids):
        raise Broken(f"{where} has source-id {inner.source_id} beside source-ids {[*sources]}")
    outside = outer.partition_field_id
    return Expression(
        expr_id=outer.expr_id,
        source_ids=sources,
        transform=inner.transform,
        name=inner.name,
        partition_field_id=inner.partition_field_id if outside is None else outside,
        extra=outer.extra | ({"expr": inner.extra} if inner.extra else {}),
    )


def _spec(raw: object, where: str) -> PartitionSpec:
    spec = object_in(raw, where)
    fields = [
        noun_of(
            ExprField if isinstance(each, dict) and "expr-id" in each else PartitionField,
            each,
            f"{where}.fields[{at}]",
        )
        for at, each in enumerate(list_in(spec.get("fields"), f"{where}.fields"))
    ]
    if len({type(field) for field in fields}) > 1:
        raise Broken(f"{where} mixes expr-ids with other fields")
    return noun_of(PartitionSpec, {**spec, "fields": fields}, where)


def _order(raw: object, where: str) -> SortOrder:
    order = object_in(raw, where)
    fields = nouns(SortField, order.get("fields"), f"{where}.fields")
    return noun_of(SortOrder, {**order, "fields": fields}, where)


def _refs(document: Json) -> dict[str, Ref]:
    raw = object_in(document.get("refs") or {}, "refs")
    refs = {name: noun_of(Ref, each, f"ref {name!r}") for name, each in raw.items()}
    current = document.get("current-snapshot-id")
    # There is always a main branch at the current snapshot, written or not.
    if MAIN not in refs and current is not None:
        refs[MAIN] = noun_of(Ref, {"snapshot-id": current, "type": "branch"}, "current-snapshot-id")
    return refs


def encode(metadata: TableMetadata, *, compress: bool = True) -> bytes:
    """Write metadata.json in the metadata's own format version."""
    document = object_of(metadata)
    for attribute, name in _LIST_NAMES.items():
        document[name] = objects(getattr(metadata, attribute))
    document["refs"] = {name: slim(ref) for name, ref in metadata.refs.items()}
    document["partition-specs"] = [_with_fields(spec) for spec in metadata.partition_specs]
    document["sort-orders"] = [_with_fields(order) for order in metadata.sort_orders]
    document["expressions"] = [_expression_object(each) for each in metadata.expressions]
    if metadata.format_version == 1:
        del document["last-sequence-number"]
        document["schema"] = metadata.schema_json()
        document["partition-spec"] = next(
            _with_fields(spec)["fields"]
            for spec in metadata.partition_specs
            if spec.spec_id == metadata.default_spec_id
        )
    document["properties"] = metadata.properties
    for name in _OMITTED_EMPTY:
        if not document[name]:
            del document[name]
    return packed(document, compress=compress)


def encode_page(page: Page) -> bytes:
    """Write a page of history."""
    document = {
        **page.extra,
        "snapshots": objects(page.snapshots),
        "snapshot-log": objects(page.snapshot_log),
    }
    return packed(document, compress=True)


def _with_fields(noun: PartitionSpec | SortOrder) -> Json:
    return {**object_of(noun), "fields": objects(noun.fields)}


def _expression_object(expression: Expression) -> Json:
    sources: Json = {"source-ids": list(expression.source_ids)}
    if expression.source_id is not None:
        sources = {"source-id": expression.source_id}
    extra = dict(expression.extra)
    body = {**sources, "transform": expression.transform, "name": expression.name}
    found = {"expr-id": expression.expr_id, "expr": body | extra.pop("expr", {})}
    if expression.partition_field_id is not None:
        found["partition-field-id"] = expression.partition_field_id
    return found | extra


prime()
