"""Arrow arrays in which values at the bottom are of other types: the nesting around them stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from icetree.spec.arrays import with_values

#: Makes values of a column that is not nested.
Leaf: TypeAlias = Callable[[pa.Array, IcebergType], pa.Array]


def rebuilt(array: pa.Array, type: IcebergType, leaf: Leaf) -> pa.Array:
    """Return an array of a column's values with other leaves; members of structs go by name."""
    match type:
        case StructType() if pa.types.is_struct(array.type):
            known = {field.name: field.field_type for field in type.fields}
            members = [
                rebuilt(member, known[field.name], leaf) if field.name in known else member
                for field, member in zip(array.type, array.flatten(), strict=True)
            ]
            names = [field.name for field in array.type]
            return pa.StructArray.from_arrays(members, names=names, mask=array.is_null())
        case ListType() if pa.types.is_list(array.type):
            values = rebuilt(array.values, type.element_type, leaf)
            return with_values(array, pa.list_(pa.field("element", values.type)), values)
        case MapType() if pa.types.is_map(array.type):
            keys = rebuilt(array.keys, type.key_type, leaf)
            items = rebuilt(array.items, type.value_type, leaf)
            made = pa.map_(keys.type, items.type)
            ends = [made.key_field, made.item_field]
            return with_values(array, made, pa.StructArray.from_arrays([keys, items], fields=ends))
    return leaf(array, type)
