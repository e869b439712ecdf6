"""Filters as users write them."""

from __future__ import annotations

from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.parser import parse

from icetree.errors import InvalidInput


def parse_filter(where: BooleanExpression | str) -> BooleanExpression:
    """Return a filter given as an expression or as text such as `country = 'DE' and n > 3`."""
    if isinstance(where, BooleanExpression):
        return where
    try:
        return parse(where)
    except Exception as error:
        raise InvalidInput(f"cannot read the filter {where!r}: {error}") from None
