"""Manifests in bytes: what goes in comes out, whatever it is and whoever reads it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType

from icetree.codec import manifest
from icetree.codec.inherit import Inherited
from icetree.codec.manifest import stored as codec
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.spec import stats
from icetree.spec.entry import (
    BASE_COLUMNS,
    DATA,
    DELETE,
    POSITION,
    ROOT,
    Content,
    Entries,
    Entry,
    Status,
    concat,
    to_table,
)
from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD
from icetree.spec.shape import Shape
from icetree.spec.stats import FieldStats
from icetree.spec.types import is_variable_length
from tests.effort import law
from tests.laws.kinds import GEO_KINDS, KINDS, Kind
from tests.laws.same import require_same

pytestmark = pytest.mark.law

ALL = KINDS | GEO_KINDS
FIELD_OF = {name: id for id, name in enumerate(ALL, start=1)}
EVERY_TYPE = Shape(
    schema=Schema(*(NestedField(FIELD_OF[name], name, kind.type) for name, kind in ALL.items()))
)
SIZES = (0, 1, 127, 128, 129, 9000)
LEAF = Inherited(snapshot_id=7, sequence_number=8, first_row_id=1000)


@pytest.fixture
def leaves_worth_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the whole footer looked at when a leaf is met for the first time."""
    monkeypatch.setattr(codec, "WORTH_IT", 1)


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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [ROOT, DATA, DELETE])
def test_what_is_encoded_is_decoded(kind: str, size: int) -> None:
    @(law(2, usual=1) if size > 1000 else law(20, usual=12))
    @given(manifests(kind, size))
    def holds(entries: Entries) -> None:
        stored = manifest.encode(entries, kind, EVERY_TYPE)
        found = manifest.decode(stored, kind, EVERY_TYPE, file="m")
        assert found.num_rows == size
        assert found.column_names[: len(BASE_COLUMNS)] == list(BASE_COLUMNS)
        require_same(found, entries)

    holds()


@pytest.mark.parametrize("size", [1, 200])
@given(data=st.data())
@law(25)
def test_reading_fewer_columns_reads_the_same_values(data: st.DataObject, size: int) -> None:
    entries = data.draw(manifests(DATA, size))
    stored = manifest.encode(entries, DATA, EVERY_TYPE)
    whole = manifest.decode(stored, DATA, EVERY_TYPE, file="m", tracking=LEAF)
    wanted = data.draw(st.sets(st.sampled_from(whole.column_names)))
    narrow = manifest.decode(
        stored, DATA, EVERY_TYPE, file="m", tracking=LEAF, columns=wanted | {POSITION}
    )
    assert set(narrow.column_names) == wanted | {POSITION}
    require_same(narrow, whole.select([*(wanted - {POSITION}), POSITION]))


def test_a_column_of_nulls_is_not_stored_and_reads_as_nulls() -> None:
    plain = Entry(
        location="a", file_size_in_bytes=1, snapshot_id=1, stats={3: FieldStats(values=1)}
    )
    stored = manifest.encode(to_table([plain], EVERY_TYPE), DATA, EVERY_TYPE)
    names = set(pq.ParquetFile(pa.BufferReader(stored)).schema_arrow.names)
    assert names == {
        *("content_type", "location", "file_format", "tracking_info", "partition_spec_id"),
        *("record_count", "file_size_in_bytes", "content_stats"),
    }
    found = manifest.decode(stored, DATA, EVERY_TYPE, file="m")
    assert found["sort_order_id"].null_count == 1
    assert [name for name in found.column_names if ":" in name] == ["3:values"]


