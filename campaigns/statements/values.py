"""Types of columns, and values of each as SQL has them: few and extreme, so that they meet each other."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import types as t

#: Texts that begin alike for as long as a bound is, and what a bound may be cut at.
_LONG: Final = "abcdefghijklmnopq"
_TEXTS: Final = ("", "a", "A", "ab", "b", "ü", "😀", "null", " a", "it''s", "%", "a_b", "10", "-1")
_TEXTS_LONG: Final = (_LONG, f"{_LONG}r", f"{_LONG}\uffff", "😀" * 17, "zzzzzzzzzzzzzzzzzz")
_TIMES: Final = (
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2024-02-29 12:34:56.789123",
    "2024-03-31 02:30:00",
    "2024-12-31 23:00:00",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "1969-12-31 00:00:00",
)
#: Values of each type that has no digits to choose.
POOLS: Final[Mapping[str, Sequence[str]]] = {
    "boolean": ("true", "false"),
    "int": ("0", "1", "2", "3", "7", "-1", "-7", "100", "2147483647", "-2147483648"),
    "bigint": (
        "0L",
        "1L",
        "2L",
        "3L",
        "-1L",
        "-7L",
        "9223372036854775807L",
        "-9223372036854775808L",
    ),
    "float": (
        *(
            "0.0F",
            "-0.0F",
            "1.5F",
            "-1.5F",
            "3.0F",
            "0.1F",
            "FLOAT('1.4E-45')",
            "FLOAT('3.4028235E38')",
        ),
        *("FLOAT('NaN')", "FLOAT('NaN')", "FLOAT('Infinity')", "FLOAT('-Infinity')"),
    ),
    "double": (
        *("0.0D", "-0.0D", "1.5D", "-1.5D", "3.0D", "0.1D", "4.9E-324D", "1.7976931348623157E308D"),
        *("DOUBLE('NaN')", "DOUBLE('NaN')", "DOUBLE('Infinity')", "DOUBLE('-Infinity')"),
    ),
    "date": tuple(
        f"DATE'{day}'"
        for day in (
            *("1969-12-31", "1970-01-01", "2024-02-29", "2024-03-31", "2024-12-31"),
            *("0001-01-01", "9999-12-31", "1900-02-28"),
        )
    ),
    "timestamp": (
        *(f"TIMESTAMP'{time}'" for time in _TIMES),
        "TIMESTAMP'2024-01-01 00:00:00+05:30'",
    ),
    "timestamp_ntz": tuple(f"TIMESTAMP_NTZ'{time}'" for time in _TIMES),
    "string": tuple(f"'{text}'" for text in (*_TEXTS, *_TEXTS_LONG)),
    "binary": ("X''", "X'00'", "X'61'", "X'6162'", "X'FF'", f"X'{'FF' * 18}'", f"X'{'61' * 17}'"),
}
DECIMALS: Final = ((5, 2), (9, 0), (18, 3), (38, 10))
SINGLES: Final = (*POOLS, *(f"decimal({digits},{scale})" for digits, scale in DECIMALS))
#: What a type may be widened to.
WIDER: Final[Mapping[str, Sequence[str]]] = {
    "int": ("bigint",),
    "float": ("double",),
    "decimal(5,2)": ("decimal(9,2)", "decimal(38,2)"),
    "decimal(9,0)": ("decimal(18,0)", "decimal(20,0)"),
    "decimal(18,3)": ("decimal(20,3)",),
}
#: Of what other types values may be assigned to a column, or may not.
OTHER_TYPES: Final[Mapping[str, Sequence[str]]] = {
    "int": ("bigint", "double", "string", "boolean"),
    "bigint": ("int", "float", "string"),
    "double": ("float", "bigint"),
    "date": ("timestamp", "timestamp_ntz", "string"),
    "timestamp": ("date", "timestamp_ntz", "string"),
    "timestamp_ntz": ("date", "timestamp"),
    "string": ("int", "boolean", "date", "binary", "double"),
    "binary": ("string",),
    "boolean": ("int", "string"),
}
NUMBERS: Final = ("int", "bigint", "float", "double")


def is_number(type: str) -> bool:
    return type in NUMBERS or type.startswith("decimal")


def is_single(type: str) -> bool:
    """Tell whether values of a type have no parts."""
    return not type.startswith(("struct", "array", "map"))


def drawn_type(chance: random.Random, depth: int = 2) -> str:
    """Return a type, as SQL says it: nested ones now and then."""
    if depth == 0 or chance.random() < 0.8:
        return chance.choice(SINGLES)
    inner = drawn_type(chance, depth - 1)
    how = chance.randrange(4)
    if how == 0:
        return f"array<{inner}>"
    if how == 1:
        return f"map<{chance.choice(('string', 'int'))}, {inner}>"
    return f"struct<a: {chance.choice(SINGLES)}, b: {inner}>"


def literal(chance: random.Random, kind: t.DataType, nulls: float = 0.2) -> str:
    """Return a value of a type as SQL says it, by chance a null."""
    if chance.random() < nulls:
        return "NULL"
    match kind:
        case t.DecimalType():
            return _decimal(chance, kind)
        case t.StructType():
            parts = [f"'{each.name}', {typed(chance, each.dataType)}" for each in kind.fields]
            return f"named_struct({', '.join(parts)})"
        case t.ArrayType():
            some = [typed(chance, kind.elementType) for _ in range(chance.randrange(3))]
            return f"array({', '.join(some)})" if some else nothing(kind)
        case t.MapType():
            keys = {literal(chance, kind.keyType, 0) for _ in range(chance.randrange(3))}
            pairs = [f"{key}, {typed(chance, kind.valueType)}" for key in sorted(keys)]
            return f"map({', '.join(pairs)})" if pairs else nothing(kind)
        case _:
            return chance.choice(POOLS[kind.simpleString()])


def typed(chance: random.Random, kind: t.DataType, nulls: float = 0.2) -> str:
    """Return a value that says of what type it is, also where it is null."""
    text = literal(chance, kind, nulls)
    return f"CAST({text} AS {kind.simpleString()})" if text == "NULL" else text


def nothing(kind: t.DataType) -> str:
    """Return an array or a map with nothing in it."""
    return f"CAST({'array' if isinstance(kind, t.ArrayType) else 'map'}() AS {kind.simpleString()})"


def _decimal(chance: random.Random, kind: t.DecimalType) -> str:
    most = 10**kind.precision - 1
    unscaled = chance.choice((0, 1, -1, 10**kind.scale, 150, most, -most, chance.randrange(1000)))
    sign, digits = "-" if unscaled < 0 else "", str(abs(unscaled)).zfill(kind.scale + 1)
    at = len(digits) - kind.scale
    return f"CAST('{sign}{digits[:at]}.{digits[at:]}' AS {kind.simpleString()})"
