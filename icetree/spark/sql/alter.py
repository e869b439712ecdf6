"""`ALTER TABLE` as Spark itself knows it: columns, properties, comments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.sql.columns import default_value, java_type, no_column, own_path
from icetree.spark.trees import kind, option, pairs, seq
from icetree.spark.types import spark_type
from icetree.spec.edit.schema import SchemaEdit
from icetree.table.table import Table


def _add_columns(table: Table, plan: Any, spark: SparkSession) -> None:
    with table.edit_schema() as edit:
        for column in seq(plan.columnsToAdd()):
            above = option(column.path())
            parents = () if above is None else own_path(table.schema, seq(above.name()))
            path = (*parents, column.colName())
            edit.add(
                path,
                java_type(column.dataType(), ".".join(path)),
                doc=option(column.comment()),
                required=not column.nullable(),
                default=default_value(spark, option(column.default()), column.dataType()),
                **_position(column.position(), table, parents),
            )


def _position(position: Any, table: Table, parents: tuple[str, ...]) -> dict[str, Any]:
    found = option(position)
    if found is None:
        return {}
    where = found.position()
    if kind(where) == "First":
        return {"first": True}
    return {"after": own_path(table.schema, (*parents, where.column()))[-1]}


def _drop_columns(table: Table, plan: Any, _: SparkSession) -> None:
    with table.edit_schema() as edit:
        for column in seq(plan.columnsToDrop()):
            path = own_path(table.schema, seq(column.name()))
            if plan.ifExists() and not _has(table, path):
                continue
            edit.drop(path)


def _has(table: Table, path: tuple[str, ...]) -> bool:
    try:
        table.schema.find_field(".".join(path))
    except ValueError:
        return False
    return True


def _rename_column(table: Table, plan: Any, _: SparkSession) -> None:
    with table.edit_schema() as edit:
        edit.rename(own_path(table.schema, seq(plan.column().name())), plan.newName())


def _alter_columns(table: Table, plan: Any, spark: SparkSession) -> None:
    with table.edit_schema() as edit:
        for change in seq(plan.specs()):
            _alter_column(table, edit, change, spark)


def _alter_column(table: Table, edit: SchemaEdit, change: Any, spark: SparkSession) -> None:
    path = own_path(table.schema, seq(change.column().name()))
    type, nullable = option(change.newDataType()), option(change.newNullability())
    if type is not None:
        edit.widen(path, java_type(type, ".".join(path)))
    if nullable is not None:
        edit.make_optional(path) if nullable else edit.make_required(path)
    comment = option(change.newComment())
    if comment is not None:
        edit.set_doc(path, comment)
    at = _position(change.newPosition(), table, path[:-1])
    if at:
        edit.move_first(path) if "first" in at else edit.move_after(path, at["after"])
    default = option(change.newDefaultExpression())
    if default is not None:
        edit.set_default(path, default_value(spark, default, _java_type_of(table, path, spark)))
    if change.dropDefault():
        edit.set_default(path, None)


def _java_type_of(table: Table, path: tuple[str, ...], spark: SparkSession) -> Any:
    name = ".".join(path)
    try:
        found = spark_type(table.schema.find_field(name).field_type, column=name)
    except ValueError:
        raise no_column(f"table {table.name}", name, table.schema) from None
    return spark._jsparkSession.parseDataType(found.json())  # noqa: SLF001


def _set_properties(table: Table, plan: Any, _: SparkSession) -> None:
    table.set_properties(pairs(plan.properties()))


def _unset_properties(table: Table, plan: Any, _: SparkSession) -> None:
    names = seq(plan.propertyKeys())
    missing = [name for name in names if name not in table.properties]
    if missing and not plan.ifExists():
        raise InvalidInput(
            f"table {table.name} has no property {missing[0]!r}: UNSET IF EXISTS skips it"
        )
    table.remove_properties(*names)


def _comment(table: Table, plan: Any, _: SparkSession) -> None:
    table.set_properties({"comment": plan.comment()})


def _refused(why: str) -> Callable[[Table, Any, SparkSession], None]:
    def refuse(table: Table, _: Any, __: SparkSession) -> None:
        raise Unsupported(f"table {table.name}: {why}")

    return refuse


ALTERATIONS: Final[Mapping[str, Callable[[Table, Any, SparkSession], None]]] = {
    "AddColumns": _add_columns,
    "DropColumns": _drop_columns,
    "RenameColumn": _rename_column,
    "AlterColumns": _alter_columns,
    "SetTableProperties": _set_properties,
    "UnsetTableProperties": _unset_properties,
    "CommentOnTable": _comment,
    "ReplaceColumns": _refused("columns are not replaced as a whole: add, drop and rename them"),
    "SetTableLocation": _refused(
        "it cannot be pointed elsewhere: copy its folder, and register it"
    ),
    "AddPartitions": _refused("partitions come with their rows; ADD PARTITION FIELD adds a field"),
    "DropPartitions": _refused("partitions go with their rows: DELETE FROM the table"),
}
