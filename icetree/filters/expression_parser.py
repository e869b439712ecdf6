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
from icetree.filters.expression import Call, Cast, Column, Constant, Expression, negated
from icetree.filters.tokens import Token, mistake, tokens
from icetree.spec.texts import did_you_mean
from icetree.spec.type_text import read_type

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


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_apart(tokens(text)))
        self._at = 0

    @property
    def here(self) -> Token:
        return self._tokens[self._at]

    def expected(self, what: str) -> InvalidInput:
        found = repr(self.here.text) if self.here.kind != "end" else "the end"
        return self._refuse(self.here, f"expected {what}, found {found}")

    def _refuse(self, token: Token, what: str) -> InvalidInput:
        return mistake(self._text, token.at, what, of="expression")

    def _step(self) -> Token:
        token = self.here
        self._at += token.kind != "end"
        return token

    def _takes(self, *words: str) -> bool:
        """Step over these words where they come next."""
        coming = [token.word for token in self._tokens[self._at : self._at + len(words)]]
        if coming != list(words):
            return False
        self._at += len(words)
        return True

    def _need(self, word: str, what: str | None = None) -> None:
        if not self._takes(word):
            raise self.expected(what or word)

    # --- logic -----------------------------------------------------------------------------

    def expression(self) -> Expression:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return _call("or", *parts) if len(parts) > 1 else parts[0]

    def _all(self) -> Expression:
        parts = [self._one()]
        while self._takes("and"):
            parts.append(self._one())
        return _call("and", *parts) if len(parts) > 1 else parts[0]

    def _one(self) -> Expression:
        return negated(self._one()) if self._takes("not") else self._test()

    def _test(self) -> Expression:
        value = self._sum()
        if self.here.word in _SIGNS:
            return _call(_SIGNS[self._step().word], value, self._sum())
        if self._takes("is"):
            negate = "not " if self._takes("not") else ""
            for word in ("null", "nan"):
                if self._takes(word):
                    return _call(f"is {negate}{word}", value)
            raise self.expected("null or nan")
        if self._takes("not"):
            found = self._among(value)
            if found is None:
                raise self.expected("in, between, like or starts with")
            return negated(found)
        return self._among(value) or value

    def _among(self, value: Expression) -> Expression | None:
        if self._takes("in"):
            self._need("(")
            return _call("in", value, *self._listed())
        if self._takes("between"):
            low = self._sum()
            self._need("and")
            return _call("and", _call(">=", value, low), _call("<=", value, self._sum()))
        if self._takes("like"):
            return _call("like", value, self._sum())
        if self._takes("starts", "with"):
            return _call("starts_with", value, self._sum())
        return None

    def _listed(self) -> list[Expression]:
        found = [self.expression()]
        while self._takes(","):
            found.append(self.expression())
        self._need(")", ", or )")
        return found

    # --- values ----------------------------------------------------------------------------

    def _sum(self) -> Expression:
        found = self._product()
        while self.here.word in ("+", "-", "||"):
            found = _call(self._step().word, found, self._product())
        return found

    def _product(self) -> Expression:
        found = self._unary()
        while self.here.word in ("*", "/", "%"):
            found = _call(self._step().word, found, self._unary())
        return found

    def _unary(self) -> Expression:
        if self._takes("-"):
            inner = self._unary()
            if isinstance(inner, Constant) and isinstance(inner.value, int | Decimal):
                return Constant(value=-inner.value)
            return _call("negate", inner)
        return self._unary() if self._takes("+") else self._primary()

    def _primary(self) -> Expression:
        token = self.here
        if token.kind in ("string", "hex", "number"):
            return Constant(value=self._value(self._step()))
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self._takes(word):
                return Constant(value=value)
        if self._takes("("):
            found = self.expression()
            self._need(")", "an operator or )")
            return found
        after = self._tokens[self._at + 1] if token.kind == "word" else token
        if token.word in ("date", "timestamp") and after.kind == "string":
            self._step()
            return self._moment(token, self._step())
        if self._takes("case"):
            return self._case(token)
        if after.word == "(" and token.word not in _RESERVED:
            return self._called()
        return self._column()

    def _case(self, start: Token) -> Expression:
        parts: list[Expression] = []
        while self._takes("when"):
            parts.append(self.expression())
            self._need("then")
            parts.append(self.expression())
        if not parts:
            raise self._refuse(start, "a case needs a when: case when x > 1 then 'a' else 'b' end")
        parts.append(self.expression() if self._takes("else") else Constant(value=None))
        self._need("end", "when, else or end")
        return _call("case", *parts)

    def _called(self) -> Expression:
        name = self._step()
        self._need("(")
        if name.word == "cast":
            value = self.expression()
            self._need("as")
            return Cast(value=value, type=self._type())
        if name.word not in FUNCTIONS:
            known = ", ".join(("cast", *sorted(FUNCTIONS)))
            hint = did_you_mean(name.word, FUNCTIONS)
            raise self._refuse(name, f"there is no function {name.text!r}: there are {known}{hint}")
        arguments = [] if self._takes(")") else self._listed()
        least, most = FUNCTIONS[name.word]
        if not least <= len(arguments) <= most:
            raise self._refuse(
                name, f"{name.word} does not take {len(arguments)} arguments, but {least} to {most}"
            )
        return _call(name.word, *arguments)

    def _type(self) -> IcebergType:
        start, depth = self.here, 0
        while depth or self.here.word != ")":
            if self.here.kind == "end":
                raise self.expected(")")
            depth += {"(": 1, ")": -1}.get(self._step().word, 0)
        text = self._text[start.at : self.here.at].strip()
        self._need(")")
        return read_type(text)

    def _moment(self, kind: Token, token: Token) -> Expression:
        text = token.text[1:-1]
        try:
            if kind.word == "date":
                return Constant(value=date.fromisoformat(text))
            return Constant(value=datetime.fromisoformat(text.replace("Z", "+00:00")))
        except ValueError:
            raise self._refuse(token, f"{token.text} is no {kind.word}") from None

    def _column(self) -> Column:
        names = [self._name()]
        while self._takes("."):
            names.append(self._name())
        return Column(names=tuple(names))

    def _name(self) -> str:
        token = self.here
        if token.kind == "quoted":
            self._step()
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind != "word" or token.word in _RESERVED:
            hint = ' (one that is a keyword goes in ")' if token.word in _RESERVED else ""
            raise self.expected(f"a column, a value or a function{hint}")
        return self._step().text

    def _value(self, token: Token) -> int | Decimal | str | bytes:
        if token.kind == "string":
            return token.text[1:-1].replace("''", "'")
        try:
            if token.kind == "hex":
                return bytes.fromhex(token.text[2:-1])
            return int(token.text) if token.text.isdigit() else Decimal(token.text)
        except (ValueError, ArithmeticError):
            raise self._refuse(token, f"{token.text} is no value") from None


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
