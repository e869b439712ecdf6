"""Reading a text word by word: what the parsers of filters and of expressions share."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from icetree.errors import InvalidInput
from icetree.filters.tokens import Token, mistake


class Cursor:
    """A place in the words of a text; `what` is what the text is, for messages."""

    def __init__(self, text: str, words: Sequence[Token], *, what: str) -> None:
        self._text = text
        self._tokens = words
        self._what = what
        self._at = 0

    @property
    def here(self) -> Token:
        """The word that comes next."""
        return self._tokens[self._at]

    @property
    def after(self) -> Token:
        """The word after that; the end stays the end."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def expected(self, what: str) -> InvalidInput:
        """Return the error for a word that cannot stand here."""
        found = repr(self.here.text) if self.here.kind != "end" else "the end"
        return self.refuse(self.here, f"expected {what}, found {found}")

    def refuse(self, token: Token, what: str) -> InvalidInput:
        """Return the error for a word that is wrong."""
        return mistake(self._text, token.at, what, of=self._what)

    def step(self) -> Token:
        """Step over the next word, and return it."""
        token = self.here
        self._at += token.kind != "end"
        return token

    def takes(self, *words: str) -> bool:
        """Step over these words where they come next."""
        coming = [token.word for token in self._tokens[self._at : self._at + len(words)]]
        if coming != list(words):
            return False
        self._at += len(words)
        return True

    def need(self, word: str, what: str | None = None) -> None:
        """Step over a word that must come next."""
        if not self.takes(word):
            raise self.expected(what or word)

    def names(self, reserved: Collection[str], *, what: str = "a column") -> list[str]:
        """Step over a column's name, and return its parts."""
        found = [self._name(reserved, what)]
        while self.takes("."):
            found.append(self._name(reserved, what))
        return found

    def _name(self, reserved: Collection[str], what: str) -> str:
        token = self.here
        if token.kind == "quoted":
            self.step()
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind != "word" or token.word in reserved:
            hint = ' (one that is a keyword goes in ")' if token.word in reserved else ""
            raise self.expected(f"{what}{hint}")
        return self.step().text
