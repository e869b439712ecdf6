"""Records as one short line, whatever they hold: what is long is told by how much it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from enum import Enum
from typing import Any, Final

import msgspec

#: So many signs of a text, and of a line before its end is left out.
_TEXT: Final = 60
_LINE: Final = 130
#: Of nouns: what this version does not know, and what opens files.
_UNTOLD: Final = frozenset({"extra", "key_metadata"})
#: So many numbers are told one by one.
_FEW: Final = 3


def short(record: object) -> str:
    """Return a record as one short line: its `__repr__`.

    What is null, zero or empty is left out, but for what comes first.
    """
    told: list[str] = []
    for name in _names(record):
        value = getattr(record, name)
        if told and _is_nothing(value):
            continue
        told.append(f"{name}={_told(value)}")
        if sum(len(each) + 2 for each in told) > _LINE:
            told[-1] = "…"
            break
    return f"{type(record).__name__}({', '.join(told)})"


def _names(record: Any) -> list[str]:
    if isinstance(record, msgspec.Struct):
        return [name for name in record.__struct_fields__ if name not in _UNTOLD]
    return [field.name for field in dataclasses.fields(record) if field.repr]


def _is_nothing(value: Any) -> bool:
    return isinstance(value, int | str | Collection | None) and not (value or value is False)


def _told(value: Any) -> str:
    match value:
        case Enum():
            return repr(value.value)
        case bool() | int() | float():
            return repr(value)
        case str():
            return repr(value if len(value) <= _TEXT else f"{value[: _TEXT - 1]}…")
    rows = getattr(value, "num_rows", None)
    if rows is not None:
        return f"<{rows:,} rows>"
    if isinstance(value, Collection):
        is_brief = len(value) <= _FEW and all(isinstance(each, int) for each in value)
        return repr(value) if is_brief else f"<{len(value):,}>"
    return f"{type(value).__name__}(…)"
