"""Statements that make, change and drop tables and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.spark.names import quoted
from icetree.spark.sql.alter import ALTERATIONS
from icetree.spark.sql.columns import new_schema
from icetree.spark.sql.names import (
    find_lasting,
    find_table,
    known_table,
    new_table,
    table_to_alter,
    writable,
)
from icetree.spark.sql.select import select
from icetree.spark.sql.show import order_terms, partition_terms
from icetree.spark.tokens import query_of
from icetree.spark.trees import Statements, carry_out, kind, option, pairs, seq
from icetree.spark.write.options import Options
from icetree.spark.write.replace import replace

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: What `USING` may say; a table in any other format is Spark's own.
_OURS: Final = frozenset({"iceberg", "icetree"})


def run_ddl(lake: SparkLake, plan: Any, text: str) -> bool:
    """Carry out a statement; false where it is none of these, or is not about the lake."""
    what = kind(plan)
    if what in ALTERATIONS:
        parts = seq(seq(plan.children())[0].multipartIdentifier())
        if is_sparks(lake, parts):
            return False
        ALTERATIONS[what](lake.table(table_to_alter(lake, parts)), plan, lake.spark)
        return True
    return carry_out(STATEMENTS, lake, plan, text)


def is_sparks(lake: SparkLake, parts: list[str]) -> bool:
    """Tell whether a name is none of the lake's, but one that Spark knows."""
    if find_table(lake, parts) is not None or len(parts) > 2:
        return False
    return bool(lake.spark.catalog.tableExists(".".join(map(quoted, parts))))


# --- tables ------------------------------------------------------------------------------------


def _create(lake: SparkLake, plan: Any, _: str) -> bool:
    layout = _layout(plan)
    if layout is None:
        return False
    name = new_table(lake, seq(plan.name().nameParts()))
    schema = new_schema(lake.spark, plan.columns())
    try:
        lake.create_table(name, schema, **layout)
    except AlreadyExists:
        if not plan.ignoreIfExists():
            raise
    return True


def _replace(lake: SparkLake, plan: Any, _: str) -> bool:
    layout = _layout(plan)
    if layout is None:
        return False
    name = new_table(lake, seq(plan.name().nameParts()))
    schema = new_schema(lake.spark, plan.columns())
    if not _replaces(lake, name, plan):
        lake.create_table(name, schema, **layout)
        return True
    _require_no_location(layout, name)
    replace(lake, name, None, schema=schema, options=Options(), **layout)
    return True


def _create_as(lake: SparkLake, plan: Any, text: str) -> bool:
    layout = _layout(plan)
    if layout is None:
        return False
    name = new_table(lake, seq(plan.name().nameParts()))
    if lake.table_exists(name):
        if plan.ignoreIfExists():
            return True
        raise AlreadyExists(f"table {name} exists: choose another name, or replace it")
    lake.write(name, select(lake, query_of(text))).create(**layout)
    return True


def _replace_as(lake: SparkLake, plan: Any, text: str) -> bool:
    layout = _layout(plan)
    if layout is None:
        return False
    name = new_table(lake, seq(plan.name().nameParts()))
    replaces = _replaces(lake, name, plan)
    write = lake.write(name, select(lake, query_of(text)))
    if replaces:
        _require_no_location(layout, name)
        write.replace(**layout)
    else:
        write.create(**layout)
    return True


def _create_like(lake: SparkLake, plan: Any, _: str) -> bool:
    """CREATE TABLE x LIKE t: the columns, partitions and order of another, without rows."""
    provider = option(plan.provider())
    if provider is not None and provider.lower() not in _OURS:
        return False
    source = find_table(lake, _parts(plan.sourceTable()))
    if source is None:
        return False
    like = lake.table(source.name)
    place = option(plan.fileFormat().locationUri())
    try:
        lake.create_table(
            new_table(lake, _parts(plan.targetTable())),
            like.schema,
            partition_by=partition_terms(like),
            order_by=order_terms(like),
            properties=pairs(plan.properties()),
            location=None if place is None else str(place.toString()),
        )
    except AlreadyExists:
        if not plan.ifNotExists():
            raise
    return True


def _parts(identifier: Any) -> list[str]:
    outer = (option(identifier.catalog()), option(identifier.database()))
    return [*(each for each in outer if each is not None), identifier.table()]


def _replaces(lake: SparkLake, name: str, plan: Any) -> bool:
    exists = lake.table_exists(name)
    if not exists and not plan.orCreate():
        raise NotFound(f"there is no table {name} to replace: CREATE OR REPLACE TABLE makes one")
    return exists


