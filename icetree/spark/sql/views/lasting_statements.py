"""CREATE, ALTER and DROP of views that the lake keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from icetree.spark.functions.calls import with_functions
from icetree.spark.sql.bind import bind
from icetree.spark.sql.columns import iceberg_type
from icetree.spark.sql.names import find_lasting, find_table, new_table
from icetree.spark.sql.scope import Scope
from icetree.spark.sql.select import select_within
from icetree.spark.sql.views.lasting import QUERY_COLUMNS
from icetree.spark.sql.views.temporary import temporary_view
from icetree.spark.tokens import query_of
from icetree.spark.trees import Statements, kind, option, pairs, parse, parse_query, seq
from icetree.table.views.view import View, new_version

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: How a view could follow its tables, in Spark's words: one of the lake does as Iceberg has it.
_SCHEMA_MODES: Final = frozenset({"SchemaBinding", "SchemaEvolution", "SchemaTypeEvolution"})


def _create(lake: SparkLake, plan: Any, text: str) -> bool:
    parts, query = seq(plan.child().nameParts()), query_of(text)
    if not _is_for_the_lake(lake, parts, query):
        return False
    if kind(plan.viewSchemaMode()) in _SCHEMA_MODES:
        raise Unsupported("WITH SCHEMA: a view of the lake keeps its columns; leave it out")
    name = new_table(lake, parts)
    exists = lake.view_exists(name)
    if exists and plan.allowExisting():
        return True
    if exists and not plan.replace():
        raise AlreadyExists(f"view {name} exists: choose another name, or replace it")
    properties = dict(pairs(plan.properties()))
    if (comment := option(plan.comment())) is not None:
        properties["comment"] = comment
    columns = [
        (each._1(), option(each._2()))  # noqa: SLF001  # Scala's own names
        for each in seq(plan.userSpecifiedColumns())
    ]
    _define(lake, name, query, columns, properties, view=lake.view(name) if exists else None)
    return True


def _is_for_the_lake(lake: SparkLake, parts: Sequence[str], query: str) -> bool:
    """Tell whether a new view is the lake's: its namespace is, or what it reads."""
    namespace = ".".join(parts[:-1]) or lake.namespace
    try:
        if namespace is not None:
            lake.namespace_properties(namespace)
            return True
    except (InvalidInput, NotFound):
        pass
    return bool(bind(lake, query, parse(lake.spark, query)))


def _alter(lake: SparkLake, plan: Any, text: str) -> bool:
    view = _view(lake, seq(plan.child().multipartIdentifier()))
    if view is None:
        return False
    _define(lake, str(view.name), query_of(text), (), {}, view=view)
    return True


def _define(
    lake: SparkLake,
    name: str,
    query: str,
    columns: Sequence[tuple[str, str | None]],
    properties: Mapping[str, str],
    *,
    view: View | None,
) -> None:
    """Make a view, or make one that is there another; its query is tried out first."""
    version = new_version(query, lake.namespace, None)
    text = with_functions(query, lake.spark)
    scope = Scope().within(name, version, lake.catalog.name)
    rows = select_within(lake, text, parse_query(lake.spark, text), scope)
    schema = _schema(rows, columns, name)
    summary = {"engine-name": "spark", "engine-version": lake.spark.version}
    if len({*rows.columns}) == len(rows.columns):
        summary[QUERY_COLUMNS] = json.dumps(rows.columns, ensure_ascii=False)
    how: dict[str, Any] = {"namespace": lake.namespace, "summary": summary}
    if view is None:
        lake.create_view(name, query, schema, properties=properties, **how)
    else:
        view.replace(query, schema, properties=properties, **how)


def _schema(rows: DataFrame, columns: Sequence[tuple[str, str | None]], name: str) -> Schema:
    """Return the columns of a view: those that its query finds, under the names they are given."""
    found = rows.schema.fields
    if columns and len(columns) != len(found):
        raise InvalidInput(
            f"view {name} names {len(columns)} columns, but its query finds {len(found)}"
        )
    told = columns or [(each.name, each.metadata.get("comment")) for each in found]
    names = [each.lower() for each, _ in told]
    if twice := next((each for each in names if names.count(each) > 1), None):
        raise InvalidInput(
            f"view {name} has two columns {twice!r}: name its columns, or the query's"
        )
    return Schema(
        *(
            NestedField(
                field_id=at,
                name=own,
                field_type=iceberg_type(field.dataType, own),
                required=False,
                doc=doc,
            )
            for at, (field, (own, doc)) in enumerate(zip(found, told, strict=True), 1)
        )
    )


def _drop(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.child().nameParts())
    view = _view(lake, parts)
    if view is not None:
        lake.drop_view(str(view.name))
        return True
    # Of a name that nobody has, Spark would look into a catalog of its own.
    return plan.ifExists() and len(parts) > 1 and ".".join(parts[:-1]) in lake.namespaces()


def _rename(lake: SparkLake, plan: Any, _: str) -> bool:
    view = _view(lake, seq(plan.child().multipartIdentifier())) if plan.isView() else None
    if view is None:
        return False
    to = seq(plan.newName())
    namespace = str(view.name).rpartition(".")[0]
    lake.rename_view(str(view.name), ".".join(to) if len(to) > 1 else f"{namespace}.{to[0]}")
    return True


def _set_properties(lake: SparkLake, plan: Any, _: str) -> bool:
    view = _view(lake, seq(plan.child().multipartIdentifier()))
    if view is not None:
        view.set_properties(pairs(plan.properties()))
    return view is not None


def _unset_properties(lake: SparkLake, plan: Any, _: str) -> bool:
    view = _view(lake, seq(plan.child().multipartIdentifier()))
    if view is None:
        return False
    names = seq(plan.propertyKeys())
    missing = [name for name in names if name not in view.properties]
    if missing and not plan.ifExists():
        raise InvalidInput(
            f"view {view.name} has no property {missing[0]!r}: UNSET IF EXISTS skips it"
        )
    view.remove_properties(*names)
    return True


def _view(lake: SparkLake, parts: Sequence[str]) -> View | None:
    """Return the view that a statement is about; None where it is none of the lake's."""
    if temporary_view(lake.spark, parts) is not None:
        return None
    name = find_lasting(lake, parts)
    if name is None and (table := find_table(lake, parts)) is not None:
        raise InvalidInput(f"table {table.name} is no view: say TABLE")
    return None if name is None else lake.view(name)


#: They are told their text as the user said it.
STATEMENTS: Final[Statements] = {
    "CreateView": _create,
    "AlterViewAs": _alter,
    "DropView": _drop,
    "RenameTable": _rename,
    "SetViewProperties": _set_properties,
    "UnsetViewProperties": _unset_properties,
}
