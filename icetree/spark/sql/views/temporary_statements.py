"""CREATE, ALTER and DROP of temporary views over tables of the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icetree.errors import Unsupported
from icetree.spark.sql.bind import bind, in_full
from icetree.spark.sql.select import select
from icetree.spark.sql.views.temporary import find_view, forget_view, make_view, temporary_view
from icetree.spark.tokens import query_of
from icetree.spark.trees import kind, parse, seq

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def run_view(lake: SparkLake, plan: Any, text: str) -> bool:
    """Carry out a statement; false where it is none of these, or is about a view of Spark's own."""
    match kind(plan):
        case "CreateViewCommand":
            return _create(lake, plan, text)
        case "AlterViewAs":
            return _alter(lake, plan, text)
        case "DropView":
            parts = seq(plan.child().nameParts())
            view = find_view(lake, parts)
            if view is not None:
                # Spark drops it; what is kept of it goes first.
                forget_view(lake, view)
    return False


def new_view(
    lake: SparkLake,
    name: str,
    query: str,
    columns: list[str] | None = None,
    *,
    replace: bool,
    is_global: bool = False,
) -> bool:
    """Make a view; false where its query names no table of the lake, so that Spark can make it."""
    bound = bind(lake, query, parse(lake.spark, query))
    if not bound:
        return False
    rows = select(lake, query)
    text = in_full(query, bound)
    make_view(lake, name, text, rows, columns or (), replace=replace, is_global=is_global)
    return True


def _create(lake: SparkLake, plan: Any, text: str) -> bool:
    if kind(plan.viewType()) == "PersistedView":
        _refuse_lasting(lake, text)
        return False
    return new_view(
        lake,
        plan.name().table(),
        query_of(text),
        [each._1() for each in seq(plan.userSpecifiedColumns())],  # noqa: SLF001  # Scala's
        replace=plan.replace(),
        is_global=kind(plan.viewType()) == "GlobalTempView",
    )


def _alter(lake: SparkLake, plan: Any, text: str) -> bool:
    parts = seq(plan.child().multipartIdentifier())
    if temporary_view(lake.spark, parts) is None:
        _refuse_lasting(lake, text)
        return False
    query = query_of(text)
    return new_view(lake, parts[-1], query, replace=True, is_global=len(parts) > 1)


def _refuse_lasting(lake: SparkLake, text: str) -> None:
    """Refuse a view that Spark would keep for other sessions, which know nothing of the lake."""
    query = query_of(text)
    bound = bind(lake, query, parse(lake.spark, query))
    if bound:
        raise Unsupported(
            f"a view that Spark keeps cannot name {'.'.join(bound[0].named.parts)}, which the lake "
            "has: CREATE VIEW in a namespace of the lake makes one that can"
        )
