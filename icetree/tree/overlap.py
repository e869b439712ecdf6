"""How well files are clustered: how many others lie across the range of one, in a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.schema.shape import Shape
from icetree.tree.partitions import partition_codes


def overlap(files: pa.Table, field_id: int, shape: Shape) -> float | None:
    """Return how many files of its partition the range of a file has a part in common with.

    That is on average, and the file itself counts: 1 is as good as can be. Files that only touch do
    not, so values that fill several files do no harm. None where no file tells bounds. `files` have
    the stats of the column and of partitions.
    """
    lower, upper = (f"{field_id}:{bound}" for bound in ("lower", "upper"))
    if lower not in files.column_names or upper not in files.column_names:
        return None
    files = files.filter(pc.and_(pc.is_valid(files[lower]), pc.is_valid(files[upper])))
    if files.num_rows == 0:
        return None
    # Values of any type by their place among all, and partitions one after the other.
    bounds = pa.concat_arrays([*files[lower].chunks, *files[upper].chunks])
    places = pc.rank(bounds, tiebreaker="dense").to_numpy().astype(np.int64)
    [partition] = partition_codes([files], [np.ones(files.num_rows, np.bool_)], shape)
    places += np.tile(partition * (int(places.max()) + 1), 2)
    begin, end = np.split(places, 2)
    begun = np.searchsorted(np.sort(begin), end, side="left")
    ended = np.searchsorted(np.sort(end), begin, side="right")
    # A file of one value is among those that have ended where it begins: each of these is.
    alike = np.sort(begin[begin == end])
    same = np.searchsorted(alike, begin, side="right") - np.searchsorted(alike, begin, side="left")
    return float(np.mean(np.where(begin == end, begun - ended + same + 1, begun - ended)))
