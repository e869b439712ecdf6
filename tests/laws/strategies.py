"""Random tables, policies and histories.

An operation speaks of live files by ordinals, so that it means something whatever table it
meets, and a history stays valid while Hypothesis shrinks it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, fields

from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from icetree.spec.entry.entry import Content, Entry
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape, SortKey
from icetree.tree.changes import Intent
from icetree.tree.policy import Policy

ID, CATEGORY, AT = 1, 2, 3
BY_CATEGORY, BY_BUCKET, BY_DAY = 101, 102, 103

PLAIN = Shape(schema=Schema(NestedField(ID, "id", LongType(), required=True)))

PARTITIONED = Shape(
    schema=Schema(
        NestedField(ID, "id", LongType(), required=True),
        NestedField(CATEGORY, "category", StringType()),
        NestedField(AT, "at", TimestampType()),
    ),
    expressions={
        id: Expression(expr_id=id, source_ids=(source,), transform=transform, name=name)
        for id, source, transform, name in (
            (BY_CATEGORY, CATEGORY, "identity", "category"),
            (BY_BUCKET, ID, "bucket[4]", "id_bucket"),
            (BY_DAY, AT, "day", "at_day"),
        )
    },
    specs={0: (), 1: (BY_CATEGORY,), 2: (BY_BUCKET, BY_DAY), 3: (BY_DAY,)},
    default_spec_id=1,
    sort_order=(SortKey(source_id=ID, descending=True),),
    sort_order_id=1,
)

SHAPES = (PLAIN, PARTITIONED)

_PARTITION_VALUES: dict[int, Sequence[object]] = {
    CATEGORY: ("a", "b", "", None),
    BY_BUCKET: (0, 1, 3, None),
    BY_DAY: (dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), None),
}


def data_file(name: str, shape: Shape, salt: int, *, age: int | None = None) -> Entry:
    """Return a new data file; `salt` decides on its partition, its size and its stats."""
    spec_id = salt % len(shape.specs)
    # Without rows a file does not tell that it is in the null partition.
    rows = salt % 5 or len(shape.specs[spec_id])
    return Entry(
        location=name,
        record_count=rows,
        file_size_in_bytes=100 + salt,
        partition_spec_id=spec_id,
        sort_order_id=shape.sort_order_id if salt % 2 else None,
        sequence_number=age,
        split_offsets=(4, 4 + rows) if rows else None,
        key_metadata=b"key" if salt % 7 == 0 else None,
        stats=_partition_stats(shape, spec_id, salt, rows) | _id_stats(salt, rows),
    )


def _id_stats(salt: int, rows: int) -> dict[int, FieldStats]:
    if salt % 11 == 0:
        return {}
    if rows == 0:
        return {ID: FieldStats(values=0, nulls=0)}
    return {
        ID: FieldStats(lower=-salt, upper=salt, tight=salt % 3 == 0 or None, values=rows, nulls=0)
    }


def _partition_stats(shape: Shape, spec_id: int, salt: int, rows: int) -> dict[int, FieldStats]:
    found = {}
    for i, field_id in enumerate(shape.partition_fields(spec_id)):
        value = _PARTITION_VALUES[field_id][salt // (3 + i) % 4]
        nulls = rows if value is None else 0
        found[field_id] = FieldStats(lower=value, upper=value, values=rows, nulls=nulls)
    return found


def vector(of: Entry, puffin: str, ordinal: int, shape: Shape) -> Entry:
    """Return a new data DV; it carries the partition's stats of its data file."""
    fields = shape.partition_fields(of.partition_spec_id)
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=puffin,
        file_format="puffin",
        referenced_file=of.location,
        dv_offset=4 + 10 * ordinal,
        dv_size_in_bytes=10,
        record_count=min(of.record_count, 1 + ordinal),
        file_size_in_bytes=500,
        partition_spec_id=of.partition_spec_id,
        stats={id: of.stats[id] for id in fields if id in of.stats},
    )


def equality_delete(name: str, salt: int) -> Entry:
    """Return a new, unpartitioned equality delete file over the first column."""
    return Entry(
        content_type=Content.EQUALITY_DELETES,
        location=name,
        record_count=1 + salt % 3,
        file_size_in_bytes=50 + salt,
        equality_ids=(ID,),
        stats={ID: FieldStats(lower=salt, upper=salt, values=1 + salt % 3, nulls=0)}
        if salt % 2
        else {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """The operations of one commit, whatever is live then; numbers pick from the live files."""

    intent: Intent
    add: int = 0
    #: Locations that were removed earlier and now come back as new files.
    add_again: int = 0
    remove: tuple[int, ...] = ()
    #: Every so-manieth data file goes as well; 0 for none.
    sweep: int = 0
    #: Data files that get a data DV, or another one in place of theirs.
    vectors: tuple[int, ...] = ()
    #: As well, this many of the files just added.
    vectors_of_new: int = 0
    remove_vectors: tuple[int, ...] = ()
    equality: int = 0
    remove_equality: tuple[int, ...] = ()
    #: A rewrite keeps the age of the data.
    keeps_age: bool = False
    #: How removed files are named, one of `HINTS`.
    hint: str = "none"
    #: Snapshots ago, for stale hints.
    back: int = 1
    policy: int = 0
    salt: int = 0

    def __repr__(self) -> str:
        """Tell only what differs from an operation that does nothing."""
        told = (
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)[1:]
            if f.default != getattr(self, f.name)
        )
        return f"Op({', '.join((f'intent=Intent.{self.intent.name}', *told))})"


#: Nothing, leaf and position as they are now, as they were some snapshots ago, as they are now
#: but without counts, or a mix of the first three.
HINTS = ("none", "right", "stale", "bare", "mixed")


def _picks(most: int, least: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 30), min_size=least, max_size=most).map(tuple)


