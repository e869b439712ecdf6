"""Manifests of any entries, with stats of columns of every type, as hypothesis draws them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    DATA,
    DELETE,
    ROOT,
    Content,
    Entries,
    Entry,
    Status,
    to_table,
)
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.types import is_variable_length
from tests.laws.kinds import Kind
from tests.laws.leaves import ALL, EVERY_TYPE, FIELD_OF


@st.composite
def field_stats(draw: st.DrawFn, kind: Kind) -> FieldStats:
    """Draw stats of one field, any of them unknown."""
    lower, upper = draw(kind.values), draw(kind.values)
    if isinstance(lower, dict):
        swaps = [
            a
            for a in lower
            if lower[a] is not None and upper[a] is not None and lower[a] > upper[a]
        ]
        lower, upper = lower | {a: upper[a] for a in swaps}, upper | {a: lower[a] for a in swaps}
    elif kind.order(lower) > kind.order(upper):
        lower, upper = upper, lower
    values = draw(st.integers(0, 1 << 40))
    whole = FieldStats(
        lower=lower,
        upper=upper,
        tight=draw(st.booleans()),
        values=values,
        nulls=draw(st.integers(0, values)),
        nans=draw(st.integers(0, values)) if kind.is_float else None,
        avg_size=3 if is_variable_length(kind.type) else None,
        max_size=9 if is_variable_length(kind.type) else None,
    )
    hidden = draw(st.sets(st.sampled_from(stats.STATS), max_size=3))
    return replace(whole, **dict.fromkeys(hidden))


_OFFSETS = st.none() | st.sets(st.integers(0, 1 << 40), max_size=3).map(sorted)


_SMALL = st.integers(0, 1 << 40)


@st.composite
def entries_of(draw: st.DrawFn, content: Content, fields: Collection[str]) -> Entry:
    """Draw an entry of any status with random nulls; its location is not unique yet."""
    status = draw(st.sampled_from(Status))
    is_new = status is Status.ADDED and content in (0, 1, 2) and draw(st.booleans())
    base = Entry(
        content_type=int(content),
        location="x",
        file_format=draw(st.sampled_from(["parquet", "avro", "orc"])),
        status=int(status),
        snapshot_id=draw(_SMALL),
        sequence_number=None if is_new else 5,
        file_sequence_number=None if is_new else draw(st.just(5)),
        partition_spec_id=draw(st.integers(0, 9)),
        record_count=draw(st.integers(0, 1000)),
        file_size_in_bytes=draw(_SMALL),
        key_metadata=draw(st.none() | st.binary(max_size=4)),
        split_offsets=draw(_OFFSETS),
        stats={FIELD_OF[name]: draw(field_stats(ALL[name])) for name in fields},
    )
    match content:
        case Content.DATA:
            numbers = draw(st.none() | _SMALL)
            return replace(base, sort_order_id=draw(st.none() | st.just(1)), first_row_id=numbers)
        case Content.POSITION_DELETES:
            return replace(
                base, file_format="puffin", referenced_file="d", dv_offset=4, dv_size_in_bytes=40
            )
        case Content.EQUALITY_DELETES:
            return replace(
                base, equality_ids=draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
            )
        case Content.MANIFEST_DV:
            return replace(
                base,
                file_format="puffin",
                referenced_file="m",
                **draw(
                    st.sampled_from(
                        [
                            {
                                "location": None,
                                "file_size_in_bytes": None,
                                "dv_inline_content": b"b",
                            },
                            {"dv_offset": 4, "dv_size_in_bytes": 9},
                        ]
                    )
                ),
                dv_added_positions=b"a" if status is Status.ADDED else None,
            )
        case _:
            counts = ("added", "existing", "deleted")
            return replace(
                base,
                referenced_file=draw(st.none() | st.just("o")) if content == 4 else None,
                first_row_id=draw(st.none() | _SMALL) if content == 3 else None,
                min_sequence_number=draw(st.none() | st.just(1)),
                **{f"{each}_files_count": draw(st.integers(0, 99)) for each in counts},
                **{f"{each}_rows_count": draw(st.none() | _SMALL) for each in counts},
            )


CONTENTS = {
    ROOT: tuple(Content),
    DATA: (Content.DATA,),
    DELETE: (Content.POSITION_DELETES, Content.EQUALITY_DELETES),
}


@st.composite
def manifests(draw: st.DrawFn, kind: str, size: int) -> Entries:
    """Draw a manifest: a few random entries, over and over, each under names of its own."""
    fields = draw(st.lists(st.sampled_from(list(ALL)), unique=True, max_size=5))
    few = st.sampled_from(CONTENTS[kind]).flatmap(lambda content: entries_of(content, fields))
    pool = draw(st.lists(few, min_size=1, max_size=6))
    if kind == ROOT:
        pool = [replace(e, sequence_number=5, file_sequence_number=5) for e in pool]
    rows = to_table(pool, EVERY_TYPE)
    rows = rows.take(pa.array(np.arange(size) % len(pool)))
    ordinals = pa.array(np.arange(size)).cast(pa.string())
    for name in ("location", "referenced_file"):
        unique = pc.binary_join_element_wise(rows[name], ordinals, "-")
        rows = rows.set_column(rows.column_names.index(name), name, unique)
    return rows
