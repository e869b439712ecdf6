"""Transforms of columns as people write them: `days(ts)`, `bucket(16, id)`, `name`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.transforms import parse_transform
from pyiceberg.types import GeographyType, GeometryType, PrimitiveType, UnknownType

from icetree.errors import InvalidInput
from icetree.spec.schema.tree import Place, by_name, find
from icetree.spec.schema.types import VariantType, parse_type
from icetree.spec.texts import did_you_mean, storable

_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
#: A name in backticks, of which one within it is written twice; a comma that is not within a name.
_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")
_COMMA: Final = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")
#: Names that need no backticks to be read back.
_PLAIN: Final = re.compile(r"[^`,()\s]+")
_TIMES: Final = {
    word + plural: word for word in ("year", "month", "day", "hour") for plural in ("", "s")
} | {"date": "day", "date_hour": "hour"}
#: Transforms with a number: what the number is, and how default names show the transform.
_NUMBERED: Final = {"bucket": ("number of buckets", "bucket"), "truncate": ("width", "trunc")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A transform of columns, as metadata writes it."""

    source_ids: tuple[int, ...]
    transform: str
    #: The name that Iceberg gives it by default.
    name: str

    @property
    def is_time(self) -> bool:
        """Tell whether it gives a year, month, day or hour."""
        return self.transform in _TIMES.values()


def read_term(text: str, schema: Mapping[str, Any], *, done: str = "partition") -> Term:
    """Read a transform of a schema's columns, or a column's name for its identity.

    InvalidInput when there is no such column, or the transform cannot take its type; `done`
    says what one cannot do then.
    """
    storable(text, what=f"what to {done} by")
    if _unquoted(text) in by_name(schema):
        return _term("identity", None, [text.strip()], schema, text, done)
    call = _CALL.fullmatch(text)
    if call is None:
        find(schema, _unquoted(text))
    assert call is not None
    word, arguments = call[1].lower(), [each.strip() for each in _COMMA.split(call[2])]
    if word in _NUMBERED:
        number, columns = _number(word, arguments, text)
        return _term(word, number, columns, schema, text, done)
    if word != "identity" and word not in _TIMES:
        known = ("identity", "year", "month", "day", "hour", "bucket", "truncate")
        raise InvalidInput(
            f"{text!r}: there is no transform {word!r}; known are {', '.join(known)}"
            f"{did_you_mean(word, known)}"
        )
    return _term(_TIMES.get(word, word), None, arguments, schema, text, done)


def term_text(transform: str, *columns: str) -> str:
    """Return a transform of columns in the words that `read_term` takes."""
    word, _, number = transform.partition("[")
    names = [each if _PLAIN.fullmatch(each) else _quoted(each) for each in columns]
    inside = ", ".join([number.rstrip("]"), *names] if number else names)
    return inside if word == "identity" else f"{word}({inside})"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _unquoted(name: str) -> str:
    quoted = _QUOTED.fullmatch(name.strip())
    return name.strip() if quoted is None else quoted[1].replace("``", "`")


def _number(word: str, arguments: list[str], text: str) -> tuple[int, list[str]]:
    """Return the number, which may stand first or last, and the columns."""
    for at in (0, -1):
        if re.fullmatch(r"\d{1,9}", arguments[at]) and len(arguments) > 1:
            number = int(arguments.pop(at))
            if number == 0:
                break
            return number, arguments
    raise InvalidInput(
        f"{text!r}: {word} needs a {_NUMBERED[word][0]} above 0 and a column: {word}(16, column)"
    )


def _term(
    word: str,
    number: int | None,
    columns: list[str],
    schema: Mapping[str, Any],
    text: str,
    done: str,
) -> Term:
    places = [find(schema, _unquoted(column)) for column in columns]
    if len(places) > 1 and word != "bucket":
        raise InvalidInput(f"{text!r}: {word} takes one column, not {len(places)}")
    transform = word if number is None else f"{word}[{number}]"
    for place in places:
        require_taken(transform, place, text, done)
    suffix = {"identity": ""}.get(word, f"_{word}")
    if number is not None:
        suffix = f"_{_NUMBERED[word][1]}_{number}"
    return Term(
        source_ids=tuple(place.id for place in places),
        transform=transform,
        name="_".join(place.name for place in places) + suffix,
    )


def require_taken(transform: str, place: Place, text: str, done: str) -> None:
    """Refuse a transform that cannot take a column's type; `text` is how it was asked for."""
    start = f"cannot {done} by {text!r}: column {place.name!r}"
    if place.is_repeated:
        raise InvalidInput(f"{start} is inside a list or map, so a row has many values of it")
    type = parse_type(place.type)
    unordered = isinstance(type, VariantType | GeometryType | GeographyType)
    if not isinstance(type, PrimitiveType) or unordered:
        what = type if isinstance(type, PrimitiveType) else place.type["type"]
        raise InvalidInput(f"{start} is a {what}, which no transform takes")
    if isinstance(type, UnknownType):
        raise InvalidInput(f"{start} is unknown, so it has no value: widen it to a type first")
    if not parse_transform(transform).can_transform(type):
        raise InvalidInput(f"{start} is a {type}, which {transform} cannot take")
