"""Deletes meet files: the vectorised matching against a quadratic model of the rules."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

from icetree.errors import CorruptTable, Unsupported
from icetree.spec.entry import Content, Entries, Entry, to_table
from icetree.spec.expressions import Expression, transform_of
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.spec.shape import Shape
from icetree.spec.stats import FieldStats, column
from icetree.tree import deletes as matching
from icetree.tree.deletes import Pairs, columns_for, data_dvs_of, equality_pairs, position_pairs

ID, P, Q, V = 1, 2, 3, 4
SHAPE = Shape(
    schema=Schema(
        NestedField(ID, "id", LongType()),
        NestedField(P, "p", IntegerType()),
        NestedField(Q, "q", StringType()),
        NestedField(V, "v", DoubleType()),
    ),
    expressions={
        id: Expression(expr_id=id, source_ids=(source,), transform=transform, name=f"e{id}")
        for id, source, transform in (
            (101, ID, "bucket[4]"),
            (102, P, "identity"),
            (103, Q, "truncate[1]"),
            (104, P, "void"),
            (105, V, "identity"),
            (106, P, "zorder"),
        )
    },
    specs={0: (), 1: (102,), 2: (101, 103), 3: (104,), 4: (105,), 5: (106,)},
)
POOL: dict[int, list[Any]] = {
    ID: [None, 1, 2, 3, 900],
    P: [None, 0, 1],
    Q: [None, "aa", "ab", "b", ""],
    V: [None, 0.5, math.nan, 2.0],
}
#: Columns that a spec's partition fixes.
FIXED = {0: (), 1: (P,), 2: (ID, Q), 3: (), 4: (V,)}


@dataclass(frozen=True, kw_only=True)
class File:
    """A data or delete file as the model sees it."""

    name: str
    spec: int
    age: int
    rows: list[dict[int, Any]]
    stats: dict[int, FieldStats]
    ids: tuple[int, ...] = ()
    target: str | None = None
    path_bounds: tuple[str, str] | None = None

    @property
    def partition(self) -> tuple[Any, ...]:
        values = []
        for id in SHAPE.partition_fields(self.spec):
            source = SHAPE.expressions[id].source_ids[0] if id in SHAPE.expressions else id
            value = self.rows[0][source]
            if id in SHAPE.expressions:
                value = transform_of(SHAPE.expressions[id]).transform(SHAPE.types[source])(value)
            values.append("nan" if value != value else value)
        return tuple(values)


def _stats(values: list[Any], floating: bool) -> FieldStats:
    real = [value for value in values if value is not None and value == value]
    return FieldStats(
        lower=min(real, default=None),
        upper=max(real, default=None),
        values=len(values),
        nulls=values.count(None),
        nans=sum(value is not None and value != value for value in values) if floating else None,
    )


@st.composite
def made(draw: st.DrawFn, name: str, *, delete: bool) -> File:
    spec = draw(st.sampled_from(list(FIXED)))
    size = draw(st.integers(1 if delete else 0, 3))
    first = {id: draw(st.sampled_from(pool)) for id, pool in POOL.items()}
    rows = [
        {
            id: first[id] if id in FIXED[spec] else draw(st.sampled_from(pool))
            for id, pool in POOL.items()
        }
        for _ in range(size)
    ]
    ids = draw(st.lists(st.sampled_from(list(POOL)), min_size=1, max_size=2, unique=True))
    stats = {}
    for id in ids if delete else POOL:
        known = _stats([row[id] for row in rows], id == V)
        if id not in SHAPE.partition_fields(spec):
            gone = draw(st.sets(st.sampled_from(["lower", "upper", "values", "nulls", "nans"])))
            known = replace(known, **dict.fromkeys(gone if draw(st.booleans()) else ()))
        stats[id] = known
    for id in SHAPE.partition_fields(spec):
        source = SHAPE.expressions[id].source_ids[0] if id in SHAPE.expressions else id
        apply = (
            transform_of(SHAPE.expressions[id]).transform(SHAPE.types[source])
            if id in SHAPE.expressions
            else lambda value: value
        )
        stats[id] = _stats([apply(row[source]) for row in rows], source == V)
    return File(
        name=name,
        spec=spec,
        age=draw(st.integers(1, 4)),
        rows=rows,
        stats=stats,
        ids=tuple(ids) if delete else (),
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[File], list[File]]:
    files = [draw(made(f"f{at}", delete=False)) for at in range(draw(st.integers(0, 6)))]
    deletes = [draw(made(f"d{at}", delete=True)) for at in range(draw(st.integers(0, 5)))]
    return files, deletes


def _table(files: list[File], content: Content) -> Entries:
    def entry(file: File) -> Entry:
        return Entry(
            content_type=content,
            location=file.name,
            partition_spec_id=file.spec,
            sequence_number=file.age,
            record_count=len(file.rows),
            stats=file.stats,
            equality_ids=file.ids or None,
            referenced_file=file.target,
        )

    table = to_table(map(entry, files), SHAPE)
    if any(file.path_bounds for file in files):
        for at, stat in enumerate(("lower", "upper")):
            bounds = [file.path_bounds and file.path_bounds[at] for file in files]
            name = column(DELETE_FILE_PATH_FIELD, stat)
            table = table.append_column(name, pa.array(bounds, pa.string()))
    return table


def _named(pairs: Pairs) -> set[tuple[int, int]]:
    found = list(zip(pairs.files.tolist(), pairs.deletes.tolist(), strict=True))
    assert found == sorted(set(found))
    return set(found)


def _can_share(one: FieldStats, other: FieldStats, floating: bool) -> bool:
    """Tell from stats alone whether two files may have a value of a field in common."""
    if one.nulls != 0 and other.nulls != 0:
        return True
    if floating and one.nans != 0 and other.nans != 0:
        return True
    for each in (one, other):
        if each.values and each.nulls == each.values:
            return False
        nans = each.nans if floating else 0
        if each.values and None not in (each.nulls, nans) and each.nulls + nans == each.values:
            return False
    apart = (one.upper, other.lower), (other.upper, one.lower)
    return not any(None not in pair and pair[0] < pair[1] for pair in apart)


def _same_partition(file: File, delete: File) -> bool:
    return file.spec == delete.spec and file.partition == delete.partition


def _equality_applies(file: File, delete: File) -> bool:
    if not file.rows or delete.age <= file.age:
        return False
    if delete.spec not in (0, 3) and not _same_partition(file, delete):
        return False
    unknown = FieldStats()
    return all(
        _can_share(file.stats.get(id, unknown), delete.stats.get(id, unknown), id == V)
        for id in delete.ids
    )


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_equality_deletes_apply_just_where_the_rules_say(world: Any) -> None:
    files, deletes = world
    found = equality_pairs(
        _table(files, Content.DATA), _table(deletes, Content.EQUALITY_DELETES), SHAPE
    )
    assert _named(found) == {
        (i, j)
        for i, file in enumerate(files)
        for j, delete in enumerate(deletes)
        if _equality_applies(file, delete)
    }


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_no_equality_delete_is_lost_that_deletes_a_row(world: Any) -> None:
    files, deletes = world
    found = _named(
        equality_pairs(
            _table(files, Content.DATA), _table(deletes, Content.EQUALITY_DELETES), SHAPE
        )
    )

    def key(row: dict[int, Any], ids: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple("nan" if row[id] != row[id] else row[id] for id in ids)

    for i, file in enumerate(files):
        for j, delete in enumerate(deletes):
            gone = {key(row, delete.ids) for row in delete.rows}
            in_reach = delete.spec in (0, 3) or (file.rows and _same_partition(file, delete))
            if in_reach and delete.age > file.age:
                hit = any(key(row, delete.ids) in gone for row in file.rows)
                assert not hit or (i, j) in found


@st.composite
def position_worlds(draw: st.DrawFn) -> tuple[list[File], list[File], list[bool]]:
    files, deletes = draw(worlds())
    origin = draw(st.sampled_from(["s3://t", "s3a://t", "S3://t", ""]))
    paths = sorted(f"{origin}/{file.name}" for file in files) or [f"{origin}/x"]
    bounds = st.tuples(st.sampled_from(paths), st.sampled_from(paths)).map(sorted).map(tuple)
    deletes = [
        replace(
            delete,
            ids=(),
            target=draw(st.sampled_from([None, None, *(file.name for file in files), "gone"])),
            path_bounds=draw(st.none() | bounds),
        )
        for delete in deletes
    ]
    return files, deletes, [draw(st.booleans()) for _ in files]


@settings(max_examples=150, deadline=None)
@given(position_worlds(), st.sampled_from([None, "s3://t", "s3://t/"]))
def test_position_deletes_apply_just_where_the_rules_say(world: Any, where: str | None) -> None:
    files, deletes, has_data_dv = world

    def applies(file: File, delete: File) -> bool:
        if not file.rows or delete.age < file.age:
            return False
        if delete.target is not None:
            return delete.target == file.name
        plain = file.spec in (0, 3) and delete.spec in (0, 3)
        if not plain and not _same_partition(file, delete):
            return False
        lower, upper = ("/" + bound.rpartition("/")[2] for bound in delete.path_bounds or "/~")
        return where is None or lower <= f"/{file.name}" <= upper

    found = position_pairs(
        _table(files, Content.DATA),
        _table(deletes, Content.POSITION_DELETES),
        SHAPE,
        has_data_dv=np.array(has_data_dv, np.bool_),
        table_location=where,
    )
    assert _named(found) == {
        (i, j)
        for i, file in enumerate(files)
        for j, delete in enumerate(deletes)
        if not has_data_dv[i] and applies(file, delete)
    }


def _one(name: str, spec: int = 0, age: int = 1, **more: Any) -> Entry:
    stats = more.pop("stats", {})
    return Entry(
        location=name,
        partition_spec_id=spec,
        sequence_number=age,
        record_count=more.pop("record_count", 5),
        stats=stats,
        **more,
    )


def _delete(name: str, spec: int = 0, age: int = 2, **more: Any) -> Entry:
    return _one(name, spec, age, content_type=Content.EQUALITY_DELETES, equality_ids=(ID,), **more)


def _match(files: list[Entry], deletes: list[Entry]) -> set[tuple[int, int]]:
    return _named(equality_pairs(to_table(files, SHAPE), to_table(deletes, SHAPE), SHAPE))


IN_ZERO = {P: FieldStats(lower=0, upper=0, values=5, nulls=0)}


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {P: FieldStats(lower=0, upper=1)},
        {P: FieldStats(lower=0)},
        {P: FieldStats(values=5, nulls=4)},
        {P: FieldStats(nulls=5)},
    ],
    ids=["no stats", "bounds differ", "one bound", "not all null", "unknown count"],
)
def test_a_file_whose_partition_is_not_told_is_named(stats: dict[int, FieldStats]) -> None:
    files = [_one("good", 1, stats=IN_ZERO), _one("bad", 1, stats=stats)]
    with pytest.raises(CorruptTable, match=r"^bad: .*partition: p must") as caught:
        _match(files, [_delete("d", 1, stats=IN_ZERO)])
    assert caught.value.file == "bad"


def _on_v(name: str, stats: FieldStats, spec: int = 0) -> Entry:
    made = (
        _delete(name, spec, stats={V: stats}) if name == "d" else _one(name, spec, stats={V: stats})
    )
    return replace(made, equality_ids=(V,)) if name == "d" else made


def test_nulls_and_nans_meet_their_like_whatever_the_bounds() -> None:
    low = FieldStats(lower=0.5, upper=0.5, values=5, nulls=0, nans=0)
    high = FieldStats(lower=2.0, upper=2.0, values=5, nulls=0, nans=0)
    assert _match([_on_v("f", low)], [_on_v("d", high)]) == set()
    for stat in ("nulls", "nans"):
        some = [replace(each, **{stat: 1}) for each in (low, high)]
        assert _match([_on_v("f", some[0])], [_on_v("d", some[1])]) == {(0, 0)}
        assert _match([_on_v("f", low)], [_on_v("d", some[1])]) == set()
        unknown = [replace(each, **{stat: None}) for each in (low, high)]
        assert _match([_on_v("f", unknown[0])], [_on_v("d", unknown[1])]) == {(0, 0)}


def test_the_partitions_of_null_and_of_nan_are_two() -> None:
    null = FieldStats(values=5, nulls=5, nans=0)
    nan = FieldStats(values=5, nulls=0, nans=5)
    plain = _delete("d", 4, stats={V: nan})
    files = [_on_v("null", null, 4), _on_v("nan", nan, 4)]
    assert _match(files, [plain]) == {(1, 0)}


def test_a_delete_whose_partition_is_not_told_is_named() -> None:
    with pytest.raises(CorruptTable, match=r"^d: "):
        _match([_one("f", 1, stats=IN_ZERO)], [_delete("d", 1)])


def test_a_partition_is_asked_for_only_where_a_delete_could_apply() -> None:
    younger = _one("younger", 1, age=2)
    other_spec = _one("other spec", 2)
    empty = _one("empty", 1, record_count=0)
    assert _match([younger, other_spec, empty], [_delete("d", 1, stats=IN_ZERO)]) == set()
    assert _match([_one("f", 1)], [_delete("global", 0)]) == {(0, 0)}


def test_a_partition_by_an_unknown_transform_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="e106"):
        _match([_one("f", 5)], [_delete("d", 5)])


def test_a_file_of_a_spec_that_is_not_in_the_metadata_is_named() -> None:
    files, deletes = to_table([_one("f")], SHAPE), to_table([_delete("d", 77)], SHAPE)
    assert columns_for(deletes, deletes, SHAPE)
    with pytest.raises(CorruptTable, match=r"^d: partition spec 77"):
        equality_pairs(files, deletes, SHAPE)
    with pytest.raises(CorruptTable, match=r"^d: partition spec 77"):
        position_pairs(files, deletes, SHAPE, has_data_dv=np.zeros(1, np.bool_))


def test_an_entry_without_age_is_named() -> None:
    with pytest.raises(CorruptTable, match=r"^f: .*sequence number"):
        _match([replace(_one("f"), sequence_number=None)], [_delete("d")])


def test_each_file_finds_its_data_dv() -> None:
    files = to_table([_one("a"), _one("b"), _one("c", age=3)], SHAPE)

    def data_dv(target: str, age: int) -> Entry:
        return Entry(
            content_type=Content.POSITION_DELETES,
            file_format="puffin",
            location="v",
            dv_offset=4,
            dv_size_in_bytes=40,
            record_count=7,
            referenced_file=target,
            sequence_number=age,
        )

    found = data_dvs_of(files, to_table([data_dv("c", 3), data_dv("a", 2)], SHAPE), root_file="r")
    assert found["dv_location"].to_pylist() == ["v", None, "v"]
    assert found["dv_cardinality"].to_pylist() == [7, None, 7]
    with pytest.raises(CorruptTable, match="r: data file a has two deletion vectors"):
        data_dvs_of(files, to_table([data_dv("a", 2), data_dv("a", 3)], SHAPE), root_file="r")
    with pytest.raises(CorruptTable, match="data file c is older than it"):
        data_dvs_of(files, to_table([data_dv("c", 2)], SHAPE), root_file="r")


def test_matching_names_the_columns_it_needs() -> None:
    equality = to_table([_delete("d", 2)], SHAPE)
    positions = to_table([_one("p", 1, content_type=Content.POSITION_DELETES)], SHAPE)
    needed = columns_for(equality, positions, SHAPE)
    assert {column(id, "lower") for id in (ID, P, 101, 103)} <= needed
    assert column(V, "lower") not in needed
    assert columns_for(equality.slice(0, 0), positions.slice(0, 0), SHAPE) == frozenset()


def _many(size: int, ages: range) -> tuple[Entries, Entries]:
    """Return files of ascending id ranges, and deletes of one id each in all partitions of p."""
    part = np.arange(size) % 10

    def table(ids: np.ndarray, p: np.ndarray, age: np.ndarray, names: list[str]) -> Entries:
        base = to_table([_one("x")], SHAPE).take(pa.array(np.zeros(len(ids), np.int64)))
        base = base.set_column(base.schema.get_field_index("location"), "location", pa.array(names))
        spec = pa.array(np.full(len(ids), 1, np.int32))
        at = base.schema.get_field_index
        base = base.set_column(at("partition_spec_id"), "partition_spec_id", spec)
        base = base.set_column(at("sequence_number"), "sequence_number", pa.array(age))
        for id, values in ((ID, ids), (P, p.astype(np.int32))):
            base = base.append_column(f"{id}:lower", pa.array(values))
            base = base.append_column(f"{id}:upper", pa.array(values))
            base = base.append_column(f"{id}:nulls", pa.array(np.zeros(len(ids), np.int64)))
        return base

    files = table(np.arange(size), part, np.ones(size, np.int64), [f"f{n}" for n in range(size)])
    few = np.arange(len(ages))
    deletes = table(few, few % 10, np.array(ages, np.int64), [f"d{n}" for n in few])
    ids = pa.array([[ID]] * len(ages), pa.list_(pa.int32()))
    at = deletes.schema.get_field_index("equality_ids")
    return files, deletes.set_column(at, "equality_ids", ids)


def test_blocks_of_any_size_give_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    files, deletes = _many(60, range(2, 52))
    whole = _named(equality_pairs(files, deletes, SHAPE))
    assert whole == {(n, n) for n in range(50)}
    monkeypatch.setattr(matching, "_BLOCK", 7)
    assert _named(equality_pairs(files, deletes, SHAPE)) == whole


def test_matching_many_files_loops_over_none() -> None:
    files, deletes = _many(100_000, range(2, 102))
    began = time.process_time()
    assert len(equality_pairs(files, deletes, SHAPE).files) == 100
    assert time.process_time() - began < 2
