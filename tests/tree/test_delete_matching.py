"""Deletes meet files: the vectorised matching against a quadratic model of the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icetree.spec.entry.entry import Content, Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats, column
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.tree.plan.deletes import equality_pairs, position_pairs
from tests.effort import law
from tests.tree.delete_tables import SHAPE, File, V, _named, made


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


@law(50)
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


@law(40)
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


@law(50)
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
