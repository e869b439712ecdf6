"""Masks of what is known to hold, joined by `or` and `and`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

#: Where something is known to hold: null where it is not known, None where it is nowhere known.
Known: TypeAlias = pa.BooleanArray | None


def any_of(parts: Iterable[Known]) -> Known:
    """Tell where some of the parts hold."""
    known: Known = None
    for part in parts:
        if part is not None:
            known = part if known is None else pc.or_kleene(known, part)
    return known


def all_of(parts: Iterable[Known]) -> Known:
    """Tell where all of the parts hold."""
    known: Known = None
    for part in parts:
        if part is None:
            return None
        known = part if known is None else pc.and_kleene(known, part)
    return known
