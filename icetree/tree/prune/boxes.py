"""Boxes of filters: which columns they are for, and what stats are compared with."""

from __future__ import annotations

from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.types import GeographyType, GeometryType, IcebergType

from icetree.errors import InvalidInput
from icetree.spec import geo
from icetree.spec.geo import Box
from icetree.spec.schema.types import type_text
from icetree.tree.prune.predicates import Intersects, Placed, no_column


def placed(predicate: Intersects, schema: Schema, *, case_sensitive: bool = True) -> Placed:
    """Return what a box is compared with; `InvalidInput` where nothing can be."""
    try:
        field = ice.Reference(predicate.name).bind(schema, case_sensitive).ref().field
    except ValueError:
        raise no_column(ice.Reference(predicate.name), schema) from None
    require_box(predicate.box, predicate.name, field.field_type)
    return Placed(
        field_id=field.field_id,
        box=predicate.box,
        earth=isinstance(field.field_type, GeographyType),
        negated=predicate.negated,
    )


def require_box(box: Box, name: str, type: IcebergType) -> None:
    """Refuse a box that values of a column cannot be compared with."""
    if not isinstance(type, GeometryType | GeographyType):
        raise InvalidInput(f"{name!r} is {type_text(type)}: st_intersects takes a geometry")
    earth = isinstance(type, GeographyType)
    if earth and not (abs(box.west) <= 180 and abs(box.east) <= 180):
        raise InvalidInput(f"{name!r} is {type_text(type)}: longitudes go from -180 to 180")
    ends = ((box.south, box.north), box.heights, box.measures)
    empty = any(each is not None and each[0] > each[1] for each in ends)
    if empty or (box.west > box.east and not earth):
        hint = "" if empty else ", and only boxes on the earth go around it"
        raise InvalidInput(
            f"{geo.text(box)} has nothing in it: give the least corner first, then the greatest{hint}"
        )