def _op(intent: Intent, **more: st.SearchStrategy[object]) -> st.SearchStrategy[Op]:
    return st.builds(
        Op,
        intent=st.just(intent),
        policy=st.integers(0, 2),
        salt=st.integers(0, 100),
        **more,
    )


_HINTED: dict[str, st.SearchStrategy[object]] = {
    "hint": st.sampled_from(HINTS),
    "back": st.integers(1, 9),
}

#: A little of everything.
_DELTA = _op(
    Intent.ROW_DELTA,
    add=st.integers(0, 2),
    remove=_picks(2),
    vectors=_picks(3, 1),
    remove_vectors=_picks(2, 1),
    equality=st.integers(0, 2),
    remove_equality=_picks(2),
    **_HINTED,
)

OPS: st.SearchStrategy[Op] = st.one_of(
    _op(Intent.APPEND),
    _op(Intent.APPEND, add=st.integers(1, 3), add_again=st.integers(0, 2)),
    _op(Intent.APPEND, add=st.integers(4, 7), equality=st.integers(0, 2), vectors=_picks(2)),
    _op(
        Intent.DELETE_FILES,
        remove=_picks(4, 1),
        remove_vectors=_picks(2, 1),
        remove_equality=_picks(3),
        **_HINTED,
    ),
    _op(
        Intent.DELETE_FILES,
        sweep=st.sampled_from([3, 2, 4, 1]),
        remove_vectors=_picks(1),
        **_HINTED,
    ),
    _op(
        Intent.OVERWRITE_FILES,
        add=st.integers(1, 5),
        add_again=st.integers(0, 2),
        remove=_picks(6, 1),
        **_HINTED,
    ),
    # What takes several commits to come about needs its parts to be frequent.
    *(_DELTA for _ in range(3)),
    _op(Intent.ROW_DELTA, vectors=_picks(8, 1), equality=st.integers(0, 6)),
    _op(
        Intent.ROW_DELTA,
        add=st.integers(0, 4),
        vectors=_picks(3),
        vectors_of_new=st.integers(0, 2),
        remove=_picks(2),
        remove_vectors=_picks(2),
        equality=st.integers(0, 2),
        remove_equality=_picks(4),
        **_HINTED,
    ),
    _op(
        Intent.REWRITE,
        add=st.integers(0, 3),
        remove=_picks(3),
        sweep=st.sampled_from([0, 3, 2]),
        vectors=_picks(2),
        keeps_age=st.just(True),
        **_HINTED,
    ),
)

POLICIES: st.SearchStrategy[Policy] = st.builds(
    Policy,
    root_target_bytes=st.sampled_from([1 << 20, 0, 5000]),
    root_max_data_entries=st.integers(0, 5),
    # Deletes are affiliated when they are flushed, not when so many come that they never were
    # in the root: few thresholds let that happen often.
    root_max_delete_entries=st.sampled_from([2, 3, 1, 0, 5]),
    leaf_max_entries=st.sampled_from([8, 6, 5, 4, 3, 2]),
    inline_max_bytes=st.sampled_from([1 << 16, 0, 19]),
    compact_max_entries=st.sampled_from([1000, 1000, 6, 0]),
    compact_min_leaves=st.integers(0, 4),
    compact_removed_percent=st.sampled_from([10, 0, 60, 100]),
    affinity_min_entries=st.integers(1, 3),
    affinity_max_leaves=st.sampled_from([100, 100, 100, 2, 0]),
)

#: Everything stays in the root, nothing is tidied up.
LAZY = Policy(
    root_target_bytes=1 << 30,
    root_max_data_entries=1 << 30,
    root_max_delete_entries=1 << 30,
    compact_max_entries=0,
)

#: Everything moves at once, everything worn or small is rewritten.
EAGER = Policy(
    root_target_bytes=0,
    root_max_data_entries=0,
    root_max_delete_entries=0,
    leaf_max_entries=4,
    inline_max_bytes=0,
    compact_max_entries=1 << 30,
    compact_min_leaves=0,
    compact_removed_percent=0,
    affinity_min_entries=1,
)


def histories(least: int, most: int) -> st.SearchStrategy[list[Op]]:
    """Return sequences of operations, the first of which gives the others something to do."""
    many = Op(intent=Intent.APPEND, add=8)
    return st.lists(OPS, min_size=least - 1, max_size=most - 1).map(lambda ops: [many, *ops])


def policies() -> st.SearchStrategy[list[Policy]]:
    """Return the policies that the commits of one table take turns with."""
    return st.lists(POLICIES, min_size=1, max_size=3)
