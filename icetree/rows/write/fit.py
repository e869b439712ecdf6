"""A caller's Arrow data as rows of the table: by name, without loss, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, TypeVar

import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from icetree.errors import InvalidInput
from icetree.rows.project import Node, nodes, project
from icetree.rows.schema import arrow_field, arrow_type, default_array, null_array
from icetree.rows.write.offsets import with_offsets
from icetree.rows.write.sound import broken
from icetree.spec.arrays import is_blob
from icetree.spec.schema.types import VariantType
from icetree.spec.texts import did_you_mean

#: Rows as callers have them.
ArrowData: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]"

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def batches_of(data: ArrowData) -> Iterator[pa.RecordBatch]:
    """Yield the batches of whatever a caller calls data, laid out so that all of pyarrow takes them."""
    return map(with_offsets, _batches_of(data))


def _batches_of(data: ArrowData) -> Iterator[pa.RecordBatch]:
    match data:
        case pa.Table():
            yield from data.to_batches()
            return
        case pa.RecordBatch():
            yield data
            return
        case pa.RecordBatchReader():
            yield from data
            return
    if hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
        return
    if not isinstance(data, Iterable):
        raise InvalidInput(f"rows must come as Arrow data, not as {type(data).__name__}")
    if isinstance(data, Mapping):
        raise InvalidInput("rows must come as Arrow data, not as a dict: pyarrow.table makes some")
    for batch in data:
        if isinstance(batch, Mapping):
            raise InvalidInput(
                "rows must come as Arrow data, not as dicts: pyarrow.Table.from_pylist makes some"
            )
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidInput(
                f"rows must come as Arrow record batches, not {type(batch).__name__}"
            )
        yield batch


def without_untyped(data: ArrowData, fields: Iterable[NestedField], *, table: str) -> ArrowData:
    """Return the data without columns of unknown type; a value in one of them is refused."""
    names = {field.name for field in fields if isinstance(field.field_type, UnknownType)}
    if not names:
        return data

    def left(batch: Rows) -> Rows:
        for name in names.intersection(batch.schema.names):
            if batch.column(name).null_count < len(batch):
                raise InvalidInput(
                    f"column {name!r} of table {table} has no type yet, so it takes nulls alone: give "
                    "it a type first, with edit_schema().widen(…)"
                )
        return batch.select([name for name in batch.schema.names if name not in names])

    if isinstance(data, pa.RecordBatch | pa.Table):
        return left(data)
    return map(left, batches_of(data))


def fitted(
    data: ArrowData, fields: Iterable[NestedField], *, table: str
) -> Iterator[pa.RecordBatch]:
    """Yield the data as the table's columns, in their order; InvalidInput for what does not fit."""
    wanted = tuple(fields)
    schema = pa.schema([arrow_field(field) for field in wanted])
    rules = WriteRules(table)
    known: tuple[pa.Schema, tuple[Node, ...]] | None = None
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        # Even without a row, data of another shape is a mistake worth hearing of.
        known = data.schema, _nodes(data.schema, wanted, rules)
    for batch in batches_of(data):
        if known is None or not known[0].equals(batch.schema):
            known = batch.schema, _nodes(batch.schema, wanted, rules)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays = project(columns, known[1], wanted, batch.num_rows, rules)
        for field, array in zip(wanted, arrays, strict=True):
            rules.require_valid(array, field.field_type, field.name)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _nodes(
    schema: pa.Schema, wanted: tuple[NestedField, ...], rules: WriteRules
) -> tuple[Node, ...]:
    types = {path: (id, type) for path, id, type in _paths(StructType(*wanted), ())}
    ids = {path: id for path, (id, _) in types.items()}
    found = nodes(schema, lambda path, _: ids.get(path))
    variants = {id for id, type in types.values() if isinstance(type, VariantType)}
    rules.require_known(found, wanted, variants)
    empty = {node.name: pa.nulls(0, node.type) for node in found}
    # Types and missing columns show without a row; what needs values is left for the rows.
    project(empty, found, wanted, 0, rules)
    return found


def _paths(
    type: IcebergType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], int, IcebergType]]:
    match type:
        case StructType():
            parts = [(field.name, field) for field in type.fields]
        case ListType():
            parts = [("element", type.element_field)]
        case MapType():
            parts = [("key", type.key_field), ("value", type.value_field)]
        case _:
            parts = []
    for name, field in parts:
        yield (*path, name), field.field_id, field.field_type
        yield from _paths(field.field_type, (*path, name))


_is = pa.types


def _is_text(type: pa.DataType) -> bool:
    return bool(_is.is_string(type) or _is.is_large_string(type) or _is.is_string_view(type))


def _is_whole(type: pa.DataType, bits: int) -> bool:
    if not _is.is_integer(type) or type.bit_width > bits:
        return False
    return bool(_is.is_signed_integer(type)) or type.bit_width < bits


def _is_real(type: pa.DataType, bits: int) -> bool:
    return bool(_is.is_floating(type)) and type.bit_width <= bits


def _is_moment(type: pa.DataType, *, zoned: bool) -> bool:
    return bool(_is.is_timestamp(type)) and (type.tz is not None) is zoned


