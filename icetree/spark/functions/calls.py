"""Calls of Iceberg's functions in SQL text, and how Spark comes to know them.

Spark asks a catalog for `system.bucket`, and ours is none of Spark's. So a call is given the name of
a temporary function, which a session is told of when a text first calls one. What a function comes
to depends on the types of its arguments: Spark asks us for the expression once it knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from icetree.spark.functions.catalyst import Functions
from icetree.spark.tokens import edited, tokens

_NAMESPACE: Final = "system"
_PREFIX: Final = "__icetree_"
NAMES: Final = (
    *("bucket", "truncate", "years", "months", "days", "hours"),
    *("year", "month", "day", "hour"),
)


def with_functions(text: str, spark: SparkSession) -> str:
    """Return SQL in which calls of the functions have names that the session knows."""
    if _NAMESPACE not in text.lower():
        return text
    words = tokens(text)
    edits = []
    for at in range(len(words) - 3):
        space, dot, name, bracket = words[at : at + 4]
        called = (space.name.lower(), dot.text, bracket.text) == (_NAMESPACE, ".", "(")
        free = at == 0 or words[at - 1].text != "."
        if called and free and name.name.lower() in NAMES:
            edits.append((space.start, name.stop, _PREFIX + name.name.lower()))
    if edits:
        _make_known(spark)
    return edited(text, edits)


def _make_known(spark: SparkSession) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    java = spark._jvm  # noqa: SLF001  # Spark has no other door
    assert java is not None
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    identifier = java.org.apache.spark.sql.catalyst.FunctionIdentifier
    if registry.functionExists(identifier(_PREFIX + NAMES[-1])):
        return
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    functions = Functions(spark)
    for name in NAMES:
        about = java.org.apache.spark.sql.catalyst.expressions.ExpressionInfo("icetree", name)
        registry.registerFunction(identifier(_PREFIX + name), about, _Maker(functions.named(name)))


class _Maker:
    """What Java calls for an expression, given those of the arguments."""

    def __init__(self, make: Callable[[Sequence[Any]], Any]) -> None:
        self._make = make

    def apply(self, given: Any) -> Any:
        """Return the expression."""
        return self._make([given.apply(at) for at in range(given.size())])

    class Java:
        """The interface that Java sees."""

        implements: Final = ["scala.Function1"]
