"""A snapshot's summary with its counts as numbers; Iceberg stores all of it as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: How the keys of counts start; what else there is, is text, even if it is digits.
_COUNTS: Final = ("added-", "changed-", "deleted-", "removed-", "total-", "replaced-")


def counted(summary: Mapping[str, str]) -> dict[str, Any]:
    """Return a summary whose counts are numbers."""
    return {
        key: int(text) if key.startswith(_COUNTS) and text.isdecimal() else text
        for key, text in summary.items()
    }
