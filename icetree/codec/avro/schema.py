"""Avro schemas that are safe to read by: what comes in a file's header, the file itself decides."""

from __future__ import annotations

from typing import Any, Final

#: Iceberg's go seven deep. The reader follows them by recursion, in C.
_DEEPEST: Final = 32
_NAMED: Final = ("record", "error", "enum", "fixed")
#: By the fewest bytes they take. No named type takes their place.
_PRIMITIVES: Final = {
    "null": 0,
    **dict.fromkeys(("boolean", "int", "long", "float", "double", "bytes", "string"), 1),
}


def takes_no_bytes(schema: Any) -> bool:
    """Tell whether values of a sound schema may take no bytes, so that any number are in none."""
    return not _Walk().least_bytes(schema, 0)


def broken_rule(schema: Any) -> str | None:
    """Return why a schema must not be read by; None where nothing speaks against it.

    A type within itself lets rows nest without end, and elements that take no bytes let an
    array of any length stand in a few.
    """
    try:
        _Walk().least_bytes(schema, 0)
    except _Refused as error:
        return str(error)
    return None


class _Refused(Exception):
    pass


class _Walk:
    """Knows the named types met so far, by the fewest bytes they take; None for those within.

    Namespaces are inherited, and may be left out or not: types are known by the last part of
    their names alone. Of several that share it, the worst is believed.
    """

    def __init__(self) -> None:
        self._known: dict[str, int | None] = {}

    def least_bytes(self, schema: Any, depth: int) -> int:
        if depth > _DEEPEST:
            raise _Refused("the Avro schema nests too deep")
        match schema:
            case str():
                return self._of_name(schema)
            case list():
                # A union says first which of its types follows.
                return 1 + min((self.least_bytes(each, depth + 1) for each in schema), default=0)
            case {"type": "array", "items": items}:
                if not self.least_bytes(items, depth + 1):
                    raise _Refused("the elements of an Avro array take no bytes")
                return 1
            case {"type": "map", "values": values}:
                self.least_bytes(values, depth + 1)
                return 1
            case {"type": str(kind)} if kind in _NAMED:
                return self._define(schema, kind, depth)
            case {"type": inner}:
                return self.least_bytes(inner, depth + 1)
            case _:
                raise _Refused("the Avro schema is none")

    def _of_name(self, name: str) -> int:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        least = self._known.get(_last_part(name), 1)
        if least is None:
            raise _Refused(f"the Avro type {name!r} is within itself")
        return least

    def _define(self, schema: dict[str, Any], kind: str, depth: int) -> int:
        name = _name(schema)
        is_first, other = name not in self._known, self._known.get(name)
        self._known[name] = None
        least = 1
        if kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or size < 0:
                raise _Refused("an Avro type of fixed size has none")
            least = size
        elif kind != "enum":
            least = sum(self._field(each, depth + 1) for each in _fields(schema))
        if is_first:
            self._known[name] = least
        elif other is not None:
            self._known[name] = min(least, other)
        return least

    def _field(self, field: Any, depth: int) -> int:
        if not isinstance(field, dict) or "type" not in field:
            raise _Refused("a field of an Avro record lacks a name or a type")
        return self.least_bytes(field["type"], depth)


def _fields(record: dict[str, Any]) -> list[Any]:
    fields = record.get("fields")
    if not isinstance(fields, list):
        raise _Refused("an Avro record is missing its fields")
    return fields


def _name(schema: dict[str, Any]) -> str:
    name = schema.get("name")
    if not isinstance(name, str):
        raise _Refused("a named Avro type has no name")
    return _last_part(name)


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]
