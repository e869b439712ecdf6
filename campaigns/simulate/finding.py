"""What the simulation is looking for: a law that was broken."""

from __future__ import annotations

from collections import Counter
from typing import Any, NoReturn


class Finding(BaseException):
    """A law was broken; no caller is to catch it but the simulation."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law
        self.what = what


def require(holds: bool, law: str, what: str) -> None:
    """Require that a law holds."""
    if not holds:
        found(law, what)


def found(law: str, what: str) -> NoReturn:
    """Tell of a law that was broken."""
    raise Finding(law, what)


def few(meant: Counter[Any], there: Counter[Any]) -> str:
    """Return some of what is there and was not meant, and the other way round."""
    missing, extra = meant - there, there - meant
    return f"{list(extra.elements())[:3]} too many, {list(missing.elements())[:3]} missing"