def _require_no_location(layout: dict[str, Any], name: str) -> None:
    if layout.pop("location", None) is not None:
        raise InvalidInput(
            f"table {name} has a location: leave out LOCATION, or drop the table first"
        )


def _layout(plan: Any) -> dict[str, Any] | None:
    """Return how a table is laid out; None for one that is Spark's own."""
    spec = plan.tableSpec()
    provider = option(spec.provider())
    if provider is not None and provider.lower() not in _OURS:
        return None
    properties = dict(pairs(spec.properties()))
    comment = option(spec.comment())
    if comment is not None:
        properties["comment"] = comment
    found: dict[str, Any] = {
        "partition_by": [_transform(each) for each in seq(plan.partitioning())],
        "properties": properties,
    }
    location = option(spec.location())
    return found if location is None else {**found, "location": location}


def _transform(transform: Any) -> str:
    arguments = [
        ".".join(each.fieldNames()) if kind(each) == "FieldReference" else str(each.value())
        for each in transform.arguments()
    ]
    name = transform.name()
    return arguments[0] if name == "identity" else f"{name}({', '.join(arguments)})"


def _drop(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.child().nameParts())
    if is_sparks(lake, parts):
        return False
    found = find_table(lake, parts)
    if found is None and plan.ifExists() and find_lasting(lake, parts) is None:
        return True
    name = known_table(lake, parts)
    lake.drop_table(name, purge=plan.purge())
    lake.cache.forget(name)
    return True


def _rename(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.child().multipartIdentifier())
    if is_sparks(lake, parts):
        return False
    name, to = table_to_alter(lake, parts), seq(plan.newName())
    # A name of one part stays in the namespace.
    full = ".".join(to) if len(to) > 1 else f"{name.rpartition('.')[0]}.{to[0]}"
    lake.rename_table(name, full)
    lake.cache.forget(name)
    return True


def _truncate(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.table().multipartIdentifier())
    found = writable(lake, parts)
    if found is None:
        if is_sparks(lake, parts):
            return False
        known_table(lake, parts)
    assert found is not None
    lake.delete(found.name, **found.how)
    return True


# --- namespaces --------------------------------------------------------------------------------


def _create_namespace(lake: SparkLake, plan: Any, _: str) -> bool:
    name = ".".join(_namespace(plan))
    lake.create_namespace(name, pairs(plan.properties()), exist_ok=plan.ifNotExists())
    return True


def _drop_namespace(lake: SparkLake, plan: Any, _: str) -> bool:
    name = ".".join(_namespace(plan))
    try:
        lake.namespace_properties(name)
    except NotFound:
        if plan.ifExists():
            return True
        raise
    if plan.cascade():
        _drop_all_in(lake, name)
    lake.drop_namespace(name)
    if lake.namespace is not None and f"{lake.namespace}.".startswith(f"{name}."):
        lake.namespace = None
    return True


def _drop_all_in(lake: SparkLake, name: str) -> None:
    """Drop the tables and views of a namespace, and the namespaces below it with all of theirs."""
    for inner in lake.namespaces(name):
        _drop_all_in(lake, inner)
        lake.drop_namespace(inner)
    for table in lake.tables(name):
        lake.drop_table(table)
        lake.cache.forget(table)
    for view in lake.views(name):
        lake.drop_view(view)


def _set_namespace_properties(lake: SparkLake, plan: Any, _: str) -> bool:
    lake.update_namespace(".".join(_namespace(plan)), pairs(plan.properties()))
    return True


def _use(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.namespace()) if kind(plan) == "SetNamespaceCommand" else _namespace(plan)
    name = ".".join(parts)
    lake.namespace_properties(name)
    lake.namespace = name
    return True


def _namespace(plan: Any) -> list[str]:
    [child] = seq(plan.children())
    return seq(child.multipartIdentifier())


STATEMENTS: Final[Statements] = {
    "CreateTable": _create,
    "CreateTableLikeCommand": _create_like,
    "ReplaceTable": _replace,
    "CreateTableAsSelect": _create_as,
    "ReplaceTableAsSelect": _replace_as,
    "DropTable": _drop,
    "RenameTable": _rename,
    "TruncateTable": _truncate,
    "CreateNamespace": _create_namespace,
    "DropNamespace": _drop_namespace,
    "SetNamespaceProperties": _set_namespace_properties,
    "SetCatalogAndNamespace": _use,
    "SetNamespaceCommand": _use,
}
