"""From the JSON of a filter in Iceberg's REST protocol to PyIceberg's expression.

A predicate compares a term with values: `{"type": "lt", "term": "n", "value": 3}`, or the newer
`{"type": "lt", "left": {"type": "reference", "name": "n"}, "right": 3}`. Values are Iceberg's JSON
single values; clients also send a date as its days, and times as their microseconds.

What our filters cannot say (a function that is not known, two columns compared) is `Unsure`: no
file is ruled out by it, and none known to match. Every `not` is moved to the predicates first, as
`parser` tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DoubleLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import UnknownTransform, parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    TimestampNanoType,
    TimestamptzNanoType,
)

from icetree.errors import InvalidInput
from icetree.filters.parser import joined
from icetree.spec.schema.expressions import is_malformed
from icetree.tree.prune import literals
from icetree.tree.prune.literals import Fit
from icetree.tree.prune.predicates import Transformed, Unsure, no_column

#: The type of a predicate in JSON -> PyIceberg's class.
COMPARISONS: Final[dict[str, type[Any]]] = {
    "lt": ice.LessThan,
    "lt-eq": ice.LessThanOrEqual,
    "gt": ice.GreaterThan,
    "gt-eq": ice.GreaterThanOrEqual,
    "eq": ice.EqualTo,
    "not-eq": ice.NotEqualTo,
    "starts-with": ice.StartsWith,
    "not-starts-with": ice.NotStartsWith,
}
SETS: Final[dict[str, type[Any]]] = {"in": ice.In, "not-in": ice.NotIn}
UNARY: Final[dict[str, type[Any]]] = {
    "is-null": ice.IsNull,
    "not-null": ice.NotNull,
    "is-nan": ice.IsNaN,
    "not-nan": ice.NotNaN,
}
_KINDS: Final = {**COMPARISONS, **SETS, **UNARY}
_INVERSE: Final = {
    "lt": "gt-eq",
    "lt-eq": "gt",
    "eq": "not-eq",
    "starts-with": "not-starts-with",
    "in": "not-in",
    "is-null": "not-null",
    "is-nan": "not-nan",
}
_INVERSE_BOTH: Final = {**_INVERSE, **{after: before for before, after in _INVERSE.items()}}
#: The comparison that says the same with both sides changed over.
_TURNED: Final = {"lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq"}
_ONE_SIDED: Final = {"starts-with", "not-starts-with"}
_LOGIC: Final = ("and", "or", "not")
_KNOWN: Final = ", ".join((*_LOGIC, *_KINDS))
#: Characters of what is wrong that a refusal shows.
_SHOWN: Final = 80
#: Each predicate is tested on every entry of the tree, about a millisecond: no longer filter is
#: worth it, nor is a longer list of values.
_MOST_PREDICATES: Final = 2_000
_MOST_VALUES: Final = 10_000
_NANOS: Final = (TimestampNanoType, TimestamptzNanoType)

#: A term with the type of its values, a literal, or None for what our filters cannot say.
_Term: TypeAlias = "tuple[ice.Reference | Transformed, IcebergType, str] | None"


def filter_from_json(
    document: Any, schema: Schema, *, case_sensitive: bool = True
) -> ice.BooleanExpression:
    """Return the filter, `Unsure` in parts; InvalidInput says what makes no sense in it.

    One that is too long to be worth its time is `Unsure` as a whole.
    """
    if _is_long(document):
        return Unsure()
    try:
        return _Reader(schema, case_sensitive).filter(document, negate=False)
    except RecursionError:
        raise InvalidInput("the filter nests too deep") from None


def _is_long(document: Any) -> bool:
    """Tell whether a filter has more predicates, or more values, than planning by them is worth."""
    predicates = values = 0
    waiting = [document]
    while waiting and predicates <= _MOST_PREDICATES and values <= _MOST_VALUES:
        match waiting.pop():
            case {"type": kind, **parts}:
                predicates += isinstance(kind, str) and kind in _KINDS
                waiting += parts.values()
            case dict() as parts:
                waiting += parts.values()
            case list() as items:
                values += len(items)
                waiting += [each for each in items if isinstance(each, dict | list)]
    return predicates > _MOST_PREDICATES or values > _MOST_VALUES


class _Reader:
    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._schema, self._case_sensitive = schema, case_sensitive

    # --- logic -----------------------------------------------------------------------------

    def filter(self, document: Any, *, negate: bool) -> ice.BooleanExpression:
        if isinstance(document, bool):
            return _fixed(document != negate)
        kind = _type_of(document)
        match kind:
            case "true" | "false":
                return _fixed((kind == "true") != negate)
            case "literal":
                return self.filter(_bool(document), negate=negate)
            case "not":
                return self.filter(_part(document, "child"), negate=not negate)
            case "and" | "or":
                parts = [self.filter(part, negate=negate) for part in _operands(document)]
                return joined(ice.And if (kind == "and") != negate else ice.Or, parts)
        if kind not in _KINDS:
            raise InvalidInput(f"a filter has no {_told(kind)}; there are: {_KNOWN}")
        return self._predicate(document, kind, negate)

    # --- predicates ------------------------------------------------------------------------

    def _predicate(
        self, document: Mapping[str, Any], kind: str, negate: bool
    ) -> ice.BooleanExpression:
        if kind in COMPARISONS:
            return self._comparison(document, kind, negate)
        term = self._term(_either(document, kind, "child", "term"))
        if kind in SETS:
            listed = _listed(document, kind)
            values = set() if term is None else {self._literal(each, term) for each in listed}
            return Unsure() if None in values else _made(kind, term, negate, values)
        for word in ("value", "values"):
            if word in document:
                raise InvalidInput(f"{kind} takes no {word}: {_told(document)}")
        return _made(kind, term, negate)

    def _comparison(
        self, document: Mapping[str, Any], kind: str, negate: bool
    ) -> ice.BooleanExpression:
        left = _either(document, kind, "left", "term")
        right = _either(document, kind, "right", "value")
        if "left" in document and _is_literal(left) and not _is_literal(right):
            if kind in _ONE_SIDED:
                return Unsure()
            left, right, kind = right, left, _TURNED.get(kind, kind)
        term = self._term(left)
        if term is None or not _is_literal(right):
            return Unsure()
        value = self._literal(right, term)
        return Unsure() if value is None else _made(kind, term, negate, value)

    # --- terms and literals ----------------------------------------------------------------

    def _term(self, document: Any) -> _Term:
        if isinstance(document, str):
            name, type_ = self._column(document)
            return ice.Reference(name), type_, name
        kind = _type_of(document)
        match kind:
            case "reference":
                return self._term(self._referenced(document))
            case "transform":
                inner = self._term(_part(document, "term"))
                return None if inner is None else _transformed(document, *inner)
            case "apply" | "literal":
                return None
        raise InvalidInput(
            f"{_told(document)} is no term of a filter: give a column's name, "
            "a reference or a transform"
        )

    def _referenced(self, document: Mapping[str, Any]) -> str:
        """Return the name in a reference, which may be by id instead."""
        if "id" in document:
            id = document["id"]
            name = self._schema.find_column_name(id) if isinstance(id, int) else None
            if name is None:
                raise InvalidInput(f"no column has the id {_told(id)}")
            return name
        name = document.get("name", document.get("term"))
        if not isinstance(name, str):
            raise InvalidInput(f"a reference needs the name of a column: {_told(document)}")
        return name

    def _column(self, name: str) -> tuple[str, IcebergType]:
        reference = ice.Reference(name)
        try:
            return name, reference.bind(self._schema, self._case_sensitive).ref().field.field_type
        except ValueError:
            raise no_column(reference, self._schema) from None

    def _literal(self, document: Any, term: Any) -> Literal[Any] | None:
        """Return a value as a literal of the term's type, None for one whose meaning is not sure."""
        _, type_, name = term
        value = _part(document, "value") if isinstance(document, Mapping) else document
        given = _given(value, type_, name)
        if given is None:
            return None
        found, fit = literals.fit(given, type_, name)
        if fit is not Fit.EXACT or isinstance(type_, FloatType | DoubleType):
            return given
        return literals.literal_of(found, type_)


