"""Which columns may identify a row."""

from __future__ import annotations

from icetree.errors import InvalidInput
from icetree.spec.schema.tree import Place


def required_id(place: Place) -> int:
    """Return the id of a column that may identify rows; InvalidInput says why it may not."""
    reason = _refusal(place)
    if reason is not None:
        raise InvalidInput(f"column {place.name!r} cannot be an identifier field: {reason}")
    return place.id


def _refusal(place: Place) -> str | None:
    if place.is_repeated:
        return "it is inside a list or map"
    if not isinstance(place.type, str):
        return f"it is a {place.type['type']}"
    if place.type in {"float", "double"}:
        return f"a {place.type} has no exact values"
    for each in (*place.parents, place):
        if not each.required:
            return f"{each.name!r} is optional; make it required first"
    return None