#: Which Arrow types have no value that the type lacks (finer units of time aside).
_HOLDS: Final[Mapping[type[IcebergType], Callable[[pa.DataType], bool]]] = {
    BooleanType: _is.is_boolean,
    IntegerType: lambda have: _is_whole(have, 32),
    LongType: lambda have: _is_whole(have, 64),
    FloatType: lambda have: _is_real(have, 32),
    DoubleType: lambda have: _is_real(have, 64),
    DateType: _is.is_date,
    TimeType: _is.is_time,
    TimestampType: lambda have: _is_moment(have, zoned=False),
    TimestampNanoType: lambda have: _is_moment(have, zoned=False),
    TimestamptzType: lambda have: _is_moment(have, zoned=True),
    TimestamptzNanoType: lambda have: _is_moment(have, zoned=True),
    StringType: _is_text,
    BinaryType: is_blob,
    GeometryType: is_blob,
    GeographyType: is_blob,
}


def _holds(want: IcebergType, have: pa.DataType) -> bool:
    match want:
        case DecimalType():
            return (
                bool(_is.is_decimal(have))
                and 0 <= have.scale <= want.scale
                and have.precision - have.scale <= want.precision - want.scale
            )
        case UUIDType() | FixedType():
            width = 16 if isinstance(want, UUIDType) else len(want)
            return bool(_is.is_fixed_size_binary(have)) and have.byte_width == width
    return want.__class__ in _HOLDS and bool(_HOLDS[want.__class__](have))


class WriteRules:
    """How a caller's columns become the table's."""

    def __init__(self, table: str) -> None:
        self._table = table

    def require_known(
        self, found: Iterable[Node], wanted: Iterable[NestedField], variants: Collection[int] = ()
    ) -> None:
        """Refuse columns that the table does not have, and names that are there twice.

        The parts of `variants` are no columns.
        """
        seen: set[str] = set()
        for node in found:
            if node.id is None:
                wanted = tuple(wanted)
                known = ", ".join(field.name for field in wanted)
                raise InvalidInput(
                    f"table {self._table} has no column {node.name!r} (it has {known}): "
                    "leave it out, or add the column to the table's schema first"
                    f"{did_you_mean(node.name, [field.name for field in wanted])}"
                )
            if node.name in seen:
                raise InvalidInput(f"the data has two columns named {node.name!r}")
            seen.add(node.name)
            self._require_members(node, node.name, variants)

    def _require_members(self, node: Node, where: str, variants: Collection[int]) -> None:
        for child in () if node.id in variants else node.children:
            if child.id is None and pa.types.is_struct(node.type):
                raise InvalidInput(
                    f"table {self._table}: {where} has no field {child.name!r}: "
                    "leave it out, or add it to the table's schema first"
                )
            self._require_members(child, f"{where}.{child.name}", variants)

    def convert(self, array: pa.Array, type: IcebergType, where: str) -> pa.Array:
        want = arrow_type(type)
        if array.type == want:
            return array
        have = array.type
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        stored = array.storage if isinstance(array, pa.ExtensionArray) else array
        if not _holds(type, stored.type):
            raise self.misfit(where, have, type)
        try:
            if isinstance(want, pa.BaseExtensionType):
                return pa.ExtensionArray.from_storage(want, stored.cast(want.storage_type))
            return stored.cast(want)
        except pa.ArrowInvalid as error:
            raise InvalidInput(
                f"table {self._table}: column {where} is {have}, and not all of its values "
                f"are {type} without loss: {error}"
            ) from None

    def require_valid(self, array: pa.Array, type: IcebergType, where: str) -> None:
        """Refuse what no reader understands: text that is not UTF-8, times outside a day, bytes
        that are no geometry or no variant."""
        for at, kind, why in broken(array, type, where):
            raise InvalidInput(
                f"table {self._table}: column {at} has values that are no {kind}: {why}"
            )

    def missing(self, field: NestedField, size: int, where: str) -> pa.Array:
        if field.write_default is not None:
            return default_array(field.write_default, field.field_type, size, where=where)
        if field.required:
            raise InvalidInput(
                f"table {self._table}: the data has no column {where}, which is required "
                "and has no default"
            )
        return null_array(field.field_type, size)

    def misfit(self, where: str, have: pa.DataType, want: IcebergType) -> Exception:
        hint = ""
        if isinstance(want, TimestamptzType | TimestamptzNanoType) and pa.types.is_timestamp(have):
            hint = ": give its values a time zone"
        elif isinstance(want, TimestampType | TimestampNanoType) and pa.types.is_timestamp(have):
            hint = ": take the time zone off its values"
        return InvalidInput(
            f"table {self._table}: column {where} is {have} in the data, but {want} in the table"
            f"{hint or ': cast it first'}"
        )

    def broken(self, where: str, want: IcebergType, why: str) -> Exception:
        return InvalidInput(
            f"table {self._table}: column {where} has a value that is no {want}: {why}"
        )

    def null_in_required(self, where: str) -> Exception:
        return InvalidInput(
            f"table {self._table}: column {where} is required, but the data has a null"
        )