def _given(value: Any, type_: IcebergType, name: str) -> Literal[Any] | None:
    match value:
        case None:
            # So clients write a number that JSON has no text for, such as infinity.
            return None
        case bool():
            return BooleanLiteral(value)
        case int():
            # Clients count times in microseconds, whatever the column does.
            return LongLiteral(value * 1000 if isinstance(type_, _NANOS) else value)
        case float():
            return DoubleLiteral(value)
        case str() if isinstance(type_, BinaryType | FixedType):
            try:
                return BinaryLiteral(bytes.fromhex(value))
            except ValueError:
                raise InvalidInput(
                    f"{name!r} is {type_}: {_told(value)} is not in pairs of hex digits"
                ) from None
        case str() if isinstance(type_, DateType) and "T" in value:
            # To some a moment of a day is that day, to others it comes after it.
            return None
        case str():
            return StringLiteral(value)
    raise InvalidInput(f"{name!r}: {_told(value)} is no value to compare with")


def _made(kind: str, term: _Term, negate: bool, *values: Any) -> ice.BooleanExpression:
    if term is None:
        return Unsure()
    found: ice.BooleanExpression = _KINDS[_INVERSE_BOTH[kind] if negate else kind](term[0], *values)
    return found


def _fixed(value: bool) -> ice.BooleanExpression:
    return ice.AlwaysTrue() if value else ice.AlwaysFalse()


