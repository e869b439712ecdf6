"""Filters that Spark hands to a Python data source, as filters of ours.

Only those are taken that mean the same to both: Spark has a NaN above all numbers, and UUIDs and
bytes are compared as other things there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyiceberg import expressions as ice_expressions
from pyiceberg import types as iceberg
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyspark.sql import datasource as spark

from icetree.errors import IcetreeError
from icetree.rows.read.filter import row_filter
from icetree.spec.schema.types import has_nans

#: The constructors take names and values, which their types do not tell.
ice: Final[Any] = ice_expressions

_ALIKE: Final = (
    iceberg.BooleanType,
    iceberg.IntegerType,
    iceberg.LongType,
    iceberg.FloatType,
    iceberg.DoubleType,
    iceberg.DecimalType,
    iceberg.DateType,
    iceberg.TimestampType,
    iceberg.TimestamptzType,
    iceberg.StringType,
)
_COMPARE: Final[Mapping[type[Any], Any]] = {
    spark.EqualTo: ice.EqualTo,
    spark.LessThan: ice.LessThan,
    spark.LessThanOrEqual: ice.LessThanOrEqual,
    spark.GreaterThan: ice.GreaterThan,
    spark.GreaterThanOrEqual: ice.GreaterThanOrEqual,
    spark.StringStartsWith: ice.StartsWith,
}


def filter_from(given: spark.Filter, schema: Schema) -> BooleanExpression | None:
    """Return the same filter, or None where ours cannot say exactly that."""
    try:
        made: BooleanExpression | None = _made(given, schema)
        if made is not None:
            row_filter(made, schema)
    except (IcetreeError, TypeError, ValueError):
        return None
    return made


def _made(given: Any, schema: Schema) -> Any:
    if isinstance(given, spark.Not):
        inner = _made(given.child, schema)
        # As in SQL, what is unknown of a null stays so when it is negated.
        return None if inner is None else ice.Not(inner)
    path = ".".join(given.attribute)
    field = schema.find_field(path)
    if isinstance(given, spark.IsNull):
        return ice.IsNull(path)
    if isinstance(given, spark.IsNotNull):
        return ice.NotNull(path)
    if not isinstance(field.field_type, _ALIKE) or has_nans(field.field_type):
        return None
    if isinstance(given, spark.In):
        values = [value for value in given.value if value is not None]
        # `not in` a list with a null is true of nothing, which ours do not know.
        return ice.In(path, values) if len(values) == len(given.value) and values else None
    compare = _COMPARE.get(type(given))
    value = getattr(given, "value", None)
    return None if compare is None or value is None else compare(path, value)
