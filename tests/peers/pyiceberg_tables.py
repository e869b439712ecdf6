"""Tables that PyIceberg writes: many small files, partitioned in several ways, evolved."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tests.peers.values import row

_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "n", IntegerType(), required=False),
    NestedField(3, "country", StringType(), required=False),
    NestedField(4, "price", DoubleType(), required=False),
    NestedField(5, "amount", DecimalType(9, 2), required=False),
    NestedField(6, "d", DateType(), required=False),
    NestedField(7, "ts", TimestamptzType(), required=False),
    NestedField(8, "tsn", TimestampType(), required=False),
    NestedField(9, "flag", BooleanType(), required=False),
    NestedField(
        10,
        "place",
        StructType(
            NestedField(11, "city", StringType(), required=False),
            NestedField(12, "zip", IntegerType(), required=False),
        ),
        required=False,
    ),
)


def _create(catalog: SqlCatalog, name: str, version: int) -> Table:
    return catalog.create_table(name, _SCHEMA, properties={"format-version": str(version)})


def append(table: Table, start: int, size: int = 30, **more: Callable[[int], Any]) -> None:
    """Append rows with ids from `start` on."""
    names = {old: new for old, new in (("price", "cost"),) if "cost" in table.schema().column_names}
    rows = [
        {names.get(key, key): value for key, value in row(id).items()}
        | {key: value(id) for key, value in more.items()}
        for id in range(start, start + size)
    ]
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))


def _plain(catalog: SqlCatalog, name: str, version: int) -> None:
    """No partitions at first, then some; rows deleted by rewriting their files."""
    table = _create(catalog, name, version)
    for start in (0, 30, 60):
        append(table, start)
    table.delete("n in (3, 33)")
    with table.update_spec() as spec:
        spec.add_field("country", TruncateTransform(1), "first_letter")
        spec.add_field("d", DayTransform(), "day")
    append(table, 90, size=60)
    table.delete("country = 'US' and id < 100")


def _partitioned(catalog: SqlCatalog, name: str, version: int) -> None:
    """Partitioned by value and bucket, then by time; columns added, renamed and widened."""
    table = _create(catalog, name, version)
    with table.update_spec() as spec:
        spec.add_field("country", IdentityTransform(), "country")
        spec.add_field("id", BucketTransform(3), "id_bucket")
    for start in (0, 50):
        append(table, start, size=50)
    table.delete("id >= 40 and id < 44")
    with table.update_schema() as schema:
        schema.add_column("extra", StringType())
        schema.rename_column("price", "cost")
        schema.update_column("n", LongType())
    with table.update_spec() as spec:
        spec.remove_field("id_bucket")
        spec.add_field("ts", DayTransform(), "day")
    append(table, 120, size=40, extra=lambda id: None if id % 3 else f"e{id}")
    table.delete("extra like 'e15%'")


def plain_v1(catalog: SqlCatalog, name: str) -> None:
    """A few files without partitions."""
    table = _create(catalog, name, 1)
    for start in (0, 30, 60):
        append(table, start)
    table.delete("n = 3")


#: What PyIceberg writes, by table name.
PYICEBERG_TABLES: Mapping[str, Callable[[SqlCatalog, str], None]] = {
    "db.v1": lambda catalog, name: _plain(catalog, name, 1),
    "db.v1_evolved": lambda catalog, name: _partitioned(catalog, name, 1),
    "db.v2": lambda catalog, name: _plain(catalog, name, 2),
    "db.v2_evolved": lambda catalog, name: _partitioned(catalog, name, 2),
}


def all_types(catalog: SqlCatalog, name: str) -> None:
    """Every type that PyIceberg writes, within each other too; columns and types change."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "n", IntegerType(), required=False),
        NestedField(3, "f", FloatType(), required=False),
        NestedField(4, "u", UUIDType(), required=False),
        NestedField(5, "x", FixedType(4), required=False),
        NestedField(6, "b", BinaryType(), required=False),
        NestedField(7, "t", TimeType(), required=False),
        NestedField(8, "dec", DecimalType(38, 10), required=False),
        NestedField(9, "l", ListType(10, StructType(NestedField(11, "a", DateType())), False)),
        NestedField(12, "m", MapType(13, StringType(), 14, ListType(15, LongType(), False), False)),
        NestedField(16, "ts", TimestamptzType(), required=False),
    )
    table = catalog.create_table(name, schema, properties={"format-version": "2"})
    for start in (0, 10):
        rows = [_typed(id) for id in range(start, start + 10)]
        table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    with table.update_schema() as edit:
        edit.update_column("n", LongType())
        edit.update_column("f", DoubleType())
        edit.rename_column("u", "key")
        edit.delete_column("b")
    table.delete("id = 3")


def _typed(id: int) -> dict[str, Any]:
    if id % 5 == 4:
        return {"id": id}
    return {
        "id": id,
        "n": id % 7,
        "f": id / 8,
        "u": uuid.UUID(int=id).bytes,
        "x": bytes([id] * 4),
        "b": bytes([id]),
        "t": time(1, id, 3),
        "dec": Decimal(id).scaleb(-3),
        "l": [{"a": date(2024, 1, 1 + id)}, None],
        "m": [("k", [id, None]), ("l", None)],
        "ts": datetime(2024, 1, 1, id, tzinfo=timezone.utc),
    }


#: All that PyIceberg writes.
PYICEBERG_ZOO = {**PYICEBERG_TABLES, "db.types": all_types}
