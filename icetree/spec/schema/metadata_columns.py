"""Columns that every row has beside its own: where it stands, its lineage, whether it is gone.

They are known by reserved ids. New columns of a table cannot have their names; one that another
writer gave such a name is found under it instead, and the metadata column only by its id.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD
from icetree.spec.schema.shape import Shape

FILE_FIELD: Final = 2147483646
POS_FIELD: Final = 2147483645
DELETED_FIELD: Final = 2147483644
SPEC_ID_FIELD: Final = 2147483643
PARTITION_FIELD: Final = 2147483642

#: Those of the same type in every table.
METADATA_COLUMNS: Final[Mapping[str, NestedField]] = {
    field.name: field
    for field in (
        NestedField(FILE_FIELD, "_file", StringType(), required=True),
        NestedField(POS_FIELD, "_pos", LongType(), required=True),
        NestedField(DELETED_FIELD, "_deleted", BooleanType(), required=True),
        NestedField(SPEC_ID_FIELD, "_spec_id", IntegerType(), required=True),
        NestedField(ROW_ID_FIELD, "_row_id", LongType(), required=False),
        NestedField(
            LAST_UPDATED_SEQUENCE_NUMBER_FIELD,
            "_last_updated_sequence_number",
            LongType(),
            required=False,
        ),
    )
}
PARTITION: Final = "_partition"
NAMES: Final = (*METADATA_COLUMNS, PARTITION)
IDS: Final = frozenset({PARTITION_FIELD, *(each.field_id for each in METADATA_COLUMNS.values())})

#: Those that files may hold themselves, and that follow from where a row stands otherwise.
LINEAGE: Final = tuple(
    METADATA_COLUMNS[name] for name in ("_row_id", "_last_updated_sequence_number")
)
LINEAGE_IDS: Final = frozenset(field.field_id for field in LINEAGE)


def metadata_columns(shape: Shape) -> dict[str, NestedField]:
    """Return the metadata columns of a table; its partition has the fields of every spec."""
    partition = NestedField(PARTITION_FIELD, PARTITION, partition_type(shape), required=False)
    return {**METADATA_COLUMNS, PARTITION: partition}


def partition_type(shape: Shape) -> StructType:
    """Return the partition fields of all specs, each once."""
    found = []
    for id in dict.fromkeys(id for spec in sorted(shape.specs) for id in shape.specs[spec]):
        expression = shape.expressions[id]
        type = shape.types.get(expression.stats_field)
        if type is not None and expression.transform != "void":
            found.append(NestedField(id, expression.name, type, required=False))
    return StructType(*found)


def is_reserved(name: str) -> bool:
    """Tell whether a metadata column has the name, in any case."""
    return name.lower() in NAMES


def under_other_name(field: NestedField) -> NestedField:
    """Return a metadata column for whoever reads it beside all columns of a table."""
    return renamed(field, f"__icetree{field.name}")


def stored_lineage(schema: Schema) -> tuple[NestedField, ...]:
    """Return the lineage columns as files hold them: under names that no column has."""
    taken = {field.name.lower() for field in schema.fields}
    return tuple(renamed(field, _free(field, taken)) for field in LINEAGE)


def _free(field: NestedField, taken: Collection[str]) -> str:
    name = field.name if field.name not in taken else f"{field.name}_{field.field_id}"
    while name in taken:
        name += "_"
    return name


def renamed(field: NestedField, name: str) -> NestedField:
    """Return a column under another name."""
    return NestedField(field.field_id, name, field.field_type, required=field.required)
