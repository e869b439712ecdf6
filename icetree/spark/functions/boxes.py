"""`st_intersects(g, box(0, 0, 1, 1))` in SQL: judged by our own code, on the executors.

Its name in a plan tells the box, by which `spark.pushdown` knows it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType

from icetree.errors import InvalidInput
from icetree.rows.read.filter import in_box
from icetree.spark.in_python import function_of
from icetree.spark.jvm import java_of
from icetree.spark.types import OWN_TYPE
from icetree.spec.fields import GEO_AXES
from icetree.spec.geo import Box, box_of, text
from icetree.spec.schema.types import edges_of, parse_type
from icetree.tree.prune.boxes import require_box

INTERSECTS: Final = "st_intersects"
BOX: Final = "box"

_NAME: Final = "__icetree_st_intersects"
_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")
_TAKES: Final = (
    "st_intersects takes a column and a box: st_intersects(place, box(least x, least y, greatest x, "
    "greatest y)), with z and m behind each y where the box has them"
)


class BoxFunctions:
    """Makes the expressions, in the Java of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = java = java_of(spark)
        self._make = java.org.apache.spark.sql.catalyst.expressions
        self._types = java.org.apache.spark.sql.types.DataTypes

    def box(self, given: Sequence[Any]) -> Any:
        """Return a box as a constant, from its ends."""
        ends = box_of([self._number(each) for each in given])
        doubles = [self._make.Literal.create(end, self._types.DoubleType) for end in ends.ends]
        names = [self._make.Literal.create(name, self._types.StringType) for name in _ends(ends)]
        members = [each for pair in zip(names, doubles, strict=True) for each in pair]
        return self._make.CreateNamedStruct(self._java.PythonUtils.toSeq(members))

    def intersects(self, given: Sequence[Any]) -> Any:
        """Return what tells whether values of a column have a place in a box."""
        if len(given) != 2:
            raise InvalidInput(_TAKES)
        value, made = given
        box = _read_box(made)
        told = _told_type(value)
        if told is None:
            raise InvalidInput(
                f"{value.sql()} is no geometry of a table: st_intersects takes a column of one, as it is"
            )
        type = parse_type(told)
        require_box(box, value.sql(), type)
        edges = edges_of(type)

        def judge(values: pa.Array) -> pa.Array:
            return in_box(values, box, edges)

        function = function_of(judge, BooleanType(), name=name_of(box))
        return function.builder(self._java.PythonUtils.toSeq([value]))

    def _number(self, given: Any) -> float | None:
        type = given.dataType().simpleString()
        if type == "void":
            return None
        if not (type in _NUMBERS or type.startswith("decimal")) or not given.foldable():
            raise InvalidInput(
                f"a box is of numbers, as in box(5, 45, 15, 55), not of {given.sql()}"
            )
        none = self._java.scala.Option.empty()
        cast = self._make.Cast(given, self._types.DoubleType, none, self._make.EvalMode.LEGACY())
        found = cast.eval(None)
        return None if found is None else float(found)


def name_of(box: Box) -> str:
    """Return what a test of a box is called in a plan."""
    return f"{_NAME} {text(box)}"


def box_named(name: str) -> Box | None:
    """Return the box of a test, given its name in a plan; None for any other function."""
    start = f"{_NAME} {BOX}("
    if not name.startswith(start):
        return None
    ends = name[len(start) : -1].split(", ")
    return box_of([None if end == "null" else float(end) for end in ends])


def _ends(box: Box) -> list[str]:
    axes = GEO_AXES[: len(box.ends) // 2]
    return [f"{which}_{axis}" for which in ("least", "greatest") for axis in axes]


def _read_box(made: Any) -> Box:
    if not made.dataType().simpleString().startswith("struct<least_x:double,"):
        raise InvalidInput(_TAKES)
    ends = [made.children().apply(at).value() for at in range(1, made.children().size(), 2)]
    return box_of(ends)


def _told_type(value: Any) -> str | None:
    """Return the type that a column has in its table, where it is of one."""
    kind = value.getClass().getSimpleName()
    if kind == "AttributeReference":
        metadata = value.metadata()
    elif kind == "GetStructField":
        metadata = value.childSchema().apply(value.ordinal()).metadata()
    else:
        return None
    told: str | None = metadata.getString(OWN_TYPE) if metadata.contains(OWN_TYPE) else None
    return told
