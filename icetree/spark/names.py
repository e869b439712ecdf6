"""Names in Spark's SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name that may hold anything, as SQL."""
    return f"`{name.replace('`', '``')}`"
