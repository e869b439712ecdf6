"""Statements that tell of tables and namespaces: DESCRIBE and SHOW."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.types import NestedField
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.frames import empty_frame
from icetree.spark.names import quoted
from icetree.spark.sql.columns import no_column, own_path
from icetree.spark.sql.names import find_table, known_table
from icetree.spark.trees import kind, option, pairs, seq
from icetree.spark.types import default_literal, spark_type
from icetree.spark.wap import branch_to_read
from icetree.spec.schema.metadata_columns import metadata_columns
from icetree.spec.schema.types import type_text
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

COLUMNS: Final = "col_name string, data_type string, comment string"


def run_show(lake: SparkLake, plan: Any) -> DataFrame | None:
    """Return what a statement asks for; None where it is none of these, or not about the lake."""
    run = STATEMENTS.get(kind(plan))
    return None if run is None else run(lake, plan)


def frame_of(lake: SparkLake, rows: Iterable[tuple[Any, ...]], columns: str) -> DataFrame:
    """Return rows that are told, as a DataFrame."""
    found = list(rows)
    if not found:
        schema = StructType.fromDDL(columns)
        assert isinstance(schema, StructType)  # of several columns, or of one with its name
        return empty_frame(lake.spark, schema)
    return lake.spark.createDataFrame(found, columns)


def _table(lake: SparkLake, plan: Any) -> Table | None:
    """Return the table that a statement is about; None for one that is not of the lake."""
    parts = seq(seq(plan.children())[0].multipartIdentifier())
    found = find_table(lake, parts)
    if found is None:
        return None
    return lake.table(known_table(lake, parts))


# --- a table -----------------------------------------------------------------------------------


def _describe(lake: SparkLake, plan: Any) -> DataFrame | None:
    table = _table(lake, plan)
    if table is None:
        return None
    rows = [(field.name, type_told(field), field.doc) for field in table.schema.fields]
    terms = partition_terms(table)
    if terms:
        rows += [("", "", ""), ("# Partitioning", "", "")]
        rows += [(f"Part {at}", term, "") for at, term in enumerate(terms)]
    if plan.isExtended():
        rows += [("", "", ""), ("# Metadata Columns", "", "")]
        made = metadata_columns(table.metadata.shape())
        rows += [(name, type_told(field), field.doc) for name, field in made.items()]
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(name, value, "") for name, value in _details(table)]
    return frame_of(lake, rows, COLUMNS)


def _details(table: Table) -> list[tuple[str, str]]:
    metadata = table.metadata
    properties = ",".join(f"{k}={v}" for k, v in sorted(table.properties.items()))
    found = [
        ("Name", str(table.name)),
        ("Type", "MANAGED"),
        ("Location", table.location),
        ("Provider", "icetree"),
        ("Format Version", str(metadata.format_version)),
        ("Current Snapshot", str(metadata.current_snapshot_id)),
        ("Table Properties", f"[{properties}]"),
    ]
    comment = table.properties.get("comment")
    return found if comment is None else [("Comment", comment), *found]


def _describe_column(lake: SparkLake, plan: Any) -> DataFrame | None:
    table = _table(lake, plan)
    if table is None:
        return None
    path = own_path(table.schema, seq(plan.column().nameParts()))
    try:
        field = table.schema.find_field(".".join(path))
    except ValueError:
        raise no_column(f"table {table.name}", ".".join(path), table.schema) from None
    rows = [("col_name", ".".join(path)), ("data_type", type_told(field)), ("comment", field.doc)]
    return frame_of(lake, rows, "info_name string, info_value string")


def _properties(lake: SparkLake, plan: Any) -> DataFrame | None:
    table = _table(lake, plan)
    if table is None:
        return None
    return properties_told(lake, plan, f"Table {table.name}", table.properties)


def properties_told(
    lake: SparkLake, plan: Any, whose: str, properties: Mapping[str, str]
) -> DataFrame:
    """Return the properties that a statement asks for: all of them, or one."""
    asked = option(plan.propertyKey())
    found = dict(properties)
    if asked is not None:
        found = {asked: found.get(asked, f"{whose} does not have property: {asked}")}
    return frame_of(lake, sorted(found.items()), "key string, value string")


def _columns(lake: SparkLake, plan: Any) -> DataFrame | None:
    table = _table(lake, plan)
    if table is None:
        return None
    return frame_of(lake, [(field.name,) for field in table.schema.fields], "col_name string")


def _create_statement(lake: SparkLake, plan: Any) -> DataFrame | None:
    table = _table(lake, plan)
    return None if table is None else frame_of(lake, [(_ddl(table),)], "createtab_stmt string")


def _ddl(table: Table) -> str:
    columns = ",\n".join(f"  {_definition(field)}" for field in table.schema.fields)
    lines = [f"CREATE TABLE {table.name} (\n{columns})", "USING icetree"]
    terms = partition_terms(table)
    if terms:
        lines.append(f"PARTITIONED BY ({', '.join(terms)})")
    properties = dict(table.properties)
    comment = properties.pop("comment", None)
    if comment is not None:
        lines.append(f"COMMENT {text_literal(comment)}")
    lines.append(f"LOCATION {text_literal(table.location)}")
    if properties:
        told = ",\n".join(
            f"  {text_literal(k)} = {text_literal(v)}" for k, v in sorted(properties.items())
        )
        lines.append(f"TBLPROPERTIES (\n{told})")
    return "\n".join(lines)


def _definition(field: NestedField) -> str:
    words = [quoted(field.name), type_told(field)]
    if field.required:
        words.append("NOT NULL")
    if field.write_default is not None and field.field_type.is_primitive:
        words.append(f"DEFAULT {default_literal(field.write_default, field)}")
    if field.doc is not None:
        words.append(f"COMMENT {text_literal(field.doc)}")
    return " ".join(words)


def type_told(field: NestedField) -> str:
    """Return a column's type as Spark calls it, or else as Iceberg does."""
    try:
        return spark_type(field.field_type).simpleString()
    except Unsupported:
        return type_text(field.field_type)


