"""What a table is made of, as DataFrames: `db.t.snapshots` and its like."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from icetree.errors import InvalidInput
from icetree.table.inspect import Inspect

if TYPE_CHECKING:
    from icetree.spark.lake import Lake

#: The last part of a name that asks for metadata instead of rows.
KINDS: Final = frozenset(name for name in vars(Inspect) if not name.startswith("_"))


def metadata_kind(lake: Lake, name: str) -> tuple[str, str] | None:
    """Return (table, kind) where a name asks for metadata; a table of that very name comes first."""
    table, _, kind = name.rpartition(".")
    if kind not in KINDS or "." not in table or lake.connection.table_exists(name):
        return None
    return table, kind


def metadata_table(lake: Lake, table: str, kind: str, **when: Any) -> DataFrame:
    """Return metadata of a table, of another snapshot than the current one where that is asked."""
    look = getattr(lake.handle(table).inspect, kind)
    given = {name: value for name, value in when.items() if value is not None}
    unknown = given.keys() - inspect.signature(look).parameters.keys()
    if unknown:
        raise InvalidInput(f"{table}.{kind} is the same at any time: leave out {min(unknown)}")
    found: pa.Table = look(**given)
    made = _for_spark(found)
    if made.num_rows:
        return lake.spark.createDataFrame(made)
    # Spark takes no Arrow table without a row.
    return lake.spark.createDataFrame([], from_arrow_schema(made.schema))


def _for_spark(table: pa.Table) -> pa.Table:
    """Return the table with types that Spark knows: milliseconds as microseconds."""
    fields = [field.with_type(_known(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def _known(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", tz=type.tz)
    if pa.types.is_map(type):
        return pa.map_(_known(type.key_type), _known(type.item_type))
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_known(type.value_type)))
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_known(field.type)) for field in type])
    if isinstance(type, pa.BaseExtensionType):
        return _known(type.storage_type)
    return pa.binary() if pa.types.is_fixed_size_binary(type) else type
