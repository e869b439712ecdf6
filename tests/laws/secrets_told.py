"""Recognisable secrets, and a search for them in everything that a user or a log could see."""

from __future__ import annotations

import gzip
import logging
import traceback
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

from icetree.errors import IcetreeError
from icetree.store.base import Store

#: With every sign that an address needs written otherwise.
PASSWORD = "pw-Gr8/s@crit:%25ü?&#"
ACCESS_KEY = "AKIARECOGNISABLE"
SECRET_KEY = "s3-SECRET/recognisable+key"
TOKEN = "session-TOKEN-recognisable=="
ALL = (PASSWORD, ACCESS_KEY, SECRET_KEY, TOKEN)


class Told:
    """All that was shown; secrets are looked for at the end."""

    def __init__(self, secrets: Iterable[str] = ALL) -> None:
        self._spellings = {
            spelling
            for each in secrets
            for spelling in (each, quote(each), quote(each, safe=""), quote_plus(each), repr(each))
        }
        self.texts: list[str] = []

    def show(self, *things: object) -> None:
        """Take note of things in both their text forms."""
        for each in things:
            self.texts += [str(each), repr(each)]

    def fails(self, call: Callable[[], object]) -> None:
        """Take note of an error of ours, with its whole traceback."""
        try:
            call()
        except IcetreeError as error:
            self.show(error, *error.args)
            self.texts.append("".join(traceback.format_exception(error)))
        else:
            raise AssertionError("nothing failed")

    def files(self, store: Store, folder: str) -> int:
        """Take note of every file below a folder, unpacked; return how many there are."""
        found = [each.location for each in store.list(folder)]
        for location in found:
            content = store.read(location)
            if content.startswith(b"\x1f\x8b"):
                content = gzip.decompress(content)
            self.texts += [location, content.decode("latin-1"), content.decode("utf-8", "replace")]
        return len(found)

    def log(self, records: Iterable[logging.LogRecord]) -> None:
        """Take note of what was logged, by whomever."""
        shown = logging.Formatter()
        self.texts += [shown.format(record) for record in records]

    def leaks(self) -> list[str]:
        """Return the texts that hold a secret, in any spelling."""
        return [text for text in self.texts if any(each in text for each in self._spellings)]
