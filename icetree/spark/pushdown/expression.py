"""An expression of Spark's as a filter of ours.

The filter is *inclusive*: it keeps every row for which the expression is true, and maybe more. What
cannot be said in our filters is left out of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from uuid import uuid4

from py4j.protocol import Py4JError
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema

from icetree.spark.pushdown import truth
from icetree.spark.pushdown.transforms import Step, transform_in
from icetree.spark.pushdown.truth import Truth
from icetree.spark.pushdown.values import Constant, Field, Unsaid, day_of
from icetree.spec.geo import Box

_COMPARISONS: Final = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
#: Where Spark notes what it takes out of a variant while it reads files, in place of the variant.
_EXTRACTION: Final = "__VARIANT_METADATA_KEY"
#: Words in the names of expressions with plans inside, by which nodes are counted differently.
_HOLDS_PLANS: Final = ("Subquery", "Exists", "ListQuery", "DynamicPruning")

#: What a node says; None where that cannot be said here.
_Said: TypeAlias = Truth | Field | Constant | Step | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxTest:
    """A test that our own code makes of a column: whether values have a place in a box."""

    #: The column, as an expression of Catalyst's.
    of: Any
    box: Box


def filter_of(
    expression: Any,
    schema: Schema,
    names: Mapping[str, str] | None = None,
    *,
    tests: Mapping[int, BoxTest] | None = None,
) -> BooleanExpression:
    """Return a filter that keeps at least the rows for which the expression is true.

    The expression is Catalyst's, resolved, on columns named as in the schema; or else `names` says
    what the schema calls each, and others are none of the table's. `tests` are what columns that are
    worked out in Python stand for, by their ids.
    """
    known = {id: _box_truth(each, schema, names) for id, each in (tests or {}).items()}
    reading, found = _read(expression, schema, names, known)
    return truth.built(reading.truth(found).true) if reading is not None else AlwaysTrue()


def _box_truth(test: BoxTest, schema: Schema, names: Mapping[str, str] | None) -> Truth:
    """Return the truth of a box, where it is compared with a column."""
    match _read(test.of, schema, names, {}):
        case _, Field(transform=None, within=None) as field:
            try:
                return truth.in_box(field, test.box, schema)
            except Unsaid:
                pass
    return truth.UNKNOWN


def _read(
    expression: Any, schema: Schema, names: Mapping[str, str] | None, known: Mapping[int, Truth]
) -> tuple[_Reading | None, _Said]:
    """Return the nodes of an expression, and what it says."""
    try:
        nodes = json.loads(expression.toJSON())
    except Py4JError:
        return None, None  # some functions of users' have no JSON
    reading = _Reading(expression, nodes, schema, names, known)
    # Nodes are in preorder: read backwards, a node comes right after what it is made of.
    waiting: list[_Said] = []
    for index in range(len(nodes) - 1, -1, -1):
        children = [waiting.pop() for _ in range(nodes[index]["num-children"])]
        try:
            waiting.append(reading.node(index, children))
        except Unsaid:
            waiting.append(None)
    [found] = waiting
    return reading, found


class _Reading:
    """The nodes of one expression, and what each says."""

    def __init__(
        self,
        expression: Any,
        nodes: Sequence[Mapping[str, Any]],
        schema: Schema,
        names: Mapping[str, str] | None,
        known: Mapping[int, Truth],
    ) -> None:
        self._expression = expression
        self._names = names
        self._known = known
        self._nodes = nodes
        self._schema = schema
        self._countable = not any(word in node["class"] for node in nodes for word in _HOLDS_PLANS)

    def node(self, index: int, children: list[_Said]) -> _Said:
        """Return what a node says, given what its children say."""
        node = self._nodes[index]
        kind = node["class"].rpartition(".")[2]
        match kind, children:
            case "AttributeReference", [] if self._known.get(_id(node)) is not None:
                return self._known[_id(node)]
            case "AttributeReference", []:
                return Field(path=(self._name(node["name"]),), type=node["dataType"])
            case "GetStructField", [Field(transform=None) as parent]:
                member = parent.type["fields"][node["ordinal"]]
                told = member.get("metadata", {}).get(_EXTRACTION)
                if told is not None:
                    return replace(parent, type=member["type"], within=told["path"])
                return Field(path=(*parent.path, member["name"]), type=member["type"])
            case "Literal", []:
                text, type = node["value"], node["dataType"]
                return Constant(text=text, type=type, value=lambda: self._java(index).value())
            case "VariantGet", [Field(type="variant") as field, Constant(text=str() as path)]:
                return replace(field, type=node["targetType"], within=path)
            case "And", [left, right]:
                return truth.both(self.truth(left), self.truth(right))
            case "Or", [left, right]:
                return truth.either(self.truth(left), self.truth(right))
            case "Not", [child]:
                return self.truth(child).negated()
        said = self._predicate(kind, index, children)
        return transform_in(kind, node, children) if said is None else said

    def _name(self, name: str) -> str:
        if self._names is None:
            return name
        if name not in self._names:
            raise Unsaid
        return self._names[name]

    def _predicate(self, kind: str, index: int, children: list[_Said]) -> Truth | None:
        schema = self._schema
        match kind, children:
            case "IsNull", [Field() as field]:
                return truth.is_null(field, schema)
            case "IsNotNull", [Field() as field]:
                return truth.is_null(field, schema).negated()
            case "IsNaN", [Field() as field]:
                return truth.is_not_a_number(field, schema)
            case "StartsWith", [Field() as field, Constant() as constant]:
                return truth.starts(field, constant, schema)
            case "In", [Field() as field, *members]:
                return truth.among(field, _constants(members), schema)
            case "InSet", [Field() as field]:
                return truth.among(field, self._members(index, field), schema)
            case _, [left, right] if kind in _COMPARISONS or kind == "EqualNullSafe":
                field, constant, swapped = _sides(left, right)
                if kind == "EqualNullSafe":
                    return truth.same(field, constant, schema)
                op = _COMPARISONS[kind]
                op = truth.SWAPPED[op] if swapped else op
                return truth.compared(field, op, constant, schema)
        return None

    def truth(self, said: _Said) -> Truth:
        """Return what is known of rows where this, as a condition, is true or false."""
        match said:
            case Truth():
                return said
            case Constant(type="boolean"):
                return truth.constant_truth(said)
            case Field(type="boolean", transform=None):
                try:
                    return truth.flag(said, self._schema)
                except Unsaid:
                    return truth.UNKNOWN
        return truth.UNKNOWN

    def _members(self, index: int, field: Field) -> list[Constant]:
        """Return the members of a set, which JSON leaves out."""
        if not isinstance(field.type, str) or field.type == "binary":
            raise Unsaid
        between = uuid4().hex
        texts = self._java(index).hset().mkString(between).split(between)
        # A null among texts reads like the text: then nothing is outside the list anyway.
        null = None if field.type == "string" else "null"
        return [_member(None if text == null else text, field.type) for text in texts]

    def _java(self, index: int) -> Any:
        if not self._countable:
            raise Unsaid
        return self._expression.apply(index)


def _id(node: Mapping[str, Any]) -> int:
    id: int = node["exprId"]["id"]
    return id


def _member(text: str | None, type: str) -> Constant:
    """Return a value that is told as Spark holds it: a time as microseconds, a date as days."""
    told = text if text is None or type != "date" else day_of(text)
    return Constant(text=told, type=type, value=lambda: text)


def _constants(members: list[_Said]) -> list[Constant]:
    found = [each for each in members if isinstance(each, Constant)]
    if len(found) < len(members):
        raise Unsaid
    return found


def _sides(left: _Said, right: _Said) -> tuple[Field, Constant, bool]:
    """Return the column and the value of a comparison, and whether they stand the other way."""
    match left, right:
        case Field(), Constant():
            return left, right, False
        case Constant(), Field():
            return right, left, True
    raise Unsaid
