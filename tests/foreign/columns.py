"""Columns of any type and nesting: what they hold, what they are called, and how files have them.

Rows of the model are told by keys, which stay as they are whatever becomes of a column's name.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = "dict[str, Any]"
Json: TypeAlias = "dict[str, Any]"

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a timestamp without a zone)
EPOCH_UTC = EPOCH.replace(tzinfo=dt.timezone.utc)
_DAYS = tuple(EPOCH + dt.timedelta(days=days) for days in (-1, 19782, 19783))
_NAMES = ("ada", "bob", "", "çelik", "a name that is longer than any bound that is cut short")
_LONG = Decimal("-123456789012345678901234567890123456.78")
_UUIDS = tuple(uuid.UUID(int=number).bytes for number in (0, 7, 1 << 127, (1 << 128) - 1))


@dataclass(frozen=True, slots=True)
class Plain:
    """A type of single values."""

    name: str
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Struct:
    """Rows within a row; their values are dicts by the keys of members."""

    members: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class List:
    """Any number of values."""

    element: Field


@dataclass(frozen=True, slots=True)
class Map:
    """Pairs, which a row has as a list of tuples."""

    key: Field
    value: Field


Type: TypeAlias = "Plain | Struct | List | Map"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column, or a part of one."""

    id: int
    #: What rows of the model call it, and never anything else.
    key: str
    name: str
    type: Type
    required: bool = False
    #: What files have that were written before it was there.
    default: Any = None

    def json(self) -> Json:
        found: Json = {"id": self.id, "name": self.name, "required": self.required}
        if self.default is not None:
            told = str(self.default) if isinstance(self.default, dt.date) else self.default
            found |= {"initial-default": told, "write-default": told}
        return found | {"type": type_json(self.type)}

    def parts(self) -> tuple[Field, ...]:
        """Return the fields right below."""
        match self.type:
            case Struct(members):
                return members
            case List(element):
                return (element,)
            case Map(key, value):
                return (key, value)
        return ()

    def with_parts(self, parts: tuple[Field, ...]) -> Field:
        match self.type:
            case Struct():
                return replace(self, type=Struct(parts))
            case List():
                return replace(self, type=List(*parts))
            case Map():
                return replace(self, type=Map(*parts))
        return self

    def walk(self) -> Iterator[Field]:
        """Yield it and all that it consists of."""
        yield self
        for part in self.parts():
            yield from part.walk()


def type_json(type: Type) -> Any:
    match type:
        case Plain(name):
            return name
        case Struct(members):
            return {"type": "struct", "fields": [each.json() for each in members]}
        case List(element):
            return {
                "type": "list",
                "element-id": element.id,
                "element-required": element.required,
                "element": type_json(element.type),
            }
        case Map(key, value):
            return {
                "type": "map",
                "key-id": key.id,
                "key": type_json(key.type),
                "value-id": value.id,
                "value-required": value.required,
                "value": type_json(value.type),
            }


def with_id(id: int) -> dict[bytes, bytes]:
    return {b"PARQUET:field_id": str(id).encode()}


def arrow_field(field: Field, name: str | None = None) -> pa.Field:
    """Return a field with its id, and all ids below."""
    metadata, nullable = with_id(field.id), not field.required
    return pa.field(name or field.name, arrow_type(field.type), nullable, metadata)


def arrow_type(type: Type) -> pa.DataType:
    match type:
        case Plain(_, arrow):
            return arrow
        case Struct(members):
            return pa.struct([arrow_field(each) for each in members])
        case List(element):
            return pa.list_(arrow_field(element, "element"))
        case Map(key, value):
            return pa.map_(arrow_field(key, "key"), arrow_field(value, "value"))


def named(type: Type, value: Any) -> Any:
    """Return a value of the model by the names that its parts have now."""
    return _told(type, value, lambda part: part.name)


def kept(type: Type, value: Any) -> Any:
    """Return a value of the model without the parts that the type has no more."""
    return _told(type, value, lambda part: part.key)


def _told(type: Type, value: Any, by: Callable[[Field], str]) -> Any:
    """Return what a type has of a value of the model, its parts told by their names or keys."""
    if value is None:
        return None
    match type:
        case Plain():
            return value
        case Struct(members):
            return {by(each): _told(each.type, value.get(each.key), by) for each in members}
        case List(element):
            return [_told(element.type, each, by) for each in value]
        case Map(key, of):
            return [(_told(key.type, one, by), _told(of.type, other, by)) for one, other in value]


def comparable(type: Type, value: Any) -> Any:
    """Return a value, by names, such that equal ones are spelt alike."""
    if value is None:
        return None
    match type:
        case Plain():
            if isinstance(value, dt.datetime) and value.tzinfo is not None:
                return value.astimezone(dt.timezone.utc).isoformat()
            return value.bytes if isinstance(value, uuid.UUID) else value
        case Struct(members):
            return [comparable(each.type, value[each.name]) for each in members]
        case List(element):
            return [comparable(element.type, each) for each in value]
        case Map(key, of):
            return [(comparable(key.type, k), comparable(of.type, v)) for k, v in value]


