"""Data files as columns: opened once, read a row group at a time, columns found by field id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table.name_mapping import MappedField, NameMapping, parse_mapping_from_json
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.codec import limits
from icetree.codec.encryption import key_metadata
from icetree.errors import CorruptTable, InvalidInput
from icetree.files.sealed import open_ranges
from icetree.rows.formats.formats import format_of
from icetree.rows.project import Node, leaves_of, nodes, project
from icetree.rows.schema import arrow_type, default_array, null_array
from icetree.store.base import Store

NAME_MAPPING: Final = "schema.name-mapping.default"
CHECKSUMS: Final = "read.parquet.checksums"
_BYTES_A_ROW: Final = 8
#: What Arrow raises for broken bytes; a name that is no text is a ValueError.
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A run of rows that is read at once: a row group, a stripe, some blocks."""

    ordinal: int
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """An open file of rows."""

    #: As errors name it.
    location: str
    format: str
    reader: Any
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    #: A reader does one thing at a time; what comes after reading needs no lock.
    lock: Lock = field(default_factory=Lock)

    def has(self, field_id: int) -> bool:
        """Tell whether the file itself has a column."""
        return any(node.id == field_id for node in self.nodes)

    def has_below(self, field_id: int) -> bool:
        """Tell whether the file itself has a field, as a column or anywhere inside one."""
        waiting = list(self.nodes)
        while waiting:
            node = waiting.pop()
            if node.id == field_id:
                return True
            waiting += node.children
        return False

    def read(
        self, group: Group, wanted: Sequence[NestedField], rules: ReadRules
    ) -> list[pa.RecordBatch]:
        """Return the wanted columns of a run of rows, as the table has them, in order."""
        names = [field.name for field in wanted]
        there = {node.id: node for node in self.nodes if node.id is not None}
        found = [(there[f.field_id], f) for f in wanted if f.field_id in there]
        leaves = [leaf for node, field in found for leaf in leaves_of(node, field.field_type)]
        if not leaves:
            arrays = project({}, self.nodes, wanted, group.rows, rules)
            return [batch_of(arrays, names, group.rows)]
        try:
            with self.lock:
                table = self.reader.read(
                    group.ordinal, sorted(set(leaves)), [node.name for node, _ in found]
                )
        except _UNREADABLE as error:
            raise CorruptTable(self.location, f"its rows cannot be read: {error}") from error
        if table.num_rows != group.rows:
            raise CorruptTable(
                self.location,
                f"row group {group.ordinal} has {table.num_rows} rows, not {group.rows}",
            )
        made = []
        for batch in table.to_batches():
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            arrays = project(columns, self.nodes, wanted, batch.num_rows, rules)
            made.append(batch_of(arrays, names, batch.num_rows))
        return made


def batch_of(arrays: Sequence[pa.Array], names: Sequence[str], size: int) -> pa.RecordBatch:
    """Return columns as a batch; without any it still has its number of rows."""
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * size, pa.struct([])))
    return pa.RecordBatch.from_arrays(list(arrays), names=list(names))


def open_file(
    store: Store,
    location: str,
    file_format: str,
    *,
    mapping: NameMapping | None,
    checksums: bool = True,
    key: bytes | None = None,
) -> DataFile:
    """Open a file of rows at an absolute location; `key` is the key metadata of an encrypted one.

    Pages of Parquet are held against their checksums, where they have any, unless `checksums` is
    false.
    """
    format, key = format_of(file_format, location), key_metadata.standard(key)
    if key is not None and format.keyed is not None:
        format, key = format.keyed(key_metadata.decode(key, file=location)), None
    source = open_ranges(store, location, key)
    try:
        reader = format.open(source, location, checksums)
        schema, sizes = reader.schema, reader.group_rows
    except _UNREADABLE as error:
        raise CorruptTable(location, f"it is no {file_format} file: {error}") from error
    groups, first = [], 0
    for ordinal, rows in enumerate(sizes):
        # Columns that the file lacks are made up, and marks of rows kept, from this number alone.
        what = f"a column of row group {ordinal} with {rows:,} rows"
        limits.ROW_GROUP.require(_BYTES_A_ROW * rows, file=location, what=what)
        groups.append(Group(ordinal=ordinal, first_row=first, rows=rows))
        first += rows
    try:
        found = nodes(schema, lambda _, each: _stored_id(each, format.id_key))
    except ValueError as error:
        raise CorruptTable(location, f"its columns cannot be told: {error}") from None
    if not any(_has_ids(node) for node in found):
        if mapping is None:
            raise CorruptTable(
                location, f"its columns have no field ids: the table needs {NAME_MAPPING!r}"
            )
        found = nodes(schema, lambda path, _: _mapped_id(path, mapping))
    _require_distinct(found, set(), location)
    return DataFile(
        location=location, format=format.name, reader=reader, nodes=found, groups=tuple(groups)
    )


