"""The reference as the code has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

PARTS: Final[dict[str, Callable[[], str]]] = {}
