"""Deletes and files that are hard to match: told one by one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icetree.errors import CorruptTable
from icetree.spec.entry.entry import Content, Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats, column
from icetree.tree.plan import deletes as matching
from icetree.tree.plan.deletes import columns_for, data_dvs_of, equality_pairs, position_pairs
from tests.tree.delete_tables import ID, SHAPE, P, V, _named


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


def test_values_of_an_unknown_transform_tell_partitions_apart() -> None:
    red, blue = (
        {106: FieldStats(lower=each, upper=each, values=1, nulls=0)} for each in ("red", "blue")
    )
    files = [_one("red", 5, stats=red), _one("blue", 5, stats=blue)]
    assert _match(files, [_delete("d", 5, stats=blue)]) == {(1, 0)}
    with pytest.raises(CorruptTable, match="do not tell its partition"):
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
