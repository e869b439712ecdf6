"""From the text of a filter to PyIceberg's expression.

    filter    = all {"or" all}            all = one {"and" one}
    one       = "not" one | "(" filter ")" | "true" | "false" | predicate
    predicate = term sign literal | literal sign term
              | term ["not"] "in" "(" literal {"," literal} ")"
              | term ["not"] "between" literal "and" literal
              | term ["not"] ("like" | "starts" "with") string
              | term "is" ["not"] ("null" | "nan") | "starts_with" "(" term "," string ")"
              | "st_intersects" "(" column "," "box" "(" end "," end {"," end} ")" ")"
    term      = column | transform "(" [number ","] column ")"
              | "variant_get" "(" column "," string "," string ")"
    column    = name {"." name}           end = number | "null"

Names are quoted with " or `, strings with ', and bytes are X'00ff'. Keywords come in any case.

Meaning is Iceberg's: `not` is moved to the predicates first, so that `not x > 1` is `x <= 1`. A
null then satisfies `is null` alone, and `is not nan`. A NaN is different from every number and
neither less nor greater than any: it satisfies `!=`, `not in` and `is nan`. So a row with a NaN or
a null is neither in `x > 1` nor in `not x > 1`: add `or x is nan`, or `or x is null`, to have it.
List and map columns can be asked whether they are null, nothing else.

`variant_get(v, '$.a.b', 'long')` is what a variant holds at a path, as a value of the type: null
where there is nothing, or something else. Whole numbers and decimals are numbers of any type that has
them exactly, and doubles; nothing else becomes another.

A box is of the least x and y, then the greatest: `box(5, 45, 15, 55)`; of three numbers each for one
with z, of four for one with z and m, where null stands for both ends of a z or an m that may be any.
`st_intersects` holds where the box around a geometry shares a place with it; a geometry without a z is
in no box with one. For a geography x is from west to east, and a box whose west is the greater crosses
the antimeridian.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeVar

from pyiceberg import expressions as ice
from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DecimalLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
)

from icetree.codec.variant.paths import read_path
from icetree.errors import InvalidInput
from icetree.filters.cursor import Cursor
from icetree.filters.tokens import Token, tokens
from icetree.spec.geo import box_of
from icetree.spec.schema.text import read_type
from icetree.spec.texts import did_you_mean
from icetree.tree.prune.predicates import Extracted, Intersects, Transformed

T = TypeVar("T")

_Term: TypeAlias = "ice.Reference | Transformed | Extracted"

_SIGNS: Final[dict[str, type[Any]]] = {
    "=": ice.EqualTo,
    "==": ice.EqualTo,
    "!=": ice.NotEqualTo,
    "<>": ice.NotEqualTo,
    "<": ice.LessThan,
    "<=": ice.LessThanOrEqual,
    ">": ice.GreaterThan,
    ">=": ice.GreaterThanOrEqual,
}
#: The sign that says the same with both sides changed over.
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_RESERVED: Final = {"and", "or", "not", "in", "is", "between", "like", "null", "true", "false"}
_LITERALS: Final = {"hex", "string", "number"}
_NUMBERED: Final = {"bucket", "truncate"}
_INT_DIGITS: Final = 10
_TIMES: Final = {
    word + plural: word for word in ("year", "month", "day", "hour") for plural in ("", "s")
}
#: How a period is written, and in which steps periods count from 1970.
_PERIODS: Final = {
    "year": re.compile(r"(\d{4})"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "hour": re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d)(?::00(?::00)?)?"),
}
_HOUR: Final = timedelta(hours=1)
_SPELT: Final = {"year": "'2026'", "month": "'2026-03'", "hour": "'2026-03-05T10'"}


def parse(text: str) -> ice.BooleanExpression:
    """Return a filter's expression; InvalidInput says where it is wrong and what could stand there.

    Whether there are such columns, and whether literals fit them, shows when it is bound.
    """
    parser = _Parser(text)
    try:
        found = parser.filter()
    except RecursionError:
        raise InvalidInput(f"the filter nests too deep: {text[:60]!r}…") from None
    if parser.here.kind != "end":
        raise parser.expected("and, or, or the end")
    return found


class _Parser(Cursor):
    def __init__(self, text: str) -> None:
        super().__init__(text, tokens(text), what="filter")

    # --- logic -----------------------------------------------------------------------------

    def filter(self) -> ice.BooleanExpression:
        parts = [self._all()]
        while self.takes("or"):
            parts.append(self._all())
        return joined(ice.Or, parts)

    def _all(self) -> ice.BooleanExpression:
        parts = [self._one()]
        while self.takes("and"):
            parts.append(self._one())
        return joined(ice.And, parts)

    def _one(self) -> ice.BooleanExpression:
        if self.takes("not"):
            return ice.Not(self._one())
        if self.takes("("):
            inner = self.filter()
            self.need(")", "and, or, or )")
            return inner
        if self.after.word not in _SIGNS:
            if self.takes("true"):
                return ice.AlwaysTrue()
            if self.takes("false"):
                return ice.AlwaysFalse()
        return self._predicate()

    # --- predicates ------------------------------------------------------------------------

    def _predicate(self) -> ice.BooleanExpression:
        if self.here.kind in _LITERALS or self.here.word in ("true", "false"):
            return self._turned()
        if self.takes("starts_with", "("):
            term = self._term()
            self.need(",")
            prefix = self._string(term, "a prefix in single quotes")
            self.need(")")
            return _made(ice.StartsWith, term, prefix)
        if self.takes("st_intersects", "("):
            return self._intersects()
        term = self._term()
        if self.here.word in _SIGNS:
            return _made(_SIGNS[self.step().word], term, self._literal(term))
        if self.takes("is"):
            return self._is(term)
        negate = self.takes("not")
        found = self._has(term, negate)
        return ice.Not(found) if negate else found

    def _intersects(self) -> ice.BooleanExpression:
        column = self._column()
        self.need(",")
        if not self.takes("box", "("):
            raise self.expected("a box: box(least x, least y, greatest x, greatest y)")
        ends = [self._end()]
        while self.takes(","):
            ends.append(self._end())
        self.need(")", ", or )")
        self.need(")")
        return Intersects(column, box_of(ends))

    def _end(self) -> float | None:
        if self.takes("null"):
            return None
        if self.here.kind != "number":
            raise self.expected("a number")
        return float(self.step().text)

    def _turned(self) -> ice.BooleanExpression:
        start = self._at
        self.step()
        sign = self.here.word
        if sign not in _SIGNS:
            raise self.expected(f"one of {', '.join(_SIGNS)}")
        self.step()
        term = self._term()
        after, self._at = self._at, start
        value = self._literal(term)
        self._at = after
        return _made(_SIGNS[_TURNED.get(sign, sign)], term, value)

    def _is(self, term: _Term) -> ice.BooleanExpression:
        negate = self.takes("not")
        if self.takes("null"):
            return _made(ice.NotNull, term) if negate else _made(ice.IsNull, term)
        if self.takes("nan"):
            return _made(ice.NotNaN, term) if negate else _made(ice.IsNaN, term)
        raise self.expected("null or nan" if negate else "null, nan or not")

    def _has(self, term: _Term, negate: bool) -> ice.BooleanExpression:
        if self.takes("in"):
            return _made(ice.In, term, self._listed(term))
        if self.takes("between"):
            low = self._literal(term)
            self.need("and")
            return ice.And(
                _made(ice.GreaterThanOrEqual, term, low),
                _made(ice.LessThanOrEqual, term, self._literal(term)),
            )
        if self.takes("like"):
            return self._like(term)
        if self.takes("starts", "with"):
            return _made(ice.StartsWith, term, self._string(term, "a prefix in single quotes"))
        more = "" if negate else f"{', '.join(_SIGNS)}, is, not, "
        raise self.expected(f"one of {more}in, between, like, starts with")

    def _listed(self, term: _Term) -> set[Literal[Any]]:
        self.need("(")
        found = {self._literal(term)}
        while self.takes(","):
            found.add(self._literal(term))
        self.need(")", ", or )")
        return found

    def _like(self, term: _Term) -> ice.BooleanExpression:
        token = self.here
        pattern: str = self._string(term, "a pattern in single quotes").value
        parts = re.findall(r"\\[\\%_]|.", pattern, re.DOTALL)
        prefix = parts[:-1] if parts[-1:] == ["%"] else parts
        if "%" in prefix or "_" in prefix:
            raise self.refuse(
                token,
                "only a % at the end stands for anything: 'abc%'; a plain % or _ is \\% or \\_",
            )
        kind: Any = ice.EqualTo if prefix is parts else ice.StartsWith
        plain = "".join(part[-1] for part in prefix)
        return _made(kind, term, StringLiteral(plain))

    # --- terms and literals ----------------------------------------------------------------

    def _term(self) -> _Term:
        call = self.here.kind == "word" and self.after.word == "("
        if not call or self.here.word in _RESERVED:
            return ice.Reference(self._column())
        function = self.step()
        word = function.word
        self.need("(")
        if word == "variant_get":
            return self._extracted()
        if word in _NUMBERED:
            number = self.here
            if number.kind != "number" or not number.text.isdigit() or not number.text.strip("0"):
                raise self.expected(f"a whole number: {word}(16, column)")
            if len(number.text) > _INT_DIGITS or int(number.text) >= 2**31:
                raise self.expected(f"a whole number below {2**31}")
            self.step()
            self.need(",")
            word = f"{word}[{int(number.text)}]"
        elif word not in _TIMES:
            times = sorted(set(_TIMES.values()))
            known = ("starts_with", *sorted(_NUMBERED), *times, "st_intersects", "variant_get")
            raise self.refuse(
                function,
                f"there is no function {function.text!r}; there are: {', '.join(known)}"
                f"{did_you_mean(function.text, known)}",
            )
        column = self._column()
        self.need(")")
        return Transformed(_TIMES.get(word, word), column)

    def _extracted(self) -> Extracted:
        column = self._column()
        path = self._argument("a path: '$.name'", read_path)
        type = self._argument("a type: 'long'", read_type)
        self.need(")")
        return Extracted(column, path, type)

    def _argument(self, what: str, read: Callable[[str], T]) -> T:
        """Step over a string after a comma, and return what it says."""
        self.need(",")
        token = self.here
        if token.kind != "string":
            raise self.expected(what)
        try:
            return read(str(self._value(self.step()).value))
        except InvalidInput as error:
            raise self.refuse(token, str(error)) from None

    def _column(self) -> str:
        return ".".join(self.names(_RESERVED))

    def _literal(self, term: _Term) -> Literal[Any]:
        token = self.here
        if token.word in ("null", "nan"):
            raise self.refuse(token, f"nothing compares with {token.word}: use `is {token.word}`")
        if token.word in ("true", "false"):
            self.step()
            return BooleanLiteral(token.word == "true")
        if token.kind not in _LITERALS:
            hint = " (strings go in single quotes)" if token.kind in ("word", "quoted") else ""
            raise self.expected(f"a literal{hint}")
        found = self._value(self.step())
        period = str(term.transform) if isinstance(term, Transformed) else ""
        return self._period(token, found, period) if period in _PERIODS else found

    def _value(self, token: Token) -> Literal[Any]:
        if token.kind == "string":
            return StringLiteral(token.text[1:-1].replace("''", "'"))
        if token.kind == "hex":
            try:
                return BinaryLiteral(bytes.fromhex(token.text[2:-1]))
            except ValueError:
                raise self.refuse(token, "expected pairs of hex digits: X'00ff'") from None
        try:
            if token.text.lstrip("+-").isdigit():
                return LongLiteral(int(token.text))
            return DecimalLiteral(Decimal(token.text))
        except ValueError:
            raise self.refuse(token, "the number has too many digits") from None
        except ArithmeticError:
            raise self.refuse(token, "the number is too large or too small") from None

    def _string(self, term: _Term, what: str) -> Literal[Any]:
        if self.here.kind not in ("string", "hex"):
            raise self.expected(what)
        return self._literal(term)

    def _period(self, token: Token, given: Literal[Any], period: str) -> Literal[Any]:
        """Return a year, month or hour as the format counts them, from 1970."""
        if isinstance(given, LongLiteral) and not (period == "year" and given.value >= 1000):
            return given
        match = _PERIODS[period].fullmatch(str(given.value)) if token.kind == "string" else None
        if match is None:
            raise self.refuse(
                token,
                f"expected the {period} as {_SPELT[period]}, or as a number counted from 1970",
            )
        year, *rest = map(int, match.groups())
        try:
            return LongLiteral(_ordinal(period, year, *rest))
        except ValueError as error:
            raise self.refuse(token, f"there is no such {period}: {error}") from None


def _made(kind: type[Any], term: _Term, *literals: Any) -> ice.BooleanExpression:
    # What PyIceberg's constructors take is not what they declare.
    found: ice.BooleanExpression = kind(term, *literals)
    return found


def _ordinal(period: str, year: int, month: int = 1, day: int = 1, hour: int = 0) -> int:
    at = datetime(year, month, day, hour, tzinfo=timezone.utc)
    if period == "year":
        return year - 1970
    if period == "month":
        return (year - 1970) * 12 + at.month - 1
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // _HOUR


def joined(
    kind: type[ice.And | ice.Or], parts: Sequence[ice.BooleanExpression]
) -> ice.BooleanExpression:
    """Join by halves, so that a thousand parts nest ten deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return kind(joined(kind, parts[:half]), joined(kind, parts[half:]))
