"""A filter of ours as a column of Spark's: what is left to check on rows once files are planned.

Comparisons mean what they mean to a table scan: a NaN is in no range, where Spark has it above all
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyiceberg import expressions as ice
from pyiceberg.expressions import visitors
from pyiceberg.schema import Schema
from pyiceberg.types import (
    IcebergType,
    NestedField,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UUIDType,
)
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType

from icetree.rows.project import nodes, project
from icetree.rows.read.filter import row_filter
from icetree.rows.write.fit import WriteRules
from icetree.spark.in_python import in_python
from icetree.spark.names import column, names_of
from icetree.spark.restored import fitting
from icetree.spark.types import spark_type
from icetree.spec.schema.types import has_nans
from icetree.tree.prune import literals
from icetree.tree.prune.literals import Fit
from icetree.tree.prune.predicates import Extracted, Intersects, Transformed

_COMPARE: Final[dict[type[Any], Callable[[Column, Column], Column]]] = {
    ice.LessThan: lambda value, literal: value < literal,
    ice.LessThanOrEqual: lambda value, literal: value <= literal,
    ice.GreaterThan: lambda value, literal: value > literal,
    ice.GreaterThanOrEqual: lambda value, literal: value >= literal,
    ice.EqualTo: lambda value, literal: value == literal,
    ice.NotEqualTo: lambda value, literal: value != literal,
}
_NEEDS_A_NUMBER: Final = (ice.GreaterThan, ice.GreaterThanOrEqual)


#: Types whose values Spark has as something else, or has no literals of.
_ODD: Final = (UUIDType, TimeType, TimestampNanoType, TimestamptzNanoType)


def row_condition(
    predicate: ice.BooleanExpression, schema: Schema, *, case_sensitive: bool = True
) -> Column | None:
    """Return the filter as a condition on columns named as in the schema; None for all rows."""
    plain = visitors.rewrite_not(predicate)
    if isinstance(plain, ice.AlwaysTrue):
        return None
    # Whatever cannot be said here is refused before a job starts.
    row_filter(plain, schema, case_sensitive=case_sensitive)
    return _condition(plain, schema, case_sensitive)


def _condition(predicate: Any, schema: Schema, case_sensitive: bool) -> Column:
    match predicate:
        case ice.AlwaysTrue():
            return f.lit(True)
        case ice.AlwaysFalse():
            return f.lit(False)
        case ice.And() | ice.Or():
            left, right = (
                _condition(each, schema, case_sensitive)
                for each in (predicate.left, predicate.right)
            )
            return left & right if isinstance(predicate, ice.And) else left | right
    if isinstance(predicate, Intersects):
        return _judged_in_python(predicate, schema, case_sensitive)
    if isinstance(predicate.term, Transformed | Extracted) or _is_odd(
        predicate, schema, case_sensitive
    ):
        return _judged_in_python(predicate, schema, case_sensitive)
    return _test(predicate, schema, case_sensitive)


def _is_odd(predicate: Any, schema: Schema, case_sensitive: bool) -> bool:
    field = predicate.term.bind(schema, case_sensitive).ref().field
    return isinstance(field.field_type, _ODD) and not isinstance(
        predicate, ice.IsNull | ice.NotNull
    )


def _test(predicate: Any, schema: Schema, case_sensitive: bool) -> Column:
    field = predicate.term.bind(schema, case_sensitive).ref().field
    type, name = field.field_type, field.name
    value = _column(field.field_id, schema)
    kind = predicate.__class__
    if kind is ice.IsNull:
        return value.isNull()
    if kind is ice.NotNull:
        return value.isNotNull()
    if kind in (ice.IsNaN, ice.NotNaN):
        nan = f.coalesce(f.isnan(value), f.lit(False)) if has_nans(type) else f.lit(False)
        return nan if kind is ice.IsNaN else ~nan
    if kind in (ice.In, ice.NotIn):
        fits = [literals.fit(each, type, name) for each in predicate.literals]
        listed = [_literal(v, type) for v, fit in fits if fit in (Fit.EXACT, Fit.ROUNDED)]
        inside = value.isin(*listed) if listed else f.lit(False)
        return value.isNotNull() & (~inside if kind is ice.NotIn else inside)
    fitted, fit = literals.fit(predicate.literal, type, name)
    if kind in (ice.StartsWith, ice.NotStartsWith):
        starts = value.startswith(_literal(fitted, type))
        return ~starts if kind is ice.NotStartsWith else starts
    if fit in (Fit.ABOVE, Fit.BELOW, Fit.BETWEEN):
        return _judged_in_python(predicate, schema, case_sensitive)
    found = _COMPARE[kind](value, _literal(fitted, type))
    return found & ~f.isnan(value) if has_nans(type) and kind in _NEEDS_A_NUMBER else found


def _literal(value: Any, type: IcebergType) -> Column:
    array = literals.array([value], type)
    assert array is not None  # the filter was bound before
    return f.lit(_python(array[0])).cast(spark_type(type))


def _python(value: pa.Scalar) -> Any:
    found = value.as_py()
    return bytearray(found) if isinstance(found, bytes) else found


def _column(field_id: int, schema: Schema) -> Column:
    path = schema.find_column_name(field_id)
    assert path is not None
    return column(*names_of(path, schema))


def _judged_in_python(predicate: Any, schema: Schema, case_sensitive: bool) -> Column:
    """Return a test that only our own code knows, such as one of a bucket."""
    judge = row_filter(predicate, schema, case_sensitive=case_sensitive)
    [field_id] = judge.field_ids
    type = schema.find_type(field_id)
    wanted = [NestedField(field_id, "c", type, required=False)]

    def holds(values: pa.Array) -> pa.Array:
        batch = fitting(pa.record_batch([values], names=["c"]), {"c": type})
        found = nodes(batch.schema, lambda path, _: field_id if path == ("c",) else None)
        rules = WriteRules("the table")
        [fitted] = project({"c": batch.column(0)}, found, wanted, len(values), rules)
        return judge.mask(lambda _: fitted, len(values))

    return in_python(holds, BooleanType(), _column(field_id, schema))
