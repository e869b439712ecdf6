"""From the text of a value or a condition over columns to its expression.

    expression = all {"or" all}             all = one {"and" one}          one = "not" one | test
    test       = sum [sign sum | "is" ["not"] ("null" | "nan")
                      | ["not"] "in" "(" expression {"," expression} ")"
                      | ["not"] "between" sum "and" sum
                      | ["not"] ("like" | "starts" "with") sum]
    sum        = product {("+" | "-" | "||") product}
    product    = unary {("*" | "/" | "%") unary}                        unary = ["-" | "+"] primary
    primary    = literal | "null" | "true" | "false" | "(" expression ")" | column
               | ("date" | "timestamp") string | "cast" "(" expression "as" type ")"
               | "case" {"when" expression "then" expression} ["else" expression] "end"
               | function "(" [expression {"," expression}] ")"

Names, strings and bytes are written as in filters, and comparisons mean what they mean there. The
functions are those of `FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from pyiceberg.types import IcebergType

from icetree.errors import InvalidInput
from icetree.filters.cursor import Cursor
from icetree.filters.expression import Call, Cast, Column, Constant, Expression, negated
from icetree.filters.tokens import Token, tokens
from icetree.spec.schema.text import read_type
from icetree.spec.texts import did_you_mean

#: Each function, and how many arguments it takes: at least, at most.
FUNCTIONS: Final = {
    "abs": (1, 1),
    "ceil": (1, 1),
    "coalesce": (1, 99),
    "concat": (1, 99),
    "floor": (1, 1),
    "greatest": (2, 99),
    "least": (2, 99),
    "length": (1, 1),
    "lower": (1, 1),
    "nullif": (2, 2),
    "replace": (3, 3),
    "round": (1, 2),
    "starts_with": (2, 2),
    "substring": (2, 3),
    "trim": (1, 1),
    "upper": (1, 1),
}
_SIGNS: Final = {"=": "=", "==": "=", "!=": "!=", "<>": "!="} | {
    s: s for s in ["<", "<=", ">", ">="]
}
_RESERVED: Final = frozenset(
    [
        "and",
        "or",
        "not",
        "in",
        "is",
        "between",
        "like",
        "null",
        "true",
        "false",
        "case",
        "when",
        "then",
        "else",
        "end",
        "as",
    ]
)


def parse_expression(text: str) -> Expression:
    """Return an expression; InvalidInput says where it is wrong and what could stand there."""
    parser = _Parser(text)
    try:
        found = parser.expression()
    except RecursionError:
        raise InvalidInput(f"the expression nests too deep: {text[:60]!r}…") from None
    if parser.here.kind != "end":
        raise parser.expected("an operator, or the end")
    return found


class _Parser(Cursor):
    def __init__(self, text: str) -> None:
        super().__init__(text, list(_apart(tokens(text))), what="expression")

    # --- logic -----------------------------------------------------------------------------

    def expression(self) -> Expression:
        parts = [self._all()]
        while self.takes("or"):
            parts.append(self._all())
        return _call("or", *parts) if len(parts) > 1 else parts[0]

    def _all(self) -> Expression:
        parts = [self._one()]
        while self.takes("and"):
            parts.append(self._one())
        return _call("and", *parts) if len(parts) > 1 else parts[0]

    def _one(self) -> Expression:
        return negated(self._one()) if self.takes("not") else self._test()

    def _test(self) -> Expression:
        value = self._sum()
        if self.here.word in _SIGNS:
            return _call(_SIGNS[self.step().word], value, self._sum())
        if self.takes("is"):
            negate = "not " if self.takes("not") else ""
            for word in ("null", "nan"):
                if self.takes(word):
                    return _call(f"is {negate}{word}", value)
            raise self.expected("null or nan")
        if self.takes("not"):
            found = self._among(value)
            if found is None:
                raise self.expected("in, between, like or starts with")
            return negated(found)
        return self._among(value) or value

    def _among(self, value: Expression) -> Expression | None:
        if self.takes("in"):
            self.need("(")
            return _call("in", value, *self._listed())
        if self.takes("between"):
            low = self._sum()
            self.need("and")
            return _call("and", _call(">=", value, low), _call("<=", value, self._sum()))
        if self.takes("like"):
            return _call("like", value, self._sum())
        if self.takes("starts", "with"):
            return _call("starts_with", value, self._sum())
        return None

    def _listed(self) -> list[Expression]:
        found = [self.expression()]
        while self.takes(","):
            found.append(self.expression())
        self.need(")", ", or )")
        return found

    # --- values ----------------------------------------------------------------------------

    def _sum(self) -> Expression:
        found = self._product()
        while self.here.word in ("+", "-", "||"):
            found = _call(self.step().word, found, self._product())
        return found

    def _product(self) -> Expression:
        found = self._unary()
        while self.here.word in ("*", "/", "%"):
            found = _call(self.step().word, found, self._unary())
        return found

    def _unary(self) -> Expression:
        if self.takes("-"):
            inner = self._unary()
            if isinstance(inner, Constant) and isinstance(inner.value, int | Decimal):
                return Constant(value=-inner.value)
            return _call("negate", inner)
        return self._unary() if self.takes("+") else self._primary()

    def _primary(self) -> Expression:
        token = self.here
        if token.kind in ("string", "hex", "number"):
            return Constant(value=self._value(self.step()))
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self.takes(word):
                return Constant(value=value)
        if self.takes("("):
            found = self.expression()
            self.need(")", "an operator or )")
            return found
        after = self.after if token.kind == "word" else token
        if token.word in ("date", "timestamp") and after.kind == "string":
            self.step()
            return self._moment(token, self.step())
        if self.takes("case"):
            return self._case(token)
        if after.word == "(" and token.word not in _RESERVED:
            return self._called()
        return self._column()

    def _case(self, start: Token) -> Expression:
        parts: list[Expression] = []
        while self.takes("when"):
            parts.append(self.expression())
            self.need("then")
            parts.append(self.expression())
        if not parts:
            raise self.refuse(start, "a case needs a when: case when x > 1 then 'a' else 'b' end")
        parts.append(self.expression() if self.takes("else") else Constant(value=None))
        self.need("end", "when, else or end")
        return _call("case", *parts)

    def _called(self) -> Expression:
        name = self.step()
        self.need("(")
        if name.word == "cast":
            value = self.expression()
            self.need("as")
            return Cast(value=value, type=self._type())
        if name.word not in FUNCTIONS:
            known = ", ".join(("cast", *sorted(FUNCTIONS)))
            hint = did_you_mean(name.word, FUNCTIONS)
            raise self.refuse(name, f"there is no function {name.text!r}: there are {known}{hint}")
        arguments = [] if self.takes(")") else self._listed()
        least, most = FUNCTIONS[name.word]
        if not least <= len(arguments) <= most:
            raise self.refuse(
                name, f"{name.word} does not take {len(arguments)} arguments, but {least} to {most}"
            )
        return _call(name.word, *arguments)

    def _type(self) -> IcebergType:
        start, depth = self.here, 0
        while depth or self.here.word != ")":
            if self.here.kind == "end":
                raise self.expected(")")
            depth += {"(": 1, ")": -1}.get(self.step().word, 0)
        text = self._text[start.at : self.here.at].strip()
        self.need(")")
        return read_type(text)

    def _moment(self, kind: Token, token: Token) -> Expression:
        text = token.text[1:-1]
        try:
            if kind.word == "date":
                return Constant(value=date.fromisoformat(text))
            return Constant(value=datetime.fromisoformat(text.replace("Z", "+00:00")))
        except ValueError:
            raise self.refuse(token, f"{token.text} is no {kind.word}") from None

    def _column(self) -> Column:
        return Column(names=tuple(self.names(_RESERVED, what="a column, a value or a function")))

    def _value(self, token: Token) -> int | Decimal | str | bytes:
        if token.kind == "string":
            return token.text[1:-1].replace("''", "'")
        try:
            if token.kind == "hex":
                return bytes.fromhex(token.text[2:-1])
            return int(token.text) if token.text.isdigit() else Decimal(token.text)
        except (ValueError, ArithmeticError):
            raise self.refuse(token, f"{token.text} is no value") from None


def _apart(found: Iterable[Token]) -> Iterator[Token]:
    """Yield tokens with the signs of numbers apart: whether one is an operator, the place tells."""
    for token in found:
        if token.kind == "number" and token.text[0] in "+-":
            yield Token(kind="sign", text=token.text[0], at=token.at)
            yield Token(kind="number", text=token.text[1:], at=token.at + 1)
        else:
            yield token


def _call(function: str, *arguments: Expression) -> Call:
    return Call(function=function, arguments=arguments)