def _require_distinct(siblings: tuple[Node, ...], ids: set[int], location: str) -> None:
    """Refuse a file in which an id, or a name among others, does not tell which column is meant."""
    names: set[str] = set()
    for node in siblings:
        if node.name in names:
            raise CorruptTable(location, f"two of its columns are called {node.name!r}")
        if node.id in ids:
            raise CorruptTable(location, f"two of its columns have field id {node.id}")
        names.add(node.name)
        if node.id is not None:
            ids.add(node.id)
        _require_distinct(node.children, ids, location)


def _stored_id(field: pa.Field, key: bytes) -> int | None:
    found = (field.metadata or {}).get(key)
    return int(found) if found is not None and int(found) >= 0 else None


def _has_ids(node: Node) -> bool:
    return node.id is not None or any(map(_has_ids, node.children))


def _mapped_id(path: Sequence[str], mapping: NameMapping) -> int | None:
    level: Iterable[MappedField] = mapping.root
    found: MappedField | None = None
    for name in path:
        found = next((each for each in level if name in each.names), None)
        if found is None:
            return None
        level = found.fields
    return None if found is None else found.field_id


def name_mapping(properties: Any) -> NameMapping | None:
    """Return the table's mapping for files without field ids, where it has one."""
    text = properties.get(NAME_MAPPING)
    if text is None:
        return None
    try:
        return parse_mapping_from_json(text)
    except ValueError as error:
        raise InvalidInput(f"{NAME_MAPPING} is not a name mapping: {error}") from None


def _may_become(have: pa.DataType, want: IcebergType) -> bool:
    """Tell whether stored values may be read as the type: the same, or promoted to it."""
    is_ = pa.types
    match want:
        case IntegerType() | LongType():
            return bool(is_.is_integer(have))
        case FloatType() | DoubleType():
            return bool(is_.is_floating(have))
        case DecimalType():
            return bool(is_.is_decimal(have)) and have.scale == want.scale
        case DateType():
            return bool(is_.is_date(have))
        case TimeType():
            return bool(is_.is_time(have))
        case TimestampType() | TimestampNanoType():
            return bool(is_.is_timestamp(have) or is_.is_date(have))
        case TimestamptzType() | TimestamptzNanoType():
            return bool(is_.is_timestamp(have))
        case UUIDType() | FixedType():
            return bool(is_.is_fixed_size_binary(have))
    texts = (is_.is_string, is_.is_large_string, is_.is_string_view)
    blobs = (is_.is_binary, is_.is_large_binary, is_.is_binary_view)
    allowed = (*texts, *blobs) if isinstance(want, StringType) else blobs
    return any(kind(have) for kind in allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """How a file's columns become the table's."""

    location: str
    #: Values of columns that files of this partition need not hold, by field id.
    constants: dict[int, pa.Scalar] = field(default_factory=dict)

    def convert(self, array: pa.Array, type: IcebergType, where: str) -> pa.Array:
        found = self._converted(array, type, where)
        if isinstance(type, StringType):
            # Arrow takes the bytes of a file for text, whatever they are.
            try:
                found.validate(full=True)
            except pa.ArrowException as error:
                raise self.broken(where, type, str(error)) from None
        return found

    def _converted(self, array: pa.Array, type: IcebergType, where: str) -> pa.Array:
        want = arrow_type(type)
        if array.type == want:
            return array
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        if pa.types.is_null(want):
            return pa.nulls(len(array))
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), want)
        stored = array.storage if isinstance(array, pa.ExtensionArray) else array
        if not _may_become(stored.type, type):
            raise self.misfit(where, array.type, type)
        try:
            if isinstance(want, pa.BaseExtensionType):
                return pa.ExtensionArray.from_storage(want, stored.cast(want.storage_type))
            return stored.cast(want)
        except pa.ArrowException as error:
            raise CorruptTable(self.location, f"column {where} is not {type}: {error}") from None

    def missing(self, field: NestedField, size: int, where: str) -> pa.Array:
        if field.field_id in self.constants:
            return pa.repeat(self.constants[field.field_id], size)
        if field.initial_default is not None:
            return default_array(field.initial_default, field.field_type, size, where=where)
        if field.required:
            raise CorruptTable(
                self.location, f"it lacks the required column {where}, which has no default"
            )
        return null_array(field.field_type, size)

    def misfit(self, where: str, have: pa.DataType, want: IcebergType) -> Exception:
        return CorruptTable(
            self.location, f"column {where} is {have}, which cannot be read as {want}"
        )

    def null_in_required(self, where: str) -> Exception:
        return CorruptTable(self.location, f"the required column {where} has a null")

    def broken(self, where: str, want: IcebergType, why: str) -> Exception:
        return CorruptTable(self.location, f"column {where} has a value that is no {want}: {why}")


def position_deletes(file: DataFile, path_id: int, pos_id: int) -> pa.Table:
    """Return (path, position) of every row of a position delete file of v2."""
    wanted = [
        NestedField(path_id, "file_path", StringType(), required=True),
        NestedField(pos_id, "pos", LongType(), required=True),
    ]
    rules = ReadRules(location=file.location)
    parts = [batch for group in file.groups for batch in file.read(group, wanted, rules)]
    schema = pa.schema([("file_path", pa.string()), ("pos", pa.int64())])
    return pa.Table.from_batches([part.cast(schema) for part in parts], schema)
