"""INSERT and REPLACE WHERE: rows of a query, fitted to a table's columns, for the lake's own verbs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as sql

from icetree.errors import InvalidInput
from icetree.spark.complaints import one_line, plainly
from icetree.spark.names import column
from icetree.spark.sql.called import shortened
from icetree.spark.sql.columns import no_column, own_name
from icetree.spark.sql.names import TableRef, target_of
from icetree.spark.sql.select import select
from icetree.spark.tokens import (
    Cursor,
    Edit,
    edited,
    tokens,
)
from icetree.spark.trees import option, pairs, seq
from icetree.spark.types import default_literal, spark_type
from icetree.spark.write.fit import raising_casts
from icetree.spec.texts import did_you_mean
from icetree.table.commit.counts import RowCounts
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_QUERY: Final = ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "MAP", "REDUCE")


def insert(lake: SparkLake, plan: Any, text: str) -> RowCounts | None:
    found, parts, _ = target_of(lake, plan.table())
    if found is None:
        return None
    table = lake.table(found.name)
    given = seq(plan.userSpecifiedCols())
    fixed: dict[str, str | None] = {
        own_name(table.schema, name): option(value)
        for name, value in pairs(plan.partitionSpec()).items()
        if value.isDefined()
    }
    for name in fixed.keys() - {field.name for field in table.schema.fields}:
        raise no_column(f"table {'.'.join(parts)}", name, table.schema)
    query = _insert_query(text, has_columns=bool(given))
    wanted = _columns(table, given, fixed, ".".join(parts))
    rows = select(lake, _with_defaults(query, wanted, table))
    rows = _placed(rows, table, None if plan.byName() else wanted, fixed, ".".join(parts))
    _require_values(lake, fixed, table)
    write = lake.write(found.name, rows).branch(found.branch).options(_options(plan.table()))
    if not plan.overwrite():
        return write.append().rows
    if plan.ifPartitionNotExists() and _has_rows(lake, found, _partition(fixed, table)):
        return RowCounts()
    if _is_dynamic(lake, table, fixed):
        return write.replace_partitions().rows
    return write.overwrite(_partition(fixed, table)).rows


def _options(relation: Any) -> dict[str, str]:
    """Return the options of `INSERT INTO t WITH (…)`, without the notes of Spark's own."""
    given = relation.options().asCaseSensitiveMap()
    return {name: given[name] for name in given if not name.startswith("__")}


def _is_dynamic(lake: SparkLake, table: Table, fixed: Collection[str]) -> bool:
    """Tell whether an overwrite replaces the partitions it writes to, as the session says.

    One that names a value for each column that partitions are of is of all that has these values.
    """
    mode = lake.spark.conf.get("spark.sql.sources.partitionOverwriteMode") or "static"
    shape, spec = table.metadata.shape(), table.metadata.default_spec_id
    names = {
        table.schema.find_column_name(each.source_ids[0])
        for each in shape.spec(spec)
        if each.is_identity
    }
    named = fixed and names <= {*fixed}
    return mode.lower() == "dynamic" and not named and not shape.is_unpartitioned(spec)


def _has_rows(lake: SparkLake, found: TableRef, condition: Column) -> bool:
    return not lake.read(found.name, at=found.branch).where(condition).isEmpty()


def _insert_query(text: str, *, has_columns: bool) -> str:
    """Return the query that gives the rows, with the CTEs that stand before INSERT."""
    cursor = Cursor(text)
    before = cursor.until("INSERT")
    cursor.expect("INSERT")
    if not cursor.accept("OVERWRITE"):
        cursor.expect("INTO")
    cursor.accept("TABLE")
    cursor.name()
    if cursor.accept("WITH", "("):
        cursor.until(")")
        cursor.expect(")")
    if cursor.accept("PARTITION"):
        cursor.bracket()
    cursor.accept("IF", "NOT", "EXISTS")
    if not cursor.accept("BY", "NAME") and has_columns:
        cursor.bracket()
    return f"{before} {cursor.rest()}"


def _columns(
    table: Table, given: Sequence[str], fixed: Mapping[str, str | None], name: str
) -> list[str]:
    """Return the columns that rows are for, in their order."""
    own = [field.name for field in table.schema.fields]
    wanted = [own_name(table.schema, each) for each in given] or own
    unknown = [each for each in wanted if each not in own]
    if unknown:
        hint = did_you_mean(unknown[0], own)
        raise InvalidInput(
            f"table {name} has no column {unknown[0]!r}; there are: {', '.join(own)}{hint}"
        )
    return [each for each in wanted if each not in fixed]


