"""Bounds of a field of variants, one for each entry."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.variant.bounds import decode
from icetree.codec.variant.coerce import coerced
from icetree.spec.schema.types import VARIANT_BOUND, bounds_type
from icetree.tree.prune.predicates import Within


def field_bounds(bounds: pa.Array, within: Within) -> pa.Array | None:
    """Return the bound at a path, as a value of the type; null where none is told that is one."""
    type = bounds_type(within.type)
    if bounds.type != VARIANT_BOUND or type is None:
        return None
    # Files of one writer often have the same: each is looked into once.
    encoded = pc.dictionary_encode(bounds)
    told = [decode(each).get(within.path) for each in encoded.dictionary.to_pylist()]
    values = [None if each is None else coerced(each, within.type) for each in told]
    return pa.array(values, type).take(encoded.indices)