def below(field: Field) -> Iterator[tuple[Field, tuple[Field, ...]]]:
    """Yield the fields within a field, each with those that lead to it."""
    for part in field.parts():
        yield part, (part,)
        for each, steps in below(part):
            yield each, (part, *steps)


def within(field: Field, value: Any, steps: tuple[Field, ...]) -> Iterator[Any]:
    """Yield all that a value has of a field within it; what is null has nothing of lists and maps."""
    if not steps:
        yield value
        return
    step, *rest = steps
    match field.type:
        case Struct():
            found = [None if value is None else value.get(step.key)]
        case List():
            found = value or []
        case Map(key, _):
            found = [pair[0 if step is key else 1] for pair in value or ()]
        case _:
            raise AssertionError(field.type)
    for each in found:
        yield from within(step, each, tuple(rest))


def dig(row: Row, path: str) -> Any:
    """Return what a row has under keys, which lead through structs."""
    value: Any = row
    for key in path.split("."):
        value = None if value is None else value.get(key)
    return value


def put(row: Row, path: str, value: Any) -> None:
    """Give a row a value; a struct that is null holds nothing but nulls."""
    first, _, rest = path.partition(".")
    if not rest:
        row[first] = value
    elif row.get(first) is not None:
        row[first] = dict(row[first])
        put(row[first], rest, value)
    elif value is not None:
        row[first] = {}
        put(row[first], rest, value)


# --- types and their values ------------------------------------------------------------------


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _time(rng: Random) -> dt.datetime:
    return rng.choice(_DAYS) + dt.timedelta(minutes=rng.randrange(1440))


def _decimal(rng: Random) -> Decimal:
    return Decimal(rng.choice(("0.00", "-0.01", "1.50", "77.77", "-9999999.90", "9999999.99")))


#: Those that tables have of a type, and what a value is drawn from.
PLAIN: dict[str, tuple[pa.DataType, Callable[[Random], Any]]] = {
    "long": (pa.int64(), lambda rng: rng.choice((-7, 0, 2, 3, 1 << 40))),
    "int": (pa.int32(), lambda rng: rng.randrange(-25, 40)),
    "string": (pa.string(), lambda rng: rng.choice(_NAMES)),
    "boolean": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "double": (pa.float64(), lambda rng: rng.choice((0.0, -0.0, math.nan, 1.5, -2.25, 1e300))),
    "float": (pa.float32(), lambda rng: rng.choice((0.0, -0.0, math.nan, 1.5, -2.25))),
    "timestamp": (pa.timestamp("us"), _time),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        lambda rng: _time(rng).replace(tzinfo=dt.timezone.utc),
    ),
    "date": (
        pa.date32(),
        lambda rng: dt.date(*rng.choice(((1969, 12, 31), (2024, 2, 28), (2024, 2, 29)))),
    ),
    "time": (pa.time64("us"), lambda rng: dt.time(rng.choice((0, 12, 23)), 59, 1, 7)),
    "decimal(9, 2)": (pa.decimal128(9, 2), _decimal),
    "decimal(18, 2)": (pa.decimal128(18, 2), _decimal),
    "decimal(38, 2)": (pa.decimal128(38, 2), lambda rng: rng.choice((_LONG, _decimal(rng)))),
    "uuid": (pa.binary(16), lambda rng: rng.choice(_UUIDS)),
    "fixed[3]": (
        pa.binary(3),
        lambda rng: rng.choice((b"\0\0\0", b"abc", b"\x80\0a", b"\xff" * 3)),
    ),
    "binary": (pa.binary(), lambda rng: rng.choice((b"", b"ab", b"\x80 more than four", b"abcd"))),
}
#: What is no single value, of which stats tell how often it is there and how often it is not.
WHOLE = Plain("whole", pa.null())
#: What a type may become.
WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)"}


def plain(name: str) -> Plain:
    return Plain(name, PLAIN[name][0])


def draw(type: Type, rng: Random) -> Any:
    """Return a value of the model, which may be null."""
    if rng.random() < 0.2:
        return None
    match type:
        case Plain(name):
            return PLAIN[name][1](rng)
        case Struct(members):
            return {each.key: draw(each.type, rng) for each in members}
        case List(element):
            return [draw(element.type, rng) for _ in range(rng.choice((0, 1, 2)))]
        case Map(key, value):
            keys = {PLAIN[key.type.name][1](rng): None for _ in range(rng.choice((0, 1, 2)))}
            return [(one, draw(value.type, rng)) for one in keys]
