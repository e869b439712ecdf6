"""The stats of deletes that a filter may skip them by: of some, fewer than they carry."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, has_format, is_content
from icetree.spec.entry.equality import Flags, loose_stats, without_stats
from icetree.spec.schema.shape import Shape


def judged(entries: Entries, shape: Shape) -> Entries:
    """Return entries with the stats by which a filter may skip them, others unknown.

    Of an equality delete these are the stats of what it compares and of its partition. A delete
    manifest may hold equality deletes, and what it tells is made of theirs, sound or not: only
    fields that every spec is partitioned by are sound in all of them. One that is affiliated with
    a data manifest holds data DVs alone, and one of v2 tells of its own spec alone.
    """
    return without_stats(entries, _unsound(entries, shape))


def judged_groups(groups: pa.Table, shape: Shape) -> pa.Table:
    """Return what row groups of a delete manifest tell, as far as a filter may skip them by it."""
    sound = _in_every_spec(shape)
    kept = [
        name
        for name in groups.column_names
        if (parsed := stats.parse_column(name)) is None or parsed[0] in sound
    ]
    return groups.select(kept)


def _unsound(entries: Entries, shape: Shape) -> Iterator[tuple[int, Flags]]:
    mixed = pc.and_(
        is_content(entries, Content.DELETE_MANIFEST),
        pc.and_(pc.is_null(entries["referenced_file"]), has_format(entries, "parquet")),
    ).to_numpy()
    hidden = dict(loose_stats(entries, shape))
    if mixed.any():
        sound = _in_every_spec(shape)
        nowhere: Flags = np.zeros(entries.num_rows, np.bool_)
        for field_id in stats.fields_in(entries):
            if field_id not in sound:
                hidden[field_id] = hidden.get(field_id, nowhere) | mixed
    yield from hidden.items()


def _in_every_spec(shape: Shape) -> set[int]:
    fields = [set(shape.partition_fields(spec_id)) for spec_id in shape.specs]
    return set.intersection(*fields) if fields else set()
