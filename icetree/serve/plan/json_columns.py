"""JSON objects as a column of texts, put together from columns: no row is looked at by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import one_chunk

#: A column, of values that are JSON already.
Texts: TypeAlias = pa.Array


def object_column(size: int, members: dict[str, Texts | str]) -> Texts:
    """Return objects with these members; a member that is null in a row is not in its object.

    At least the first member is in every object.
    """
    parts: list[pa.Array | str] = ["{"]
    for at, (name, value) in enumerate(members.items()):
        comma = "," if at else ""
        if isinstance(value, str):
            parts.append(f'{comma}"{name}":{value}')
        elif value.null_count:
            parts.append(joined(f'{comma}"{name}":', value))
        else:
            parts += [f'{comma}"{name}":', value]
    found = pc.binary_join_element_wise(
        *parts, "}", "", null_handling="replace", null_replacement=""
    )
    return found if isinstance(found, pa.Array) else pa.repeat(found, size)


def joined(*parts: pa.Array | str, by: str = "") -> Texts:
    """Return parts side by side; null where one of them is null."""
    return pc.binary_join_element_wise(*parts, by)


def listed(columns: Sequence[Texts]) -> Texts:
    """Return what is known of some columns in each row, with commas between; empty where nothing is."""
    # Not Arrow's own way to skip nulls: a row of nulls alone would be lost.
    parts = [joined(",", each) for each in columns]
    whole = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")
    return pc.utf8_slice_codeunits(whole, 1)


def numbers(values: pa.Array | pa.ChunkedArray) -> Texts:
    """Return whole numbers as texts; null stays null."""
    return one_chunk(values).cast(pa.string())


def number_lists(values: pa.Array | pa.ChunkedArray) -> Texts:
    """Return lists of whole numbers as `[1,2]`; null stays null."""
    values = one_chunk(values)
    return joined("[", pc.binary_join(values.cast(pa.list_(pa.string())), ","), "]")


def list_of(texts: Texts) -> bytes:
    """Return a column as one list."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    found: str = pc.binary_join(whole, ",")[0].as_py()
    return b"[" + found.encode() + b"]"
