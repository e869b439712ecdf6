"""A scan on a Spark session, and what has to be read for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.types import NestedField
from pyspark.sql import Column, SparkSession
from pyspark.sql import types as sql

from icetree.rows.read.files import NAME_MAPPING
from icetree.rows.read.filter import row_filter
from icetree.spark.read.filters import row_condition
from icetree.spark.read.internals import internals
from icetree.spark.session import is_roomy
from icetree.spark.types import is_native, spark_schema
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.schema.metadata_columns import DELETED_FIELD, IDS, LINEAGE, LINEAGE_IDS
from icetree.table.scan.scan import Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to read of a table, and how rows are to come out."""

    spark: SparkSession
    scan: Scan
    #: What is left to check on rows, of some file or other.
    residuals: tuple[BooleanExpression, ...] = ()
    #: Whether rows also tell where they stand, as `ORDINAL` (a row of the plan) and `POSITION`.
    located: bool = False
    #: Whether lineage is as files store it: null where it follows from where a row stands.
    as_stored: bool = False

    @property
    def asked(self) -> tuple[NestedField, ...]:
        """The columns that come out, metadata columns among them."""
        return tuple(self.scan.columns.fields)

    @property
    def keeps_gone(self) -> bool:
        """Whether rows that are deleted come out, too, told by `_deleted`."""
        return any(field.field_id == DELETED_FIELD for field in self.asked)

    @property
    def made_up(self) -> list[NestedField]:
        """The columns asked for that no file has in full."""
        stored = LINEAGE_IDS if self.as_stored else frozenset()
        return [field for field in self.asked if field.field_id in IDS - stored]

    @property
    def lineage(self) -> list[NestedField]:
        """The columns asked for that files may have, and that are not the table's own."""
        return [field for field in self.asked if field.field_id in LINEAGE_IDS]

    @property
    def needed(self) -> tuple[NestedField, ...]:
        """The columns of the table that are read: those asked for and those of the filter."""
        schema = self.scan.schema
        wanted = {field.field_id for field in self.asked}
        for left in self.residuals:
            if not isinstance(left, AlwaysTrue):
                case = self.scan.case_sensitive
                for id in row_filter(left, schema, case_sensitive=case).field_ids:
                    path = schema.find_column_name(id) or ""
                    wanted |= {
                        field.field_id
                        for field in schema.fields
                        if path == field.name or path.startswith(field.name + ".")
                    }
        return tuple(field for field in schema.fields if field.field_id in wanted)

    @property
    def condition(self) -> Column | None:
        """What rows are tested by, where some file needs it."""
        if all(isinstance(left, AlwaysTrue) for left in self.residuals):
            return None
        scan = self.scan
        return row_condition(scan.where, scan.schema, case_sensitive=scan.case_sensitive)

    @property
    def fields(self) -> int:
        """How many columns are read, counted as Spark does: those within others by themselves."""
        return _fields_in(spark_schema(self.needed))

    @property
    def why_copied(self) -> str | None:
        """Why Spark copies each row that it reads; None where it reads batches.

        Marks as partition values would be copied with every row.
        """
        if not is_roomy(self.spark, self.fields):
            return "more columns than Spark generates code for"
        java = internals(self.spark)
        if java is not None and not java.reads_batches(spark_schema(self.needed)):
            return "columns that Spark's vectorised reader is not to read"
        return None

    @property
    def is_native(self) -> bool:
        """Whether Spark's own reader reads Parquet files of the table as the format says."""
        metadata = self.scan.metadata
        # Files may have two columns of one name then, which ids alone tell apart.
        unclear = _names_in(metadata.schemas) & {field.name for field in LINEAGE}
        named = NAME_MAPPING in metadata.properties
        plain = not (is_encrypted(metadata) or metadata.encryption_keys)
        return plain and is_native(self.needed) and not named and not unclear


def _fields_in(type: sql.DataType) -> int:
    """Count fields as Spark does."""
    match type:
        case sql.StructType():
            return sum(_fields_in(each.dataType) for each in type)
        case sql.ArrayType():
            return _fields_in(type.elementType)
        case sql.MapType():
            return _fields_in(type.keyType) + _fields_in(type.valueType)
    return 1


def _names_in(schemas: Iterable[Mapping[str, Any]]) -> set[str]:
    return {column["name"].lower() for schema in schemas for column in schema["fields"]}
