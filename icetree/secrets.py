"""Values that no message may show, however they got into it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

#: What stands in their place.
HIDDEN: Final = "***"
#: A message of another's making is cut here: some servers answer with whole pages.
_LONGEST: Final = 400
#: Shorter ones are hidden only where they stand alone: they may be part of any word.
_SHORT: Final = 4


class Secrets:
    """Passwords, keys and tokens of a connection; its own text form shows none."""

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        spellings = {
            spelling
            for value in values
            if value
            for spelling in (value, quote(value), quote(value, safe=""), quote_plus(value))
        }
        patterns = [
            re.escape(each) if len(each) >= _SHORT else rf"(?<!\w){re.escape(each)}(?!\w)"
            for each in sorted(spellings, key=len, reverse=True)
        ]
        self._found = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def __repr__(self) -> str:
        return f"Secrets({HIDDEN})"

    def hide(self, message: object) -> str:
        """Return a message on one line and not too long, with stars for what it may not show."""
        shown = " ".join(str(message).split())
        if self._found is not None:
            shown = self._found.sub(HIDDEN, shown)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
