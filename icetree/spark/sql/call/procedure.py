"""What a procedure of `CALL` is: the arguments it takes, what it does, and the columns it answers with.

An argument is a constant of Spark's SQL. Its type must be one that the parameter takes; nothing is
turned into something else but numbers into longer ones, and text and dates into times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from icetree.spark.sql.moments import milliseconds
from icetree.table.point import time_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a parameter takes, in words and by Spark's types, and how it comes to Python."""

    told: str
    takes: Callable[[DataType], bool]
    plain: Callable[[Column], Column]
    #: What Python makes of the plain value.
    read: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An argument by its name."""

    name: str
    kind: Kind
    required: bool = False
    #: It tunes what needs no tuning here: taken, so that statements run as they are, and left out.
    idle: bool = False
    #: Why it cannot be given, and what to do instead, where Iceberg has it and we have not.
    refused: str | None = None
    #: What the verb calls it, where that is another word.
    ours: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """What can be called."""

    takes: Sequence[Parameter]
    gives: pa.Schema
    #: Called with the lake and with the arguments that were given; returns rows.
    run: Callable[..., Iterable[Sequence[Any]]]
    #: Whether it takes `progress`, which tells what it is at.
    tells: bool = False

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name, in their order."""
        return {each.name: each for each in self.takes}


def _is(*types: type[DataType]) -> Callable[[DataType], bool]:
    return lambda type: isinstance(type, types)


def _of(inner: Callable[[DataType], bool]) -> Callable[[DataType], bool]:
    """Return the test of a list; an empty one has no type."""
    return lambda type: (
        isinstance(type, ArrayType)
        and (inner(type.elementType) or isinstance(type.elementType, NullType))
    )


def _is_options(type: DataType) -> bool:
    return isinstance(type, MapType) and all(
        isinstance(each, (NullType, StringType, BooleanType, *_NUMBERS))
        for each in (type.keyType, type.valueType)
    )


_NUMBERS: Final = (ByteType, ShortType, IntegerType, LongType)

TEXT: Final = Kind(told="a text", takes=_is(StringType), plain=lambda value: value)
NUMBER: Final = Kind(
    told="a whole number", takes=_is(*_NUMBERS), plain=lambda value: value.cast("bigint")
)
FLAG: Final = Kind(told="true or false", takes=_is(BooleanType), plain=lambda value: value)
TIME: Final = Kind(
    told="a time such as TIMESTAMP '2026-01-31 12:00:00'",
    takes=_is(TimestampType, TimestampNTZType, DateType, StringType),
    plain=milliseconds,
    read=time_of,
)
NUMBERS: Final = Kind(
    told="whole numbers such as array(1, 2)",
    takes=_of(_is(*_NUMBERS)),
    plain=lambda value: value.cast("array<bigint>"),
)
TEXTS: Final = Kind(
    told="texts such as array('a', 'b')",
    takes=_of(_is(StringType)),
    plain=lambda value: value.cast("array<string>"),
)
OPTIONS: Final = Kind(
    told="options such as map('name', 'value')",
    takes=_is_options,
    plain=lambda value: value.cast("map<string,string>"),
)


def needed(name: str, kind: Kind = TEXT) -> Parameter:
    """Return a parameter that must be given."""
    return Parameter(name=name, kind=kind, required=True)


def optional(name: str, kind: Kind = TEXT, *, ours: str | None = None) -> Parameter:
    """Return a parameter that may be left out."""
    return Parameter(name=name, kind=kind, ours=ours)


def refused(name: str, kind: Kind, *, instead: str) -> Parameter:
    """Return a parameter that is there for its place among the others, and refused."""
    return Parameter(name=name, kind=kind, refused=instead)


def idle(name: str, kind: Kind) -> Parameter:
    """Return a parameter that is taken, and does nothing here."""
    return Parameter(name=name, kind=kind, idle=True)
