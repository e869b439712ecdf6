"""Manifests of v1, v2 and v3: data files and delete files as leaf entries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.avro.avro import AvroFile, Json, Rows, fields_of, open_avro, require_kind
from icetree.codec.inherit import Inherited, inherit, require_tracking
from icetree.codec.legacy.alike import gathered, parted, told_header
from icetree.codec.legacy.columns import Columns, Source, as_type, require, version_of
from icetree.codec.legacy.counted import PARTITION, with_counted_bytes
from icetree.codec.legacy.stats import MAP_IDS, Metrics, Tuples
from icetree.codec.places import stored_form_of_full
from icetree.errors import CorruptTable, NotFound
from icetree.spec.entry import stats
from icetree.spec.entry.entry import POSITION, Content, Entries, Status, complete
from icetree.spec.fields import BY_NAME
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape

_ALL: Final = (1, 2, 3)
_SINCE_V2: Final = (2, 3)
_DATA_FILE: Final = 2
_SEQUENCE_NUMBER: Final = 3
_COLUMN_SIZES: Final = 108
_METRICS: Final = MAP_IDS | {_COLUMN_SIZES}

_KINDS: Final = {"data": Content.DATA_MANIFEST, "deletes": Content.DELETE_MANIFEST}
_FORMATS: Final = ("parquet", "avro", "orc", "puffin")


def _source(name: str, kind: str, required: tuple[int, ...] = (), id: int | None = None) -> Source:
    # A content entry keeps the ids that v1-v3 gave to the same fields.
    return Source(
        name=name, id=BY_NAME[name].id if id is None else id, kind=kind, required=required
    )


_ENTRY: Final = (
    _source("status", "integer", _ALL),
    _source("snapshot_id", "integer"),
    _source("sequence_number", "integer"),
    _source("file_sequence_number", "integer"),
)
_FILE: Final = (
    _source("content_type", "integer", _SINCE_V2),
    _source("location", "string", _ALL),
    _source("file_format", "string", _ALL),
    _source("record_count", "integer", _ALL),
    _source("file_size_in_bytes", "integer", _ALL),
    _source("key_metadata", "bytes"),
    _source("split_offsets", "integers"),
    _source("equality_ids", "integers"),
    _source("sort_order_id", "integer"),
    _source("first_row_id", "integer"),
    _source("referenced_file", "string"),
    _source("dv_offset", "integer"),
    _source("dv_size_in_bytes", "integer"),
)


def decode_manifest(
    data: bytes,
    *,
    file: str,
    shape: Shape,
    table_location: str,
    inherit: Inherited,
    columns: Collection[str] | None = None,
) -> Entries:
    """Return a manifest's entries of every status with their `position`, tracking inherited.

    A partition tuple becomes stats of the spec's expressions; for an identity expression, whose
    stats are its column's, it takes the place of the column's metrics, which may be truncated.
    `columns` narrows the result; one of them that the manifest lacks is null.
    """
    avro = open_avro(data, file=file)
    wanted = None if columns is None else _stats_fields(columns)
    try:
        [entries] = _Decoder([avro], shape, [inherit]).entries(table_location, wanted)
    except CorruptTable:
        counted = with_counted_bytes(avro)
        if counted is None:
            raise
        [entries] = _Decoder([counted], shape, [inherit]).entries(table_location, wanted)
    return entries if columns is None else narrow(entries, columns, shape)


def decode_manifests(
    manifests: Sequence[tuple[str, bytes, Inherited]], *, shape: Shape, table_location: str
) -> list[Entries]:
    """Return what `decode_manifest` does of each (file, bytes, what it inherits), in order.

    Those that differ in nothing but their entries are read as one: of many with a few entries each,
    what is done once for a file is most of the work. CorruptTable where one of them is broken,
    whichever that is, or of a kind that has to be read by itself.
    """
    opened = [(open_avro(data, file=file), told) for file, data, told in manifests]
    found: dict[int, Entries] = {}
    for alike in gathered(range(len(opened)), lambda at: _told(*opened[at])):
        files, told = zip(*(opened[at] for at in alike), strict=True)
        decoded = _Decoder(files, shape, told).entries(table_location, None)
        found |= dict(zip(alike, decoded, strict=True))
    return [found[at] for at in range(len(opened))]


def _told(avro: AvroFile, inherited: Inherited) -> tuple[object, ...]:
    """Return what decides how the entries of a manifest are read."""
    said = ("content", "partition-spec-id")
    own = (*told_header(avro), *(avro.metadata.get(each) for each in said))
    return (*own, inherited.content_type, inherited.partition_spec_id)


class _Decoder:
    """Decodes manifests that are alike; of what goes for all of them, the first is asked."""

    def __init__(
        self, files: Sequence[AvroFile], shape: Shape, inherited: Sequence[Inherited]
    ) -> None:
        avro = files[0]
        fields = avro.fields()
        self._avro = avro
        self._files = files
        self._shape = shape
        self._inherited = inherited
        self._version = version_of(avro, default=2 if _SEQUENCE_NUMBER in fields else 1)
        self._kind = _kind(avro, self._version, inherited[0])
        self._spec_id = _spec_id(avro, inherited[0])
        if _DATA_FILE not in fields:
            raise CorruptTable(avro.file, "data_file (field id 2) is missing")
        require_kind(fields[_DATA_FILE], "record", file=avro.file, name="data_file")
        self._entry_fields = fields
        self._data_file = fields[_DATA_FILE].name
        self._file_fields = fields_of(fields[_DATA_FILE].type, file=avro.file)

    def entries(self, table_location: str, wanted: Collection[int] | None) -> list[Entries]:
        file, version = self._avro.file, self._version
        of_entry = Columns(_ENTRY, self._entry_fields, version=version, file=file)
        of_file = Columns(_FILE, self._file_fields, version=version, file=file)
        metrics = Metrics({} if wanted == set() else self._file_fields, file=file)
        tuples = Tuples(
            self._file_fields.get(PARTITION),
            _spec(self._shape, self._spec_id, file),
            self._shape,
            version=version,
            file=file,
        )
        schema = _without_metrics(self._avro.schema) if wanted == set() else None
        rows = Rows(self._files, schema)
        for some in rows.chunks():
            files = [row[self._data_file] for row in some]
            of_entry.add(some)
            of_file.add(files)
            metrics.add(files)
            tuples.add(files)
        base = self._base(of_entry.gathered() | of_file.gathered(), table_location)
        columns = base | metrics.stats(base, self._shape, wanted)
        columns |= tuples.stats(base["record_count"])
        parts = parted(complete(pa.table(columns)), rows.counts)
        told = zip(parts, self._inherited, self._files, strict=True)
        return [_tracked(part, inherited, avro.file) for part, inherited, avro in told]

    def _base(self, found: dict[str, pa.Array], table_location: str) -> dict[str, pa.Array]:
        size = len(found["status"])
        for source in (*_ENTRY, *_FILE):
            if source.name not in found:
                found[source.name] = pa.nulls(size, source.type)
        if self._version == 1:
            for name in ("sequence_number", "file_sequence_number", "content_type"):
                found[name] = as_type(0, size, name)
        found["file_format"] = pc.utf8_lower(found["file_format"])
        self._check(found)
        content = found["content_type"]
        is_data = pc.equal(content, pa.scalar(Content.DATA, pa.int32()))
        is_position = pc.equal(content, pa.scalar(Content.POSITION_DELETES, pa.int32()))
        is_equality = pc.equal(content, pa.scalar(Content.EQUALITY_DELETES, pa.int32()))
        for name, applies in (
            ("sort_order_id", is_data),
            ("first_row_id", is_data),
            ("referenced_file", is_position),
            ("dv_offset", is_position),
            ("dv_size_in_bytes", is_position),
            ("equality_ids", is_equality),
        ):
            found[name] = pc.if_else(applies, found[name], pa.scalar(None, found[name].type))
        for name in ("location", "referenced_file"):
            found[name] = stored_form_of_full(found[name], table_location, file=self._avro.file)
        found["partition_spec_id"] = as_type(self._spec_id, size, "partition_spec_id")
        return found

    def _check(self, found: dict[str, pa.Array]) -> None:
        file = self._avro.file
        known = pa.array(list(Status), pa.int32())
        require(pc.is_in(found["status"], known), file=file, rule="an entry has an unknown status")
        allowed = (
            [Content.DATA]
            if self._kind is Content.DATA_MANIFEST
            else [Content.POSITION_DELETES, Content.EQUALITY_DELETES]
        )
        require(
            pc.is_in(found["content_type"], pa.array(allowed, pa.int32())),
            file=file,
            rule="an entry's content is not allowed in this kind of manifest",
        )
        format = found["file_format"]
        require(
            pc.is_in(format, pa.array(_FORMATS)),
            file=file,
            rule="an entry has an unknown file format",
        )
        require(
            pc.greater_equal(found["record_count"], 0), file=file, rule="a record count is negative"
        )
        require(
            pc.or_kleene(
                pc.is_null(found["first_row_id"]), pc.greater_equal(found["first_row_id"], 0)
            ),
            file=file,
            rule="a first row id is negative",
        )
        is_equality = pc.equal(found["content_type"], pa.scalar(2, pa.int32()))
        require(
            pc.or_(pc.invert(is_equality), pc.is_valid(found["equality_ids"])),
            file=file,
            rule="an equality delete file names no equality fields",
        )
        is_vector = pc.equal(format, "puffin")
        for name in ("referenced_file", "dv_offset", "dv_size_in_bytes"):
            require(
                pc.or_(pc.invert(is_vector), pc.is_valid(found[name])),
                file=file,
                rule=f"a deletion vector lacks its {name}",
            )


def _tracked(entries: Entries, inherited: Inherited, file: str) -> Entries:
    """Return the entries of a manifest with what they inherit, and where in it they are."""
    entries = inherit(entries, inherited)
    # Early writers of v2 kept no file sequence number for files that were carried over.
    require_tracking(entries, file=file, names=("snapshot_id", "sequence_number"))
    position = pa.array(np.arange(entries.num_rows, dtype=np.int64))
    return entries.append_column(POSITION, position)


def _kind(avro: AvroFile, version: int, inherited: Inherited) -> Content:
    said = "data" if version == 1 else avro.metadata.get("content", "data")
    if said not in _KINDS:
        raise CorruptTable(avro.file, f"content is {said!r}, neither data nor deletes")
    if _KINDS[said] != inherited.content_type:
        raise CorruptTable(avro.file, f"content is {said!r}, which its own entry contradicts")
    return _KINDS[said]


def _spec_id(avro: AvroFile, inherited: Inherited) -> int:
    said = avro.metadata.get("partition-spec-id", str(inherited.partition_spec_id))
    try:
        return int(said)
    except ValueError:
        raise CorruptTable(avro.file, f"partition-spec-id is {said!r}, not a number") from None


def _spec(shape: Shape, spec_id: int, file: str) -> tuple[Expression, ...]:
    try:
        return shape.spec(spec_id)
    except NotFound as error:
        raise CorruptTable(file, f"the manifest names {error}") from error


def _stats_fields(columns: Collection[str]) -> set[int]:
    parsed = (stats.parse_column(name) for name in columns)
    return {each[0] for each in parsed if each is not None}


def _without_metrics(schema: Json) -> Json:
    """Return the schema without the maps, which make up most of a manifest."""
    match schema:
        case dict():
            return {key: _without_metrics(value) for key, value in schema.items()}
        case list():
            return [
                _without_metrics(each)
                for each in schema
                if not (isinstance(each, dict) and each.get("field-id") in _METRICS)
            ]
        case _:
            return schema


def narrow(entries: Entries, columns: Collection[str], shape: Shape) -> Entries:
    """Return these columns of a decoded manifest, and `position`; one that it lacks is null."""
    found = {}
    for name in dict.fromkeys(columns):
        if name == POSITION:
            continue
        if name in entries.column_names:
            found[name] = entries[name]
        elif parsed := stats.parse_column(name):
            bounds = shape.bounds_type(parsed[0]) or pa.null()
            found[name] = pa.nulls(entries.num_rows, stats.stat_type(parsed[1], bounds))
        else:
            found[name] = pa.nulls(entries.num_rows, BY_NAME[name].type)
    return pa.table(found | {POSITION: entries[POSITION]})
