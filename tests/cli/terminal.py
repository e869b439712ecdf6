"""A terminal for tests: as wide as one likes, its colours left out."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable

import pytest


class Screen(io.StringIO):
    """Standard output that somebody looks at."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def on_terminal(patch: pytest.MonkeyPatch, width: int, do: Callable[[], object]) -> list[str]:
    """Do something that prints on a terminal, and return the lines."""
    screen = Screen()
    with patch.context() as only:
        only.setattr(sys, "stdout", screen)
        only.setenv("COLUMNS", str(width))
        # A dumb one would be 80 columns wide, whatever is said.
        only.setenv("TERM", "xterm")
        do()
    return re.sub(r"\x1b\[[\d;]*m", "", screen.getvalue()).splitlines()