def long_leaf(groups: int, shape: Shape) -> Entries:
    """Return a leaf of that many row groups, the last one short; ids ascend, some rows DELETED."""
    size = (groups - 1) * LEAF_ROW_GROUP + 100
    ordinals = np.arange(size)
    one = to_table([Entry(location="x", file_size_in_bytes=1)], shape)
    rows = one.take(pa.array(np.zeros(size, dtype=np.int64)))
    columns = {
        "location": pa.array(ordinals).cast(pa.string()),
        "record_count": pa.array(ordinals % 5),
        "status": pa.array(np.where(ordinals % 7 == 3, 2, 1), pa.int32()),
        "sequence_number": pa.array(np.where(ordinals % 7 == 3, 2, 0), mask=ordinals % 7 != 3),
        "file_sequence_number": pa.array(np.where(ordinals % 7 == 3, 2, 0), mask=ordinals % 7 != 3),
        "first_row_id": pa.array(ordinals + 5_000_000, mask=ordinals % 11 != 0),
    }
    for name, column in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, column)
    bounds = {"1:lower": pa.array(ordinals), "1:upper": pa.array(ordinals + 1)}
    for name, column in bounds.items():
        rows = rows.append_column(name, column)
    return rows


ONE_LONG = Shape(schema=Schema(NestedField(1, "id", LongType())))


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3, 5])
def test_skipped_row_groups_lose_nothing_that_was_to_be_kept(groups: int, narrow: bool) -> None:
    entries = long_leaf(groups, ONE_LONG)
    size = entries.num_rows
    stored = manifest.encode(entries, DATA, ONE_LONG)
    whole = manifest.decode(stored, DATA, ONE_LONG, file="m", tracking=LEAF)
    columns = set(whole.column_names) - {"key_metadata"} if narrow else None
    fewest = size

    @law(25)
    @given(st.integers(0, size), st.integers(0, size // 3))
    def holds(start: int, length: int) -> None:
        nonlocal fewest

        def overlaps(bounds: pa.Table) -> pa.BooleanArray:
            hit = pc.and_(
                pc.less_equal(bounds["1:lower"], start + length),
                pc.greater_equal(bounds["1:upper"], start),
            )
            return pc.fill_null(hit, True).combine_chunks()

        found = manifest.decode(
            stored, DATA, ONE_LONG, file="m", tracking=LEAF, keep=overlaps, columns=columns
        )
        positions = found[POSITION].combine_chunks()
        wanted = np.flatnonzero(overlaps(whole).to_numpy(zero_copy_only=False))
        assert np.isin(wanted, positions.to_numpy()).all()
        require_same(found, whole.select(found.column_names).take(positions))
        fewest = min(fewest, len(positions))

    holds()
    assert fewest < size or groups == 1


def test_row_ids_count_live_files_without_one_in_order() -> None:
    entries = long_leaf(2, ONE_LONG)
    stored = manifest.encode(entries, DATA, ONE_LONG)
    found = manifest.decode(stored, DATA, ONE_LONG, file="m", tracking=LEAF)
    columns = ("status", "first_row_id", "record_count")
    following, expected = 1000, []
    for status, own, rows in zip(*(entries[n].to_pylist() for n in columns), strict=True):
        takes = own is None and status != Status.DELETED
        expected.append(following if takes else own)
        following += rows if takes else 0
    assert found["first_row_id"].to_pylist() == expected


def test_columns_are_found_by_id_whatever_they_are_called_by_now() -> None:
    renamed = Shape(
        schema=Schema(
            *(
                NestedField(id, f"{name}, née {id}.", ALL[name].type)
                for name, id in FIELD_OF.items()
            )
        )
    )

    @law(15)
    @given(manifests(DATA, 3))
    def holds(entries: Entries) -> None:
        stored = manifest.encode(entries, DATA, EVERY_TYPE)
        require_same(manifest.decode(stored, DATA, renamed, file="m"), entries)
        again = manifest.encode(entries, DATA, renamed)
        require_same(manifest.decode(again, DATA, EVERY_TYPE, file="m"), entries)

    holds()


def two_of_a_name() -> Shape:
    """Return a shape where dropped columns share full names with a new and with a nested one."""
    nested = StructType(NestedField(5, "b", LongType()))
    return Shape(
        schema=Schema(NestedField(4, "a", nested), NestedField(6, "c", StringType())),
        former={
            1: NestedField(1, "c", LongType()),
            2: NestedField(2, "a.b", LongType()),
            3: NestedField(3, "a.b", StringType()),
        },
    )


@pytest.mark.parametrize("size", [2, 200])
def test_fields_that_share_a_name_keep_their_own_stats(size: int) -> None:
    shape = two_of_a_name()
    bounds = {1: (1, 2), 2: (10, 20), 3: ("a", "b"), 5: (100, 200), 6: ("x", "y")}
    told = {id: FieldStats(lower=low, upper=up, values=id) for id, (low, up) in bounds.items()}
    files = [Entry(location=str(i), file_size_in_bytes=1, stats=told) for i in range(size)]
    entries = to_table(files, shape)
    stored = manifest.encode(entries, DATA, shape)
    require_same(manifest.decode(stored, DATA, shape, file="m"), entries)
    for id in bounds:
        names = {stats.column(id, stat) for stat in ("lower", "upper")}
        narrow = manifest.decode(stored, DATA, shape, file="m", columns=names)
        require_same(narrow, entries.select(sorted(names)))


@pytest.mark.usefixtures("leaves_worth_a_look")
def test_row_groups_tell_the_bounds_of_the_right_one_of_two_fields_of_a_name() -> None:
    shape = two_of_a_name()
    one = long_leaf(2, shape)
    entries = one.append_column("6:lower", pa.repeat("z", one.num_rows)).append_column(
        "2:lower", pc.negate(one["1:lower"])
    )
    seen: list[pa.Table] = []

    def keep(bounds: pa.Table) -> pa.BooleanArray:
        seen.append(bounds)
        return pa.array([True] * bounds.num_rows)

    stored = manifest.encode(entries, DATA, shape)
    manifest.decode(stored, DATA, shape, file="m", tracking=LEAF, keep=keep)
    first, last = LEAF_ROW_GROUP, one.num_rows - 1
    assert seen[0].select(["1:lower", "2:lower", "6:lower"]).to_pylist() == [
        {"1:lower": 0, "2:lower": 1 - first, "6:lower": "z"},
        {"1:lower": first, "2:lower": -last, "6:lower": "z"},
    ]


@pytest.mark.usefixtures("leaves_worth_a_look")
def test_row_groups_tell_bounds_of_every_type() -> None:
    @law(3)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        parts = []
        for _ in range(2):
            told = {
                FIELD_OF[name]: FieldStats(lower=(value := data.draw(kind.values)), upper=value)
                for name, kind in KINDS.items()
            }
            one = to_table([Entry(location="x", file_size_in_bytes=1, stats=told)], EVERY_TYPE)
            parts.append(one.take(pa.array(np.zeros(LEAF_ROW_GROUP, dtype=np.int64))))
        entries = concat(parts)
        names = pa.array(np.arange(entries.num_rows)).cast(pa.string())
        entries = entries.set_column(entries.column_names.index("location"), "location", names)
        seen: list[pa.Table] = []

        def keep(bounds: pa.Table) -> pa.BooleanArray:
            seen.append(bounds)
            return pa.array([True] * bounds.num_rows)

        stored = manifest.encode(entries, DATA, EVERY_TYPE)
        manifest.decode(stored, DATA, EVERY_TYPE, file="m", tracking=LEAF, keep=keep)
        expected = concat([part.slice(0, 1) for part in parts])
        for name in KINDS:
            for stat in ("lower", "upper"):
                column = stats.column(FIELD_OF[name], stat)
                if column in seen[0].column_names:
                    # A row group may not know a bound, but what it tells must be true; a zero
                    # may have either sign.
                    told = seen[0][column].combine_chunks()
                    right = pc.equal(told, expected[column].combine_chunks())
                    assert False not in right.to_pylist(), name
        assert {stats.column(FIELD_OF[name], "lower") for name in KINDS} <= set(
            seen[0].column_names
        )

    holds()


def test_stats_of_row_lineage_are_kept() -> None:
    told = {
        ROW_ID_FIELD: FieldStats(lower=5, upper=9, values=3),
        LAST_UPDATED_SEQUENCE_NUMBER_FIELD: FieldStats(lower=1, upper=2),
    }
    file = Entry(location="a", file_size_in_bytes=1, stats=told)
    entries = to_table([file], ONE_LONG)
    stored = manifest.encode(entries, DATA, ONE_LONG)
    require_same(manifest.decode(stored, DATA, ONE_LONG, file="m"), entries)
