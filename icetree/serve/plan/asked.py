"""What a client asks to be planned, checked against the table it asks of."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec
from pyiceberg.schema import Schema

from icetree.errors import InvalidInput, NotFound
from icetree.serve.plan.meant import Meant, schema_meant
from icetree.serve.protocol.bodies import Body, reads
from icetree.spec.metadata.pages import find_snapshot
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.metadata_columns import NAMES
from icetree.spec.schema.shape import Shape
from icetree.spec.texts import did_you_mean
from icetree.table.table import Table

#: Columns of stats, or of a projection, that one request may name.
_MOST_NAMES: Final = 100_000
NO_FILTER: Final = msgspec.Raw()


class PlanBody(Body, frozen=True, kw_only=True):
    """`PlanTableScanRequest` of the protocol."""

    snapshot_id: int | None = None
    select: list[str] | None = None
    filter: Any = None
    min_rows_requested: int | None = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    stats_fields: list[str] | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scan, in ids that stay what they are while the table goes on.

    The same of the same table always gives the same plan: so the whole of it fits in a token.
    """

    table_uuid: str | None
    #: Of what the table's columns and specs mean: these decide what a plan looks like.
    meaning: str
    #: None while the table is empty.
    snapshot_id: int | None
    #: Where an incremental scan starts; what was appended after it is asked for.
    since_id: int | None = None
    schema_id: int
    #: JSON, which takes many times the room once it is decoded; empty where there is none.
    filter: msgspec.Raw = NO_FILTER
    #: Whether names of the filter may mean other columns than those that the schema has.
    is_unsure: bool = False
    case_sensitive: bool = True
    stats_fields: tuple[int, ...] = ()
    min_rows: int | None = None

    @property
    def id(self) -> str:
        """What tells it from every other scan."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return len(bytes(self.filter)) + 8 * len(self.stats_fields)

    @property
    def filter_document(self) -> Any:
        """The filter as a document, None where there is none; InvalidInput for what is no JSON."""
        text = bytes(self.filter)
        try:
            return msgspec.json.decode(text) if text else None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the filter cannot be read: {error}") from None


read_body: Final = reads(PlanBody)


def asked_of(table: Table, body: PlanBody) -> Asked:
    """Return the scan that a body asks for; InvalidInput where the table has no such thing."""
    metadata = table.metadata
    upto = _end(table, body)
    for names, what in ((body.select, "select"), (body.stats_fields, "stats-fields")):
        if names is not None and len(names) > _MOST_NAMES:
            raise InvalidInput(f"{what} names {len(names):,} columns: {_MOST_NAMES:,} at most")
    selected = [name for name in body.select or () if not _is_metadata(name)]
    stats_fields = body.stats_fields or []
    meant = Meant(schema=metadata.schema())
    if body.use_snapshot_schema and upto is not None:
        asked, sensitive = {*selected, *stats_fields}, body.case_sensitive
        meant = schema_meant(metadata, upto, asked, body.filter, case_sensitive=sensitive)
    schema = meant.schema
    _ids(schema, selected, body, "select")
    if body.min_rows_requested is not None and body.min_rows_requested < 0:
        raise InvalidInput(f"min-rows-requested is {body.min_rows_requested}: give 0 or more")
    return Asked(
        table_uuid=metadata.table_uuid,
        meaning=meaning_of(metadata.shape(schema.schema_id)),
        snapshot_id=upto.snapshot_id if upto else None,
        since_id=body.start_snapshot_id,
        schema_id=schema.schema_id,
        filter=NO_FILTER if body.filter is None else msgspec.Raw(msgspec.json.encode(body.filter)),
        is_unsure=meant.is_unsure,
        case_sensitive=body.case_sensitive,
        stats_fields=_ids(schema, stats_fields, body, "stats-fields"),
        min_rows=body.min_rows_requested,
    )


def meaning_of(shape: Shape) -> str:
    """Return what tells a shape from others that entries are read otherwise by."""
    return hashlib.sha256(shape.meaning.encode()).hexdigest()[:16]


def _end(table: Table, body: PlanBody) -> Snapshot | None:
    """Return the snapshot that is read, or the last of a range."""
    if body.snapshot_id is not None and body.start_snapshot_id is not None:
        raise InvalidInput("snapshot-id and start-snapshot-id exclude each other: give one of them")
    if body.start_snapshot_id is not None and body.end_snapshot_id is None:
        raise InvalidInput("start-snapshot-id needs an end-snapshot-id")
    if body.end_snapshot_id is not None and body.start_snapshot_id is None:
        raise InvalidInput("end-snapshot-id needs a start-snapshot-id")
    id = body.snapshot_id if body.end_snapshot_id is None else body.end_snapshot_id
    if id is None:
        return table.metadata.current_snapshot()
    try:
        return find_snapshot(table.metadata, id, table.files.page)
    except NotFound as error:
        raise InvalidInput(f"table {table.name}: {error}") from None


def _ids(schema: Schema, names: Any, body: PlanBody, what: str) -> tuple[int, ...]:
    found = []
    for name in names:
        try:
            field = schema.find_field(name, case_sensitive=body.case_sensitive)
        except ValueError:
            hint = did_you_mean(name, schema.column_names)
            raise InvalidInput(f"{what}: no column {name[:80]!r}{hint}") from None
        found.append(field.field_id)
    return tuple(found)


def _is_metadata(name: str) -> bool:
    """Tell whether a column is one of those that every table has, such as `_file`."""
    return name.partition(".")[0] in NAMES
