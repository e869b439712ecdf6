"""The columns of Parquet files that no table tells of: what all files have, and what folders say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from icetree.errors import CorruptTable, InvalidInput
from icetree.files.parallel import in_order
from icetree.rows.adopt import NULL
from icetree.rows.formats.parquet import ParquetReader
from icetree.spec.fields import FIELD_ID_KEY
from icetree.store.base import Store

_INT: Final = re.compile(r"-?\d{1,9}")
_LONG: Final = re.compile(r"-?\d{1,18}")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
#: The first type that every text is of decides; any text is a string.
_FOLDER_TYPES: Final = ((_INT, pa.int32()), (_LONG, pa.int64()), (_DATE, pa.date32()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """What folders such as `country=DE` say: columns, outermost first, and each file's values."""

    columns: pa.Schema
    values: Mapping[str, Mapping[str, pa.Scalar]]


def columns_of(files: Sequence[str], store: Store) -> pa.Schema:
    """Return the columns of all files together, none of them required; only footers are read.

    A column that is wider in one file has the wider type. InvalidInput names two files that cannot
    be of one table.
    """
    found: dict[str, tuple[pa.Field, str]] = {}
    for file, schema in zip(files, in_order(lambda each: _schema(each, store), files), strict=True):
        for field in schema:
            known = found.get(field.name)
            if known is None:
                found[field.name] = field, file
                continue
            type = _wider(known[0].type, field.type)
            if type is None:
                raise InvalidInput(
                    f"{field.name} is {known[0].type} in {known[1]} and {field.type} in {file}: "
                    "write one of them anew, or name the files of one table only"
                )
            found[field.name] = pa.field(field.name, type), known[1]
    return pa.schema([field for field, _ in found.values()])


def _schema(file: str, store: Store) -> pa.Schema:
    try:
        reader = ParquetReader(store.open(file), file)
        schema = reader.schema
        instants = _instants(reader)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{file} is no Parquet file: {error}") from None
    except CorruptTable as error:
        raise InvalidInput(f"{error.file} is no Parquet file to be read: {error.rule}") from None
    for field in schema:
        if FIELD_ID_KEY in (field.metadata or {}):
            raise InvalidInput(
                f"{file} has field ids, as files of Iceberg tables have: take over the table that it "
                "is of, by its metadata file"
            )
    return pa.schema(
        [
            pa.field(
                each.name, pa.timestamp("us", "UTC") if each.name in instants else _open(each.type)
            )
            for each in schema
        ]
    )


def _instants(reader: ParquetReader) -> set[str]:
    """Return the columns whose times are INT96: points in time by custom, which no file says."""
    stored = reader.file.parquet.schema
    columns = (stored.column(at) for at in range(len(stored)))
    return {each.path for each in columns if each.physical_type == "INT96"}


def _open(type: pa.DataType) -> pa.DataType:
    """Return a type in which everything may be null."""
    match type:
        case pa.StructType():
            return pa.struct([pa.field(each.name, _open(each.type)) for each in type])
        case pa.MapType():
            return pa.map_(_open(type.key_type), _open(type.item_type))
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(_open(type.value_type))
    return type


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds both as Iceberg promotes them, None where there is none."""
    is_ = pa.types
    if one == other or is_.is_null(other):
        return one
    if is_.is_null(one):
        return other
    if is_.is_integer(one) and is_.is_integer(other):
        return max(one, other, key=lambda type: (type.bit_width, is_.is_unsigned_integer(type)))
    if is_.is_floating(one) and is_.is_floating(other):
        return max(one, other, key=lambda type: type.bit_width)
    if is_.is_decimal(one) and is_.is_decimal(other) and one.scale == other.scale:
        return max(one, other, key=lambda type: type.precision)
    if isinstance(one, pa.StructType) and isinstance(other, pa.StructType):
        return _wider_struct(one, other)
    return None


def _wider_struct(one: pa.StructType, other: pa.StructType) -> pa.DataType | None:
    found = {field.name: field.type for field in one}
    for field in other:
        type = _wider(found[field.name], field.type) if field.name in found else field.type
        if type is None:
            return None
        found[field.name] = type
    return pa.struct([pa.field(name, type) for name, type in found.items()])


def folders_of(
    files: Sequence[str], root: str, known: Mapping[str, pa.DataType] | None = None
) -> Folders:
    """Return what the folders between a root and its files say; all files must have the same ones.

    A column has the type that is known for it. Else, where its values are all whole numbers or
    dates, it has that type, as engines have it.
    """
    said = {file: _said(file[len(root) :]) for file in files}
    first = files[0] if files else ""
    for file in files:
        if [*said[file]] != [*said[first]]:
            raise InvalidInput(
                f"{first} is in folders {[*said[first]]} and {file} in {[*said[file]]}: files of one "
                "table are partitioned alike"
            )
    types = {
        name: (known or {}).get(name) or _type(said[file][name] for file in files)
        for name in said.get(first, {})
    }
    return Folders(
        columns=pa.schema([pa.field(name, type) for name, type in types.items()]),
        values={
            file: {name: _value(file, text, types[name]) for name, text in texts.items()}
            for file, texts in said.items()
        },
    )


def _said(path: str) -> dict[str, str | None]:
    parts = [each.partition("=") for each in path.split("/")[:-1] if "=" in each]
    return {unquote(name): None if value == NULL else unquote(value) for name, _, value in parts}


def _type(texts: Iterable[str | None]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    for pattern, type in _FOLDER_TYPES if known else ():
        if all(pattern.fullmatch(text) for text in known):
            try:
                pa.array(known).cast(type)
            except pa.ArrowException:
                break
            return type
    return pa.string()


def _value(file: str, text: str | None, type: pa.DataType) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, type)
    try:
        return pa.scalar(text).cast(type)
    except pa.ArrowException:
        raise InvalidInput(f"{file}: {text!r} in its path is no {type}") from None
