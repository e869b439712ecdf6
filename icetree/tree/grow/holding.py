"""Which manifests may hold a file: told by stats alone, without reading one.

What bounds a file and what bounds a manifest that holds it both enclose the values of the file,
so in every field with values the two ranges meet. That is so however each was rounded, and
whoever measured it: nothing else of the file's entry need be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.spec.schema.shape import Shape

Flags = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int64]

#: Pairs of a file and a manifest looked at at once: bounds memory, not the result.
_BLOCK: Final = 1 << 20


def may_hold(manifests: Entries, files: Entries, shape: Shape) -> Flags:
    """Tell which manifests may hold one of the files; a bound that is not known rules out none."""
    found: Flags = np.zeros(manifests.num_rows, np.bool_)
    if not manifests.num_rows:
        return found
    step = max(1, _BLOCK // manifests.num_rows)
    for start in range(0, files.num_rows, step):
        some = files.slice(start, step)
        pairs: Flags = np.ones((some.num_rows, manifests.num_rows), np.bool_)
        for field_id in _fields(some, manifests, shape):
            pairs &= _meet(some, manifests, field_id)
            if not pairs.any():
                break
        found |= pairs.any(axis=0)
    return found


def _fields(files: Entries, manifests: Entries, shape: Shape) -> Iterator[int]:
    """Yield the fields that both have bounds of, first those by which leaves are clustered."""
    both = set(stats.fields_in(files)) & set(stats.fields_in(manifests))
    sources = (key.source_id for key in shape.sort_order)
    parts = (id for spec_id in shape.specs for id in shape.partition_fields(spec_id))
    for field_id in dict.fromkeys([*parts, *sources, *sorted(both)]):
        if field_id in both:
            yield field_id


def _meet(files: Entries, manifests: Entries, field_id: int) -> Flags:
    """Tell of each file and each manifest whether their ranges of a field may meet."""
    sides = [
        _bounds(table, field_id, stat)
        for table in (files, manifests)
        for stat in ("lower", "upper")
    ]
    if any(side is None for side in sides) or len({side.type for side in sides if side}) > 1:
        return np.ones((files.num_rows, manifests.num_rows), np.bool_)
    known = [~side.is_null().to_numpy(zero_copy_only=False) for side in sides if side]
    ranks = np.split(_ranks(pa.concat_arrays(sides)), np.cumsum([len(each) for each in known])[:-1])
    file_lower, file_upper, lower, upper = ranks
    file_known, manifest_known = known[0] & known[1], known[2] & known[3]
    met: Flags = (file_lower[:, None] <= upper) & (file_upper[:, None] >= lower)
    met |= ~file_known[:, None] | ~manifest_known
    return met


def _bounds(table: Entries, field_id: int, stat: str) -> pa.Array | None:
    name = stats.column(field_id, stat)
    if name not in table.column_names:
        return None
    found = one_chunk(table[name])
    if found.null_count == len(found) or pa.types.is_nested(found.type):
        return None
    if pa.types.is_floating(found.type):
        return pc.add(found, pa.scalar(0, found.type))  # -0.0 is 0.0
    return found


def _ranks(values: pa.Array) -> Ranks:
    """Return numbers that compare as the values do; those of nulls mean nothing."""
    ranks: Ranks = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks
