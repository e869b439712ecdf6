"""Filters as users write them."""

from __future__ import annotations

from typing import TypeAlias

from pyiceberg.expressions import BooleanExpression

from icetree.errors import InvalidInput
from icetree.filters.parser import parse

#: A filter as users give it.
Filter: TypeAlias = "BooleanExpression | str"


def parse_filter(where: Filter) -> BooleanExpression:
    """Return a filter given as an expression or as text such as `country = 'DE' and n > 3`.

    `filters.parser` has the grammar, and what a filter means for nulls and NaNs.
    """
    if isinstance(where, BooleanExpression):
        return where
    if not isinstance(where, str):
        raise InvalidInput(f"{where!r} is no filter: give text or a PyIceberg expression")
    return parse(where)