def _transformed(document: Any, inner: Any, type_: IcebergType, name: str) -> _Term:
    text = _part(document, "transform")
    if not isinstance(text, str) or isinstance(inner, Transformed):
        raise InvalidInput(f"{_told(document)} is no transform of a column")
    text = text.lower()
    if is_malformed(text):
        raise InvalidInput(f"{_told(text)} is no transform")
    transform = parse_transform(text)
    if isinstance(transform, UnknownTransform) or not transform.can_transform(type_):
        return None
    return Transformed(text, name), transform.result_type(type_), f"{text}({name})"


def _type_of(document: Any) -> str:
    kind = document.get("type") if isinstance(document, Mapping) else None
    if not isinstance(kind, str):
        raise InvalidInput(f"{_told(document)} is no part of a filter: it has no type")
    return kind.lower().replace("_", "-")


def _operands(document: Any) -> list[Any]:
    """Return the operands of nested ands (or ors), left to right, however deep they nest."""
    found, waiting = [], [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping) and part.get("type") == document["type"]:
            waiting += [_part(part, "right"), _part(part, "left")]
        else:
            found.append(part)
    return found


def _part(document: Mapping[str, Any], word: str) -> Any:
    if word not in document:
        raise InvalidInput(f"{_told(document)} has no {word}")
    return document[word]


def _bool(document: Mapping[str, Any]) -> bool:
    value = _part(document, "value")
    if not isinstance(value, bool):
        raise InvalidInput(f"{_told(document)} is no filter: its value is neither true nor false")
    return value


def _either(document: Mapping[str, Any], kind: str, word: str, older: str) -> Any:
    if word in document:
        return document[word]
    if older not in document:
        raise InvalidInput(f"{kind} needs a {older}: {_told(document)}")
    return document[older]


def _listed(document: Mapping[str, Any], kind: str) -> Sequence[Any]:
    values = _either(document, kind, "values", "values")
    if isinstance(values, Mapping):
        values = _part(values, "values")
    if not isinstance(values, list):
        raise InvalidInput(f"{kind} needs a list of values: {_told(document)}")
    return values


def _is_literal(document: Any) -> bool:
    return not isinstance(document, Mapping) or document.get("type") == "literal"


def _told(document: Any) -> str:
    text = repr(document)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
