"""Partition transforms in Spark's expressions, known again by their forms.

Those are the forms that `spark.functions.catalyst` gives them; what a user writes in the same form
means the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from icetree.spark.functions.catalyst import BYTES_HASH, LONG_HASH, POSITIVE, UTC
from icetree.spark.pushdown.values import Constant, Field

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_SMALL: Final = ("byte", "short", "integer")
_MOMENTS: Final = ("timestamp", "timestamp_ntz")

Node: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is half way from a column to a transform of it."""

    what: str
    field: Field
    number: int = 0


_Found: TypeAlias = Field | Step | None


def transform_in(kind: str, node: Node, children: Sequence[object]) -> _Found:
    """Return what a node comes to, given its children: a transform, a step to one, or neither."""
    for reading in (_hashed, _bucketed, _truncated, _truncated_decimal, _period):
        found = reading(kind, node, children)
        if found is not None:
            return found
    return None


# --- bucket ------------------------------------------------------------------------------------


def _hashed(kind: str, node: Node, children: Sequence[object]) -> _Found:
    """Return what is hashed, as a long or as bytes."""
    match kind, children:
        case "Cast", [Field(transform=None) as field] if node["dataType"] == "long":
            return Step(what="long", field=field) if field.type in _SMALL else None
        case "Cast", [Step(what="UnixDate", field=Field(transform=None) as field)]:
            return Step(what="long", field=field) if node["dataType"] == "long" else None
        case "PreciseTimestampConversion", [Field(transform=None) as field]:
            return Step(what="long", field=field) if field.type in _MOMENTS else None
        case "Cast", [Field(transform=None, type="string") as field]:
            return Step(what="bytes", field=field) if node["dataType"] == "binary" else None
        case "Invoke", [Field(transform=None) as field]:
            return _called(node, "toJavaBigDecimal", field, "big decimal")
        case "Invoke", [Step(what="big decimal", field=field)]:
            return _called(node, "unscaledValue", field, "big integer")
        case "Invoke", [Step(what="big integer", field=field)]:
            return _called(node, "toByteArray", field, "bytes")
    return None


def _called(node: Node, method: str, field: Field, what: str) -> Step | None:
    return Step(what=what, field=field) if node["functionName"] == method else None


def _bucketed(kind: str, node: Node, children: Sequence[object]) -> _Found:
    match kind, children:
        case "StaticInvoke", [Field(transform=None, type="long") | Step(what="long") as of, zero]:
            seeded = isinstance(zero, Constant) and zero.text == "0"
            return _hash(node, LONG_HASH, of) if seeded else None
        case "StaticInvoke", [Field(transform=None, type="binary") | Step(what="bytes") as of]:
            return _hash(node, BYTES_HASH, of)
        case "BitwiseAnd", [Step(what="hash", field=field), Constant(text=text)]:
            return Step(what="positive", field=field) if text == str(POSITIVE) else None
        case "Remainder", [Step(what="positive", field=field), Constant() as count]:
            return _transformed(replace(field, type="integer"), "bucket", count)
    return None


def _hash(node: Node, method: tuple[str, str], of: Field | Step) -> Step | None:
    same = (node["staticObject"], node["functionName"]) == method
    return Step(what="hash", field=of.field if isinstance(of, Step) else of) if same else None


# --- truncate ----------------------------------------------------------------------------------


def _truncated(kind: str, _: Node, children: Sequence[object]) -> _Found:
    match kind, children:
        case "Substring", [Field(transform=None) as field, Constant(text="1"), Constant() as width]:
            cut = field.type in ("string", "binary")
            return _transformed(field, "truncate", width) if cut else None
        case "Pmod", [Field(transform=None) as field, Constant() as width]:
            return _numbered(Step(what="rest", field=field), width)
        case "Subtract", [Field() as field, Step(what="rest") as rest] if rest.field == field:
            return replace(field, transform=f"truncate[{rest.number}]")
    return None


def _truncated_decimal(kind: str, node: Node, children: Sequence[object]) -> _Found:
    match kind, children:
        case "UnscaledValue", [Field(transform=None) as field]:
            return Step(what="unscaled", field=field)
        case "Pmod", [Step(what="unscaled", field=field), Constant() as width]:
            return _numbered(Step(what="unscaled rest", field=field), width)
        case "Subtract", [Step(what="unscaled", field=field), Step(what="unscaled rest") as rest]:
            return replace(rest, what="floored") if rest.field == field else None
        case "MakeDecimal", [Step(what="floored", field=field) as step]:
            digits = _DECIMAL.fullmatch(str(field.type))
            same = digits and digits.groups() == (str(node["precision"]), str(node["scale"]))
            return replace(field, transform=f"truncate[{step.number}]") if same else None
    return None


# --- years, months, days, hours ------------------------------------------------------------------


def _period(kind: str, node: Node, children: Sequence[object]) -> _Found:
    match children:
        case [Field(type="date", transform=None | "day") as field]:
            steps = ("Year", "Month", "UnixDate")
            return Step(what=kind, field=field) if kind in steps else None
        case [Field(transform=None) as field] if _is_moment(node, field):
            if kind == "Cast" and node["dataType"] == "date":
                return replace(field, type="date", transform="day")
            return Step(what=kind, field=field) if kind == "Hour" else None
        case [left, right]:
            return _counted(kind, left, right)
    return None


def _counted(kind: str, left: object, right: object) -> _Found:
    match kind, left, right:
        case "Subtract", Step(what="Year", field=field), Constant(text="1970"):
            return replace(field, type="integer", transform="year")
        case "Subtract", Step(what="Month", field=field), Constant(text="1"):
            return Step(what="month of year", field=field)
        case "Multiply", Field(transform="year") as field, Constant(text="12"):
            return Step(what="months of years", field=field)
        case "Add", Step(what="months of years") as most, Step(what="month of year") as rest:
            return _joined(most, rest, "month")
        case "Multiply", Step(what="UnixDate", field=field), Constant(text="24"):
            return Step(what="hours of days", field=field)
        case "Add", Step(what="hours of days") as most, Step(what="Hour") as rest:
            return _joined(most, rest, "hour")
    return None


def _joined(most: Step, rest: Step, transform: str) -> Field | None:
    if most.field.path != rest.field.path:
        return None
    return replace(most.field, type="integer", transform=transform)


def _is_moment(node: Node, field: Field) -> bool:
    """Tell whether a part of a time is that in UTC."""
    return field.type == "timestamp_ntz" or (
        field.type == "timestamp" and node.get("timeZoneId") == UTC
    )


def _transformed(field: Field, name: str, number: Constant) -> Field | None:
    step = _numbered(Step(what=name, field=field), number)
    return None if step is None else replace(field, transform=f"{name}[{step.number}]")


def _numbered(step: Step, number: Constant) -> Step | None:
    text = number.text
    return replace(step, number=int(text)) if text is not None and text.isdigit() else None
