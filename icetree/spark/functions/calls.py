"""Calls of Iceberg's functions and of `st_intersects` in SQL text, and how Spark comes to know them.

Spark asks a catalog for `system.bucket`, and ours is none of Spark's. So a call is given the name of
a temporary function, which a session is told of when a text first calls one. What a function comes
to depends on the types of its arguments: Spark asks us for the expression once it knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any, Final

from pyspark.sql import SparkSession

from icetree.spark.functions.boxes import BOX, INTERSECTS, BoxFunctions
from icetree.spark.functions.catalyst import Functions
from icetree.spark.jvm import java_of
from icetree.spark.tokens import Edit, Token, edited, tokens

_NAMESPACE: Final = "system"
_PREFIX: Final = "__icetree_"
NAMES: Final = (
    *("bucket", "truncate", "years", "months", "days", "hours"),
    *("year", "month", "day", "hour"),
)


def with_functions(text: str, spark: SparkSession) -> str:
    """Return SQL in which calls of the functions have names that the session knows."""
    said = text.lower()
    if _NAMESPACE not in said and INTERSECTS not in said:
        return text
    words = tokens(text)
    edits = [*_of_transforms(words), *_of_boxes(words, spark)]
    if edits:
        _make_known(spark)
    return edited(text, edits)


def calls_boxes(text: str) -> bool:
    """Tell whether a text, as `with_functions` gives it, may compare geometries with boxes."""
    return _PREFIX + INTERSECTS in text


def _of_transforms(words: Sequence[Token]) -> Iterator[Edit]:
    for at in range(len(words) - 3):
        space, dot, name, bracket = words[at : at + 4]
        called = (space.name.lower(), dot.text, bracket.text) == (_NAMESPACE, ".", "(")
        if called and _is_free(words, at) and name.name.lower() in NAMES:
            yield space.start, name.stop, _PREFIX + name.name.lower()


def _of_boxes(words: Sequence[Token], spark: SparkSession) -> Iterator[Edit]:
    """Yield what makes `st_intersects(g, box(…))` ours; with other arguments it may be another's."""
    for at, (name, bracket) in enumerate(pairwise(words)):
        if name.name.lower() != INTERSECTS or bracket.text != "(" or not _is_free(words, at):
            continue
        boxes = list(_boxes_within(words, at + 1))
        if boxes or not _is_known(spark, INTERSECTS):
            yield name.start, name.stop, _PREFIX + INTERSECTS
        for box in boxes:
            yield box.start, box.stop, _PREFIX + BOX


def _boxes_within(words: Sequence[Token], bracket: int) -> Iterator[Token]:
    """Yield each `box(` that is an argument in a bracket."""
    depth = words[bracket].depth
    inside = takewhile(lambda each: each.depth > depth, words[bracket + 1 :])
    for before, name, opening in zip(words[bracket:], inside, words[bracket + 2 :], strict=False):
        argument = name.depth == depth + 1 and before.text in ("(", ",")
        if argument and name.name.lower() == BOX and opening.text == "(":
            yield name


def _is_free(words: Sequence[Token], at: int) -> bool:
    """Tell whether no other name stands before a name."""
    return at == 0 or words[at - 1].text != "."


def _is_known(spark: SparkSession, name: str) -> bool:
    java = java_of(spark)
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    found: bool = registry.functionExists(
        java.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    )
    return found


def _make_known(spark: SparkSession) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    if _is_known(spark, _PREFIX + NAMES[-1]):
        return
    java = java_of(spark)
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    identifier = java.org.apache.spark.sql.catalyst.FunctionIdentifier
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    transforms, boxes = Functions(spark), BoxFunctions(spark)
    makers = {INTERSECTS: boxes.intersects, BOX: boxes.box}
    # The last one tells that all are known.
    for name, make in (makers | {name: transforms.named(name) for name in NAMES}).items():
        about = java.org.apache.spark.sql.catalyst.expressions.ExpressionInfo("icetree", name)
        registry.registerFunction(identifier(_PREFIX + name), about, _Maker(make))


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
