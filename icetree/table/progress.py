"""How long work tells what it is at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Told of what is under way: what, how many are done, of how many.
Progress: TypeAlias = Callable[[str, int, int], None]
