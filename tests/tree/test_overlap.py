"""Overlap of files, beside a model that compares each with each."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from icetree.spec.schema.shape import Shape
from icetree.tree.overlap import overlap
from tests.table.lake import new_table

File = tuple[str | None, int, int]


def _shape() -> Shape:
    return new_table(partition_by=["country"]).metadata.shape()


def _files(files: list[File], shape: Shape) -> pa.Table:
    [id] = shape.partition_fields(0)
    spec = pa.array([0] * len(files), pa.int32())
    country, lower, upper = (pa.array([each[at] for each in files]) for at in range(3))
    nulls = pa.array([10 if each[0] is None else 0 for each in files], pa.int64())
    values = pa.array([10] * len(files), pa.int64())
    return pa.table(
        {
            "location": pa.array([f"f{at}" for at in range(len(files))]),
            "partition_spec_id": spec,
            "record_count": values,
            f"{id}:values": values,
            f"{id}:nulls": nulls,
            f"{id}:lower": country.cast(pa.string()),
            f"{id}:upper": country.cast(pa.string()),
            f"{id}:tight": pa.array([True] * len(files)),
            "1:lower": lower,
            "1:upper": upper,
        }
    )


def _model(files: list[File]) -> float:
    total = 0
    for at, (country, low, high) in enumerate(files):
        total += 1
        for other, (place, begin, end) in enumerate(files):
            if other == at or place != country:
                continue
            within = begin < low < end if low == high else begin < high and low < end
            # One value in the midst of a range has a part in common with it, too.
            total += within
    return total / len(files)


@pytest.mark.parametrize("seed", range(50))
def test_it_is_what_comparing_each_with_each_gives(seed: int) -> None:
    chance = random.Random(seed)
    shape = _shape()
    files: list[File] = []
    for _ in range(chance.randrange(1, 12)):
        low = chance.randrange(6)
        country = chance.choice(("DE", "FR"))
        files.append((country, low, low + chance.choice((0, 0, 1, 2, 5))))
    assert overlap(_files(files, shape), 1, shape) == pytest.approx(_model(files))


def test_files_in_order_overlap_with_nothing_but_themselves() -> None:
    shape = _shape()
    files: list[File] = [("DE", at, at + 1) for at in range(10)] + [("DE", 3, 3)] * 5
    assert overlap(_files(files, shape), 1, shape) == 1


def test_without_bounds_there_is_nothing_to_tell() -> None:
    shape = _shape()
    assert overlap(_files([("DE", 1, 2)], shape).drop_columns(["1:lower"]), 1, shape) is None
