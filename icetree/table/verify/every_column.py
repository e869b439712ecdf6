"""Every column that a table ever had: scans of the past read columns that have gone since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from icetree.rows.read.files import DataFile
from icetree.spec.entry.entry import Entries
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.columns import holders
from icetree.spec.schema.shape import Shape
from icetree.table.verify.contradicted import told_by


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryColumn:
    """The columns of all schemas side by side, within structs too."""

    #: With all of them for its schema; the name of one that has gone is nobody else's.
    shape: Shape
    #: Columns that the current schema does not have; fields within structs aside.
    gone: frozenset[int]

    @classmethod
    def of(cls, metadata: TableMetadata, shape: Shape) -> EveryColumn:
        """Return the columns of a table, whose shape is that of its current schema."""
        now = shape.schema
        if not shape.former:
            return cls(shape=shape, gone=frozenset())
        newest_first = sorted((each["schema-id"] for each in metadata.schemas), reverse=True)
        others = [metadata.schema(id) for id in newest_first]
        joined = _Joined(have=set(index_by_id(now)), mark=_mark([now, *others]))
        fields = now.fields
        for other in others:
            fields = joined.fields(fields, other.fields)
        gone = {each.field_id for each in fields} - {each.field_id for each in now.fields}
        return cls(shape=replace(shape, schema=Schema(*fields)), gone=frozenset(gone))

    def in_data(self, file: DataFile, entries: Iterable[Entries]) -> tuple[NestedField, ...]:
        """Return today's columns, and of others what a data file holds, or its entries tell of."""
        fields = self.shape.schema.fields
        if not self.gone:
            return fields
        told = {column for entry in entries for column, _ in told_by(entry)}
        meant = {field.field_id for field in holders(fields, told)}
        found = []
        for field in fields:
            if field.field_id not in self.gone or file.has(field.field_id):
                found.append(field)
            elif field.field_id in meant:
                found.append(optional(field))
        return tuple(found)

    def in_deletes(self, file: DataFile) -> tuple[NestedField, ...]:
        """Return what an equality delete file holds to compare, whatever the table requires."""
        fields = self.shape.schema.fields
        return tuple(_held(field, file) for field in fields if file.has(field.field_id))


def optional(field: NestedField) -> NestedField:
    """Return a column that a file may lack, or hold nulls in."""
    return field.model_copy(update={"required": False})


def _held(field: NestedField, file: DataFile) -> NestedField:
    """Return a column with no more in it than a file has, which may be null."""
    type = field.field_type
    if isinstance(type, StructType):
        members = (each for each in type.fields if file.has_below(each.field_id))
        type = StructType(*(_held(each, file) for each in members))
    return field.model_copy(update={"field_type": type, "required": False})


def _mark(schemas: Sequence[Schema]) -> str:
    """Return what the name of no column holds."""
    names = [column.name for schema in schemas for column in index_by_id(schema).values()]
    mark = "#"
    while any(mark in name for name in names):
        mark += "#"
    return mark


@dataclass(slots=True, kw_only=True)
class _Joined:
    """Joins columns to others, each under the id that it has, once."""

    have: set[int]
    mark: str

    def fields(
        self, fields: Iterable[NestedField], others: Iterable[NestedField]
    ) -> tuple[NestedField, ...]:
        """Return fields, with those of the same struct in another schema that are new."""
        found = {field.field_id: field for field in fields}
        for other in others:
            known = found.get(other.field_id)
            if known is not None:
                found[other.field_id] = self._joined(known, other)
            elif self.have.isdisjoint(ids := set(index_by_id(StructType(other)))):
                self.have |= ids
                name = f"{other.name}{self.mark}{other.field_id}"
                found[other.field_id] = other.model_copy(update={"name": name})
        return tuple(found.values())

    def _joined(self, field: NestedField, other: NestedField) -> NestedField:
        type = self._type(field.field_type, other.field_type)
        return field.model_copy(update={"field_type": type})

    def _type(self, type: IcebergType, other: IcebergType) -> IcebergType:
        """Return a type with the fields that only another version of it has."""
        match type, other:
            case StructType(), StructType():
                now = {field.field_id for field in type.fields}
                fields = self.fields(type.fields, other.fields)
                # Files from after a field had gone lack it.
                return StructType(*(f if f.field_id in now else optional(f) for f in fields))
            case ListType(), ListType():
                return ListType(
                    type.element_id,
                    self._type(type.element_type, other.element_type),
                    type.element_required,
                )
            case MapType(), MapType():
                return MapType(
                    type.key_id,
                    type.key_type,
                    type.value_id,
                    self._type(type.value_type, other.value_type),
                    type.value_required,
                )
        return type