def _with_defaults(query: str, wanted: Sequence[str], table: Table) -> str:
    """Return a query in which each DEFAULT of a VALUES is the column's own."""
    cursor = Cursor(query)
    if not cursor.accept("VALUES") or not any(each.says("DEFAULT") for each in tokens(query)):
        return query
    edits: list[Edit] = []
    while cursor.accept("("):
        for name in wanted:
            at, value = cursor.at, cursor.until(",")
            if value.upper() == "DEFAULT":
                edits.append((at, at + len(value), _default(name, table)))
            if not cursor.accept(","):
                break
        # Of what follows the rows, nothing is a default.
        if not cursor.accept(")") or not cursor.accept(","):
            break
    return edited(query, edits)


def _default(name: str, table: Table) -> str:
    field = table.schema.find_field(name)
    if field.write_default is None or not field.field_type.is_primitive:
        return "NULL"
    return default_literal(field.write_default, field)


def _placed(
    rows: DataFrame,
    table: Table,
    wanted: Sequence[str] | None,
    fixed: Mapping[str, str | None],
    name: str,
) -> DataFrame:
    """Return the rows with the table's names for their columns; None leaves the rows their own."""
    if wanted is not None:
        if len(wanted) != len(rows.columns):
            raise InvalidInput(
                f"table {name} takes {len(wanted)} columns ({', '.join(wanted)}), but the rows have "
                f"{len(rows.columns)}: name the columns, as in INSERT INTO {name} (…)"
            )
        rows = _by_position(rows.toDF(*wanted), table)
    made = {each: _partition_value(each, value, table) for each, value in fixed.items()}
    return rows.withColumns(made) if made else rows


def _by_position(rows: DataFrame, table: Table) -> DataFrame:
    """Return the rows with the table's names for the fields of their structs as well."""
    made = {}
    for field in rows.schema:
        want = spark_type(table.schema.find_field(field.name).field_type, column=field.name)
        named = _with_names(field.dataType, want)
        if named != field.dataType:
            made[field.name] = column(field.name).cast(named)
    return rows.withColumns(made) if made else rows


def _with_names(have: sql.DataType, want: sql.DataType) -> sql.DataType:
    match have, want:
        case sql.StructType(), sql.StructType() if len(have) == len(want):
            return sql.StructType(
                [
                    sql.StructField(b.name, _with_names(a.dataType, b.dataType), a.nullable)
                    for a, b in zip(have, want, strict=True)
                ]
            )
        case sql.ArrayType(), sql.ArrayType():
            inner = _with_names(have.elementType, want.elementType)
            return sql.ArrayType(inner, have.containsNull)
        case sql.MapType(), sql.MapType():
            key = _with_names(have.keyType, want.keyType)
            value = _with_names(have.valueType, want.valueType)
            return sql.MapType(key, value, have.valueContainsNull)
    return have


def _partition(fixed: Mapping[str, str | None], table: Table) -> Column:
    """Return what is true of the rows of `PARTITION (…)`; of all, where it names no value."""
    found = f.lit(True)
    for name, value in fixed.items():
        found &= column(name).eqNullSafe(_partition_value(name, value, table))
    return found


def _partition_value(name: str, value: str | None, table: Table) -> Column:
    return f.lit(value).cast(spark_type(table.schema.find_field(name).field_type, column=name))


def _require_values(lake: SparkLake, fixed: Mapping[str, str | None], table: Table) -> None:
    """Refuse a value that is none of its column's, which the older mode of a session takes for null."""
    with one_line(), raising_casts(lake.spark):
        made = [_partition_value(name, value, table) for name, value in fixed.items()]
        if made:
            lake.spark.sql("SELECT 1").select(*made).collect()


def replace_where(lake: SparkLake, plan: Any, text: str) -> RowCounts | None:
    """INSERT INTO t REPLACE WHERE …."""
    found, parts, _ = target_of(lake, plan.table())
    if found is None:
        return None
    cursor = Cursor(text)
    before = cursor.until("INSERT")
    cursor.expect("INSERT", "INTO")
    cursor.accept("TABLE")
    cursor.name()
    cursor.expect("REPLACE", "WHERE")
    where = cursor.until(*_QUERY)
    while where.upper().endswith("DISTINCT"):  # IS NOT DISTINCT FROM
        cursor.expect("FROM")
        where = f"{where} FROM {cursor.until(*_QUERY)}"
    rows = select(lake, f"{before} {cursor.rest()}")
    table = lake.table(found.name)
    name = ".".join(parts)
    rows = _placed(rows, table, _columns(table, (), {}, name), {}, name)
    with plainly():
        condition = f.expr(shortened(lake, where, parts, None, found.name))
    return lake.write(found.name, rows).branch(found.branch).overwrite(condition).rows
