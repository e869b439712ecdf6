"""Statements that tell of views of the lake: SHOW VIEWS, and DESCRIBE and SHOW of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from icetree.errors import NotFound
from icetree.spark.names import quoted
from icetree.spark.sql.columns import no_column
from icetree.spark.sql.names import find_lasting
from icetree.spark.sql.show import (
    COLUMNS,
    frame_of,
    matches,
    properties_told,
    text_literal,
    type_told,
)
from icetree.spark.sql.views.temporary import temporary_view
from icetree.spark.trees import kind, option, seq
from icetree.table.views.view import View

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def run_show_view(lake: SparkLake, plan: Any) -> DataFrame | None:
    """Return what a statement asks for; None where it is none of these, or not about the lake."""
    what = kind(plan)
    if what in _LISTING:
        return _LISTING[what](lake, plan)
    tell = _TELLING.get(what)
    if tell is None:
        return None
    child = seq(plan.children())[0]
    parts = seq(child.multipartIdentifier())
    name = None if temporary_view(lake.spark, parts) is not None else find_lasting(lake, parts)
    return None if name is None else tell(lake, plan, lake.view(name))


def _views(lake: SparkLake, plan: Any) -> DataFrame | None:
    [child] = seq(plan.children())
    if kind(child) == "CurrentNamespace":
        spaces = lake.namespaces() if lake.namespace is None else [lake.namespace]
    else:
        spaces = [".".join(seq(child.multipartIdentifier()))]
        try:
            lake.namespace_properties(spaces[0])
        except NotFound:
            return None
    pattern = option(plan.pattern())
    found = [
        (space, name.rpartition(".")[2], False) for space in spaces for name in lake.views(space)
    ]
    found += [("", each.name, True) for each in lake.spark.catalog.listTables() if each.isTemporary]
    rows = [each for each in sorted(found) if matches(each[1], pattern)]
    return frame_of(lake, rows, "namespace string, viewName string, isTemporary boolean")


def _describe(lake: SparkLake, plan: Any, view: View) -> DataFrame:
    rows = [(field.name, type_told(field), field.doc) for field in view.schema.fields]
    if plan.isExtended():
        rows += [("", "", ""), ("# Detailed View Information", "", "")]
        rows += [(name, value, "") for name, value in _details(view)]
    return frame_of(lake, rows, COLUMNS)


def _details(view: View) -> list[tuple[str, str]]:
    properties = ",".join(f"{k}={v}" for k, v in sorted(view.properties.items()))
    made = (
        view.version.summary.get("engine-name", ""),
        view.version.summary.get("engine-version", ""),
    )
    found = [
        ("Name", str(view.name)),
        ("Type", "VIEW"),
        ("Location", view.location),
        ("Created By", " ".join(made).strip()),
        ("View Namespace", view.namespace or ""),
        ("Current Version", str(view.version.version_id)),
        ("View Properties", f"[{properties}]"),
        *((f"View Text ({dialect})", text) for dialect, text in view.texts.items()),
    ]
    comment = view.properties.get("comment")
    return found if comment is None else [("Comment", comment), *found]


def _describe_column(lake: SparkLake, plan: Any, view: View) -> DataFrame:
    name = ".".join(seq(plan.column().nameParts()))
    for field in view.schema.fields:
        if field.name.lower() == name.lower():
            rows = [
                ("col_name", field.name),
                ("data_type", type_told(field)),
                ("comment", field.doc),
            ]
            return frame_of(lake, rows, "info_name string, info_value string")
    raise no_column(f"view {view.name}", name, view.schema)


def _properties(lake: SparkLake, plan: Any, view: View) -> DataFrame:
    return properties_told(lake, plan, f"View {view.name}", view.properties)


def _columns(lake: SparkLake, _: Any, view: View) -> DataFrame:
    return frame_of(lake, [(each.name,) for each in view.schema.fields], "col_name string")


def _create_statement(lake: SparkLake, _: Any, view: View) -> DataFrame:
    return frame_of(lake, [(_ddl(view),)], "createtab_stmt string")


def _ddl(view: View) -> str:
    text = view.text
    columns = ",\n".join(
        f"  {quoted(each.name)}" + (f" COMMENT {text_literal(each.doc)}" if each.doc else "")
        for each in view.schema.fields
    )
    lines = [f"CREATE VIEW {view.name} (\n{columns})"]
    properties = dict(view.properties)
    comment = properties.pop("comment", None)
    if comment is not None:
        lines.append(f"COMMENT {text_literal(comment)}")
    if properties:
        told = ",\n".join(
            f"  {text_literal(k)} = {text_literal(v)}" for k, v in sorted(properties.items())
        )
        lines.append(f"TBLPROPERTIES (\n{told})")
    return "\n".join([*lines, "AS", text])


_LISTING: Final[Mapping[str, Callable[[Any, Any], DataFrame | None]]] = {"ShowViews": _views}
_TELLING: Final[Mapping[str, Callable[[Any, Any, View], DataFrame]]] = {
    "DescribeRelation": _describe,
    "DescribeColumn": _describe_column,
    "ShowTableProperties": _properties,
    "ShowColumns": _columns,
    "ShowCreateTable": _create_statement,
}
