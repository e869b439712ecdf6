"""Where commands print: colour and lines on a terminal, plain ASCII into a file or a pipe."""

from __future__ import annotations

import sys
from typing import Final, TextIO

from rich.console import Console

from icetree.picture.words import plain


class Plain:
    """A text file that holds ASCII only; rich then chooses its own ASCII lines."""

    encoding: Final = "ascii"

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write text, with a stand-in for each character that has one."""
        return self._file.write(plain(text))

    def flush(self) -> None:
        """Pass on what is waiting."""
        self._file.flush()

    def isatty(self) -> bool:
        """Tell that nobody is looking."""
        return False


def stdout() -> Console:
    """Return the console of standard output; what is no terminal has a width of its own."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(
        file=Plain(sys.stdout),  # type: ignore[arg-type]
        width=100,
        highlight=False,
        color_system=None,
    )
