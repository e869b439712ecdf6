"""Table metadata and pages of history as JSON, gzip or plain."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from icetree.codec import limits
from icetree.codec.unpack import UNREADABLE, OverLimit, gunzip
from icetree.errors import CorruptTable, Unsupported
from icetree.spec.expressions import Expression
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.layout import (
    FIRST_PARTITION_ID,
    ExprField,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
)
from icetree.spec.metadata import (
    EncryptionKey,
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
)
from icetree.spec.metadata_rules import broken_page_rule, broken_rule
from icetree.spec.noun import Int, Noun
from icetree.spec.snapshot import (
    MAIN,
    LogEntry,
    MetadataLogEntry,
    Page,
    Ref,
    Snapshot,
    SnapshotPage,
)
from icetree.spec.texts import json_bytes

N = TypeVar("N", bound=Noun)
Json = dict[str, Any]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_NAMES: Final = (".gz.metadata.json", ".metadata.json.gz")
#: Commits wait for this: a quarter of the usual time for a sixth more bytes.
_GZIP_LEVEL: Final = 1

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


class _Broken(Exception):
    """A rule is broken; the file's name is added where it is known."""


def decode(data: bytes, *, file: str) -> TableMetadata:
    """Read metadata.json of any format version; CorruptTable names the rule it breaks."""
    try:
        metadata = _metadata(_document(data, file))
    except (_Broken, msgspec.ValidationError) as error:
        raise CorruptTable(file, str(error)) from None
    broken = broken_rule(metadata)
    if broken is not None:
        raise CorruptTable(file, broken)
    return metadata


def document(data: bytes, *, file: str) -> Json:
    """Read a JSON object, gzip or plain, whatever it says; CorruptTable for what is none."""
    try:
        return _document(data, file)
    except _Broken as error:
        raise CorruptTable(file, str(error)) from None


def decode_page(data: bytes, *, file: str, table_location: str = "") -> Page:
    """Read a page of history of the table at a location."""
    try:
        document = _document(data, file)
        for name, noun in (("snapshots", Snapshot), ("snapshot-log", LogEntry)):
            document[name] = _nouns(noun, document.get(name), name)
        page = _noun(Page, document, "page")
    except (_Broken, msgspec.ValidationError) as error:
        raise CorruptTable(file, str(error)) from None
    broken = broken_page_rule(page, table_location)
    if broken is not None:
        raise CorruptTable(file, broken)
    return page


