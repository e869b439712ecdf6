"""Types and columns as people write them: `list<string>`, `id long not null, ts timestamp`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeVar

from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from icetree.errors import InvalidInput
from icetree.spec.schema.types import parse_type

T = TypeVar("T")

#: A quoted name, a word with its arguments (`decimal(10, 2)`, `fixed[16]`), or punctuation.
_TOKEN: Final = re.compile(r"\s*(`[^`]+`|[^\s<>,:`()\[\]]+(?:\s*[(\[][^)\]]*[)\]])?|[<>,:])")

#: Code that walks a schema calls itself for each level; Python allows about 1000 such calls.
_DEEPEST: Final = 100

#: SQL's names for types that Iceberg calls otherwise.
_ALIASES: Final = {
    "bool": "boolean",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "varchar": "string",
    "text": "string",
    "bytes": "binary",
}


def read_type(text: str) -> IcebergType:
    """Read a type in Iceberg's words; nested ones as list<T>, map<K, V>, struct<name: T, …>.

    Ids in it mean nothing: they are given when the type is put to use. Elements, values and
    struct fields are optional unless `not null` follows their type.
    """
    return _whole(text, lambda tokens: tokens.type())


def read_columns(text: str) -> StructType:
    """Read a list of columns: `id long not null, tags list<string>`; a colon is allowed too."""
    return _whole(text, lambda tokens: StructType(*tokens.fields(end=None)))


def _whole(text: str, read: Callable[[_Tokens], T]) -> T:
    tokens = _Tokens(text, _split(text))
    _require_shallow(tokens)
    found = read(tokens)
    if tokens.next is not None:
        raise tokens.error(f"nothing was expected at {tokens.next!r}")
    return found


def _require_shallow(tokens: _Tokens) -> None:
    steps = {"<": 1, ">": -1}
    if max(accumulate(steps.get(each, 0) for each in tokens.rest), default=0) > _DEEPEST:
        raise InvalidInput(f"{tokens.text[:60]!r}… nests more than {_DEEPEST} deep")


def _split(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        token = _TOKEN.match(text, at)
        if token is None:
            raise InvalidInput(f"{text!r}: cannot make sense of {text[at:].strip()!r}")
        found.append(token[1])
        at = token.end()
    return found


@dataclass(slots=True)
class _Tokens:
    text: str
    rest: list[str]

    @property
    def next(self) -> str | None:
        return self.rest[0] if self.rest else None

    def error(self, why: str) -> InvalidInput:
        return InvalidInput(f"{self.text!r}: {why}")

    def take(self, wanted: str | None = None) -> str:
        if not self.rest or (wanted is not None and self.rest[0] != wanted):
            found = repr(self.rest[0]) if self.rest else "the end"
            raise self.error(
                f"expected {'more' if wanted is None else repr(wanted)} before {found}"
            )
        return self.rest.pop(0)

    def type(self) -> IcebergType:
        word = self.take()
        head, bracket, arguments = word.partition("(")
        match head.lower() + bracket + arguments:
            case "list" | "array":
                self.take("<")
                element, required = self.type(), self.not_null()
                self.take(">")
                return ListType(element_id=0, element_type=element, element_required=required)
            case "map":
                self.take("<")
                key = self.type()
                self.take(",")
                value, required = self.type(), self.not_null()
                self.take(">")
                return MapType(
                    key_id=0, key_type=key, value_id=0, value_type=value, value_required=required
                )
            case "struct":
                self.take("<")
                fields = self.fields(end=">")
                self.take(">")
                return StructType(*fields)
            case plain:
                try:
                    return parse_type(_ALIASES.get(plain, plain))
                except InvalidInput as error:
                    raise self.error(str(error)) from None

    def not_null(self) -> bool:
        if self.next is None or self.next.lower() != "not":
            return False
        self.take()
        if self.take().lower() != "null":
            raise self.error("'not' is followed by 'null'")
        return True

    def fields(self, *, end: str | None) -> list[NestedField]:
        found: list[NestedField] = []
        while self.next != end:
            if found:
                self.take(",")
            name = self.take().strip("`")
            if self.next == ":":
                self.take()
            found.append(
                NestedField(field_id=0, name=name, field_type=self.type(), required=self.not_null())
            )
        return found
