"""Partition transforms as expressions of Spark's own: nothing of them runs in Python.

`spark.pushdown` knows them again by these very forms, so change both together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from icetree.spark.jvm import java_of

#: Static methods of Java that hash as the format asks, both with seed 0.
LONG_HASH: Final = ("org.apache.spark.unsafe.hash.Murmur3_x86_32", "hashLong")
BYTES_HASH: Final = ("org.apache.commons.codec.digest.MurmurHash3", "hash32x86")
#: What takes the sign off a hash.
POSITIVE: Final = 2147483647
UTC: Final = "UTC"

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_MOMENTS: Final = ("timestamp", "timestamp_ntz")
#: Decimals of up to so many digits are longs to Spark.
_LONG_DIGITS: Final = 18


class Functions:
    """Makes the expressions, in the Java of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = java = java_of(spark)
        self._make = java.org.apache.spark.sql.catalyst.expressions
        self._types = java.org.apache.spark.sql.types.DataTypes
        self._legacy = self._make.EvalMode.LEGACY()
        # Numbers wrap around as the format's reference has it, and no digit of a decimal is lost.
        self._wraps = self._make.NumericEvalContext(self._legacy, False)

    def named(self, name: str) -> Callable[[Sequence[Any]], Any]:
        """Return what makes an expression of a function's arguments."""
        if name in ("bucket", "truncate"):
            make = self._bucket if name == "bucket" else self._truncate
            return lambda given: make(*_two(name, given))
        return lambda given: self._period(name, given)

    # --- bucket ------------------------------------------------------------------------------

    def _bucket(self, count: Any, value: Any) -> Any:
        _require_number("bucket", "number of buckets", count)
        positive = self._make.BitwiseAnd(self._hash(value), self._int(POSITIVE))
        return self._make.Remainder(positive, self._cast(count, "int"), self._wraps)

    def _hash(self, value: Any) -> Any:
        type = _type(value)
        if type in _WHOLE:
            return self._long_hash(self._cast(value, "bigint"))
        if type == "date":
            return self._long_hash(self._cast(self._make.UnixDate(value), "bigint"))
        if type in _MOMENTS:
            own, long = value.dataType(), self._types.LongType
            return self._long_hash(self._make.PreciseTimestampConversion(value, own, long))
        if type == "string":
            return self._bytes_hash(self._cast(value, "binary"))
        if type == "binary":
            return self._bytes_hash(value)
        if type.startswith("decimal"):
            return self._bytes_hash(self._unscaled_bytes(value))
        raise _no_value("bucket", value, "a whole number, a decimal, a time, text or bytes")

    def _long_hash(self, value: Any) -> Any:
        return self._static(LONG_HASH, "int", value, self._int(0))

    def _bytes_hash(self, value: Any) -> Any:
        return self._static(BYTES_HASH, "int", value)

    def _unscaled_bytes(self, value: Any) -> Any:
        """Return the fewest bytes that hold a decimal's digits as a whole number."""
        for method, kind in (
            ("toJavaBigDecimal", "java.math.BigDecimal"),
            ("unscaledValue", "java.math.BigInteger"),
        ):
            type = self._java.org.apache.spark.sql.types.ObjectType(self._class(kind))
            value = self._call(value, method, type)
        return self._call(value, "toByteArray", self._types.BinaryType)

    # --- truncate ----------------------------------------------------------------------------

    def _truncate(self, width: Any, value: Any) -> Any:
        _require_number("truncate", "width", width)
        width, type = self._cast(width, "int"), _type(value)
        if type in ("string", "binary"):
            return self._make.Substring(value, self._int(1), width)
        if type == "bigint":
            return self._floored(value, self._cast(width, "bigint"))
        if type in _WHOLE:
            floored = self._floored(self._cast(value, "int"), width)
            return floored if type == "int" else self._cast(floored, type)
        if type.startswith("decimal"):
            return self._truncated_decimal(width, value)
        raise _no_value("truncate", value, "a whole number, a decimal, text or bytes")

    def _floored(self, value: Any, width: Any) -> Any:
        rest = self._make.Pmod(value, width, self._wraps)
        return self._make.Subtract(value, rest, self._wraps)

    def _truncated_decimal(self, width: Any, value: Any) -> Any:
        type = value.dataType()
        digits, scale = type.precision(), type.scale()
        if digits <= _LONG_DIGITS:
            unscaled = self._make.UnscaledValue(value)
            floored = self._floored(unscaled, self._cast(width, "bigint"))
            return self._make.MakeDecimal(floored, digits, scale)
        if not width.foldable():
            raise InvalidInput(f"system.truncate of a {type.simpleString()}: give its width itself")
        step = f"{width.eval(None)}E-{scale}"
        exact = self._types.createDecimalType(max(10, scale), scale)
        literal = self._make.Literal.create(step, self._types.StringType)
        return self._cast(self._floored(value, self._cast_to(literal, exact)), type)

    # --- years, months, days, hours ------------------------------------------------------------

    def _period(self, name: str, given: Sequence[Any]) -> Any:
        if len(given) != 1:
            raise InvalidInput(f"system.{name} takes one value, not {len(given)}")
        [value] = given
        hours = name.startswith("hour")
        if _type(value) not in (_MOMENTS if hours else ("date", *_MOMENTS)):
            raise _no_value(name, value, "a timestamp" if hours else "a date or a timestamp")
        day = self._day(value)
        if name.startswith("day"):
            return day
        make = self._make
        if hours:
            whole = make.Multiply(make.UnixDate(day), self._int(24), self._wraps)
            return make.Add(whole, make.Hour(value, self._zone()), self._wraps)
        years = make.Subtract(make.Year(day), self._int(1970), self._wraps)
        if name.startswith("year"):
            return years
        months = make.Multiply(years, self._int(12), self._wraps)
        month = make.Subtract(make.Month(day), self._int(1), self._wraps)
        return make.Add(months, month, self._wraps)

    def _day(self, value: Any) -> Any:
        """Return the day in UTC, which is what the format partitions by."""
        return value if _type(value) == "date" else self._cast(value, "date")

    # --- pieces ------------------------------------------------------------------------------

    def _zone(self) -> Any:
        return self._java.scala.Option.apply(UTC)

    def _int(self, number: int) -> Any:
        return self._make.Literal.create(number, self._types.IntegerType)

    def _cast(self, value: Any, type: Any) -> Any:
        return self._cast_to(
            value, getattr(self._types, _TYPES[type]) if isinstance(type, str) else type
        )

    def _cast_to(self, value: Any, type: Any) -> Any:
        if value.dataType().simpleString() == type.simpleString():
            return value
        return self._make.Cast(value, type, self._zone(), self._legacy)

    def _static(self, method: tuple[str, str], type: str, *given: Any) -> Any:
        owner, name = method
        return self._make.objects.StaticInvoke(
            self._class(owner),
            getattr(self._types, _TYPES[type]),
            name,
            self._seq(given),
            self._seq(()),
            True,
            False,
            True,
            self._java.scala.Option.empty(),
        )

    def _call(self, value: Any, method: str, type: Any) -> Any:
        none = self._seq(())
        return self._make.objects.Invoke(value, method, type, none, none, True, True, True)

    def _class(self, name: str) -> Any:
        loader = self._java.java.lang.Thread.currentThread().getContextClassLoader()
        return self._java.java.lang.Class.forName(name, True, loader)

    def _seq(self, members: Sequence[Any]) -> Any:
        return self._java.PythonUtils.toSeq(list(members))


_TYPES: Final[Mapping[str, str]] = {
    "tinyint": "ByteType",
    "smallint": "ShortType",
    "int": "IntegerType",
    "bigint": "LongType",
    "date": "DateType",
    "binary": "BinaryType",
}


def _type(value: Any) -> str:
    found: str = value.dataType().simpleString()
    return "string" if found.startswith("string") else found


def _two(name: str, given: Sequence[Any]) -> Sequence[Any]:
    if len(given) != 2:
        raise InvalidInput(f"system.{name} takes a number and a value, not {len(given)} of them")
    return given


def _require_number(name: str, what: str, given: Any) -> None:
    if _type(given) not in _WHOLE[:3]:
        raise InvalidInput(f"system.{name}: its {what} is an int, not {_type(given)}")
    if given.foldable():
        number = given.eval(None)
        if number is not None and number < 1:
            raise InvalidInput(f"system.{name}: its {what} must be 1 or more, not {number}")


def _no_value(name: str, value: Any, wanted: str) -> InvalidInput:
    return InvalidInput(f"system.{name} takes {wanted}, not {_type(value)}")
