"""Variants as tests write them down: what JSON can say, as pairs of bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icetree.codec.variant.read import Primitive, find, members, names, primitive
from icetree.codec.variant.write import encode
from icetree.rows.variant import PAIR


def pair(value: Any) -> dict[str, bytes]:
    metadata, content = encode(value)
    return {"metadata": metadata, "value": content}


def pairs(*values: Any) -> pa.Array:
    """Return a column of variants; an ellipsis is a null, for None is a variant of its own."""
    return pa.array([None if each is ... else pair(each) for each in values], PAIR)


def said(found: dict[str, bytes] | None) -> Any:
    """Return what a pair says."""
    if found is None:
        return ...
    known, value = names(found["metadata"]), found["value"]

    def told(at: int) -> Any:
        single = primitive(value, at)
        if single is not None:
            plain = single.kind in ("null", "boolean", "exact", "double", "string", "binary")
            return single.value if plain else Primitive(single.kind, single.value)
        inside = members(value, at, known)
        if value[at] & 3 == 3:
            return [told(begins) for _, begins in inside]
        return {name: told(begins) for name, begins in inside}

    assert find(value, known, ()) == 0
    return told(0)