def text_literal(value: str) -> str:
    """Return a text as SQL writes it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def partition_terms(table: Table) -> list[str]:
    """Return the partition fields as statements write them."""
    found = []
    expressions, specs = table.metadata.partitioning
    known = {each.expr_id: each for each in expressions}
    for each in (known[id] for id in specs[table.metadata.default_spec_id]):
        sources = ", ".join(table.schema.find_column_name(id) or "?" for id in each.source_ids)
        found.append(_term(each.transform, sources))
    return found


def _term(transform: str, sources: str) -> str:
    word, _, number = transform.partition("[")
    if word == "identity":
        return sources
    return f"{word}({number.rstrip(']')}, {sources})" if number else f"{word}s({sources})"


def order_terms(table: Table) -> list[str]:
    """Return the keys of the table's order as statements write them."""
    found = []
    for key in table.metadata.sort_keys:
        source = ", ".join(table.schema.find_column_name(id) or "?" for id in key.source_ids)
        nulls = "FIRST" if key.nulls_first else "LAST"
        way = "DESC" if key.descending else "ASC"
        found.append(f"{_term(key.transform, source)} {way} NULLS {nulls}")
    return found


def _partitions(lake: SparkLake, plan: Any) -> DataFrame | None:
    table = _table(lake, plan)
    if table is None:
        return None
    shape = table.metadata.shape()
    if shape.is_unpartitioned(table.metadata.default_spec_id):
        raise InvalidInput(
            f"table {table.name} has no partitions: ALTER TABLE … ADD PARTITION FIELD"
        )
    wanted = {} if not plan.pattern().isDefined() else pairs(plan.pattern().get().spec())
    found = table.inspect.partitions(at=branch_to_read(lake.spark, table))
    rows = set()
    for spec_id, values in zip(
        found["spec_id"].to_pylist(), found["partition"].to_pylist(), strict=True
    ):
        names = [each.name for each in shape.spec(spec_id)]
        if all(name in names and str(values[name]) == value for name, value in wanted.items()):
            rows.add("/".join(f"{name}={_shown(values[name])}" for name in names))
    return frame_of(lake, [(each,) for each in sorted(rows)], "partition string")


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)


# --- names -------------------------------------------------------------------------------------


def _tables(lake: SparkLake, plan: Any) -> DataFrame:
    [child] = seq(plan.children())
    if kind(child) == "CurrentNamespace":
        spaces = lake.namespaces() if lake.namespace is None else [lake.namespace]
    else:
        spaces = [".".join(seq(child.multipartIdentifier()))]
        lake.namespace_properties(spaces[0])
    pattern = option(plan.pattern())
    rows = []
    for space in spaces:
        names = [name.rpartition(".")[2] for name in lake.tables(space)]
        rows += [(space, name, False) for name in sorted(names) if matches(name, pattern)]
    return frame_of(lake, rows, "namespace string, tableName string, isTemporary boolean")


def _namespaces(lake: SparkLake, plan: Any) -> DataFrame:
    [child] = seq(plan.children())
    parent = ".".join(seq(child.multipartIdentifier()))
    pattern = option(plan.pattern())
    found = sorted(name for name in lake.namespaces(parent) if matches(name, pattern))
    return frame_of(lake, [(name,) for name in found], "namespace string")


def matches(name: str, pattern: str | None) -> bool:
    """Tell whether a name is like a pattern, in which `*` is anything and `|` parts choices."""
    if pattern is None:
        return True
    return any(
        re.fullmatch(re.escape(each.strip()).replace(r"\*", ".*"), name, re.IGNORECASE)
        for each in pattern.split("|")
    )


def _describe_namespace(lake: SparkLake, plan: Any) -> DataFrame:
    [child] = seq(plan.children())
    name = ".".join(seq(child.multipartIdentifier()))
    rows = [("Namespace Name", name), *sorted(lake.namespace_properties(name).items())]
    return frame_of(lake, rows, "info_name string, info_value string")


def _current_namespace(lake: SparkLake, _: Any) -> DataFrame:
    return frame_of(lake, [("icetree", lake.namespace or "")], "catalog string, namespace string")


STATEMENTS: Final[Mapping[str, Callable[[Any, Any], DataFrame | None]]] = {
    "DescribeRelation": _describe,
    "DescribeColumn": _describe_column,
    "ShowTableProperties": _properties,
    "ShowColumns": _columns,
    "ShowPartitions": _partitions,
    "ShowCreateTable": _create_statement,
    "ShowTables": _tables,
    "ShowNamespacesCommand": _namespaces,
    "ShowNamespaces": _namespaces,
    "DescribeNamespace": _describe_namespace,
    "ShowCurrentNamespaceCommand": _current_namespace,
}