def _document(data: bytes, file: str) -> Json:
    if data.startswith(_GZIP_MAGIC) or file.endswith(_GZIP_NAMES):
        try:
            data = gunzip(data, limits.METADATA.bytes)
        except OverLimit:
            raise limits.METADATA.exceeded(file, "it unpacks to more") from None
        except UNREADABLE as error:
            raise _Broken(f"not a whole gzip file: {error}") from None
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _Broken(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _Broken("not a JSON object")
    return document


def _metadata(document: Json) -> TableMetadata:
    version = document.get("format-version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise _Broken(f"format-version {version!r} is not one of 1 to {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        raise Unsupported(
            f"this is a v{version} table; this version of icetree knows v1 to v{FORMAT_VERSION}"
        )
    if version == 1:
        document = _v1_completed(document)
    document = {name: value for name, value in document.items() if name not in _V1_ONLY}
    for name, noun in _LISTS.items():
        document[name] = _nouns(noun, document.get(name), name)
    document["expressions"] = [
        _expression(each, f"expressions[{at}]")
        for at, each in enumerate(_list(document.get("expressions"), "expressions"))
    ]
    if "partition-specs" in document:
        specs = _list(document["partition-specs"], "partition-specs")
        document["partition-specs"] = [
            _spec(each, f"partition-specs[{at}]") for at, each in enumerate(specs)
        ]
    if "sort-orders" in document:
        orders = _list(document["sort-orders"], "sort-orders")
        document["sort-orders"] = [
            _order(each, f"sort-orders[{at}]") for at, each in enumerate(orders)
        ]
    # Java writes -1 for none.
    if document.get("current-snapshot-id") == -1:
        document["current-snapshot-id"] = None
    document["refs"] = _refs(document)
    if document.get("properties") is None:
        document["properties"] = {}
    return _noun(TableMetadata, document, "table metadata")


def _v1_completed(document: Json) -> Json:
    """Return v1 metadata with the lists of v2, made from its singletons where it lacks them."""
    done = {"last-sequence-number": 0, **document}
    if document.get("schemas") is None:
        schema = _object_in(document.get("schema"), "schema")
        done["schemas"] = [{**schema, "schema-id": schema.get("schema-id", 0)}]
        done["current-schema-id"] = schema.get("schema-id", 0)
    if document.get("partition-specs") is None:
        fields = _list(document.get("partition-spec"), "partition-spec")
        done["partition-specs"] = [{"spec-id": 0, "fields": fields}]
        done["default-spec-id"] = 0
    done["partition-specs"] = [
        _numbered(_object_in(spec, "a partition spec"))
        for spec in _list(done["partition-specs"], "partition-specs")
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
    fields = [_object_in(each, "a partition field") for each in _list(spec.get("fields"), "fields")]
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
    outer = _noun(_ExpressionObject, raw, where)
    inner = _noun(_ExpressionBody, outer.expr, f"{where}.expr")
    sources = (inner.source_ids or ()) if inner.source_id is None else (inner.source_id,)
    if not sources:
        raise _Broken(f"{where} has no source-id")
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
    spec = _object_in(raw, where)
    fields = [
        _noun(
            ExprField if isinstance(each, dict) and "expr-id" in each else PartitionField,
            each,
            f"{where}.fields[{at}]",
        )
        for at, each in enumerate(_list(spec.get("fields"), f"{where}.fields"))
    ]
    if len({type(field) for field in fields}) > 1:
        raise _Broken(f"{where} mixes expr-ids with other fields")
    return _noun(PartitionSpec, {**spec, "fields": fields}, where)


def _order(raw: object, where: str) -> SortOrder:
    order = _object_in(raw, where)
    fields = _nouns(SortField, order.get("fields"), f"{where}.fields")
    return _noun(SortOrder, {**order, "fields": fields}, where)


def _refs(document: Json) -> dict[str, Ref]:
    raw = _object_in(document.get("refs") or {}, "refs")
    refs = {name: _noun(Ref, each, f"ref {name!r}") for name, each in raw.items()}
    current = document.get("current-snapshot-id")
    # There is always a main branch at the current snapshot, written or not.
    if MAIN not in refs and current is not None:
        refs[MAIN] = _noun(Ref, {"snapshot-id": current, "type": "branch"}, "current-snapshot-id")
    return refs


def _list(raw: object, where: str) -> list[Any]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise _Broken(f"{where} is not a list")
    return raw


def _object_in(raw: object, where: str) -> Json:
    if not isinstance(raw, dict):
        raise _Broken(f"{where} is not an object")
    return raw


def _nouns(noun: type[N], raw: object, where: str) -> tuple[N, ...]:
    items = _list(raw, where)
    known = _known(noun)
    if all(isinstance(each, dict) and known.issuperset(each) for each in items):
        # Nothing to set aside, as a rule: all of them in one go, for commits wait for this.
        try:
            found: tuple[N, ...] = msgspec.convert(items, _tuple_of(noun))
            return found
        except msgspec.ValidationError as error:
            raise _Broken(f"{where}: {error}") from None
    return tuple([_noun(noun, each, f"{where}[{at}]") for at, each in enumerate(items)])


def _noun(noun: type[N], raw: object, where: str) -> N:
    """Read a JSON object; what the noun does not know goes into its `extra`."""
    if not isinstance(raw, dict):
        raise _Broken(f"{where} is not an object")
    known = _known(noun)
    body = raw
    if not known.issuperset(raw):
        body = {name: value for name, value in raw.items() if name in known}
        body["extra"] = {name: value for name, value in raw.items() if name not in known}
    try:
        return msgspec.convert(body, noun)
    except msgspec.ValidationError as error:
        raise _Broken(f"{where}: {error}") from None


@cache
def _tuple_of(noun: type[Noun]) -> Any:
    return tuple[noun, ...]  # type: ignore[valid-type]


@cache
def _known(noun: type[Noun]) -> frozenset[str]:
    return frozenset(name for _, name, _ in _layout(noun))


@cache
def _layout(noun: type[Noun]) -> tuple[tuple[str, str, object], ...]:
    """Return (attribute, JSON name, default) of every field but `extra`."""
    return tuple(
        (
            each.name,
            each.encode_name,
            each.default if each.default_factory is msgspec.NODEFAULT else {},
        )
        for each in msgspec.structs.fields(noun)
        if each.name != "extra"
    )


def encode(metadata: TableMetadata, *, compress: bool = True) -> bytes:
    """Write metadata.json in the metadata's own format version."""
    document = _object(metadata)
    for attribute, name in _LIST_NAMES.items():
        document[name] = _objects(getattr(metadata, attribute))
    document["refs"] = {name: _slim(ref) for name, ref in metadata.refs.items()}
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
    return _bytes(document, compress=compress)


def encode_page(page: Page) -> bytes:
    """Write a page of history."""
    document = {
        **page.extra,
        "snapshots": _objects(page.snapshots),
        "snapshot-log": _objects(page.snapshot_log),
    }
    return _bytes(document, compress=True)


def _bytes(document: Json, *, compress: bool) -> bytes:
    data = json_bytes(document)
    return gzip.compress(data, _GZIP_LEVEL, mtime=0) if compress else data


def _object(noun: Noun) -> Json:
    """Return a noun as a JSON object with its `extra` beside what is known."""
    found = {}
    for attribute, name, default in _layout(type(noun)):
        value = getattr(noun, attribute)
        if default is msgspec.NODEFAULT or value != default:
            found[name] = value
    return found | noun.extra


def _slim(noun: Noun) -> Noun | Json:
    """Return what encodes to the noun's JSON: the noun itself when it has nothing extra."""
    return _object(noun) if noun.extra else noun


def _objects(nouns: Iterable[Noun]) -> list[Noun | Json]:
    return [_slim(each) for each in nouns]


def _with_fields(noun: PartitionSpec | SortOrder) -> Json:
    return {**_object(noun), "fields": _objects(noun.fields)}


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


def _prime(noun: type[Noun]) -> None:
    for each in noun.__subclasses__():
        msgspec.json.Decoder(each)
        _prime(each)


# msgspec works a class out at its first use, and takes the process down when two threads do so at
# the same time. An import happens in one thread only.
_prime(Noun)
