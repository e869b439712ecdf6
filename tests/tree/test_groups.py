"""Groups of files to rewrite: by Iceberg's rules, as a plain model has them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.compaction import GroupRules, file_count, grouped
from icetree.tree.plan.tasks import TASK
from tests.effort import EFFORT

SHAPE = Shape(
    schema=Schema(NestedField(1, "day", LongType())),
    expressions={9: Expression(expr_id=9, source_ids=(1,), transform="identity", name="day")},
    specs={0: (), 1: (9,)},
    default_spec_id=1,
)


def tasks(files: list[dict[str, int]]) -> pa.Table:
    """Files of a plan, by what decides about them."""
    rows = [
        {
            "location": str(number),
            "record_count": 100,
            "file_size_in_bytes": file["size"],
            "partition_spec_id": file["spec"],
            "dv_location": "dv" if file["deleted"] else None,
            "dv_cardinality": file["deleted"] or None,
            "equality_deletes": list(range(file["equality"])),
        }
        for number, file in enumerate(files)
    ]
    made = pa.Table.from_pylist(rows, TASK)
    day = pa.array([file["day"] for file in files], pa.int64())
    counts = pa.array([100] * len(files), pa.int64())
    nulls = pa.array([0] * len(files), pa.int64())
    for stat, values in (("lower", day), ("upper", day), ("values", counts), ("nulls", nulls)):
        made = made.append_column(f"1:{stat}", values)
    return made


def plainly(files: list[dict[str, int]], rules: GroupRules) -> list[list[int]]:
    """The groups, one file after the other."""

    def worn(file: dict[str, int]) -> bool:
        deletes = file["equality"] + bool(file["deleted"])
        return deletes >= rules.delete_file_threshold or (
            file["deleted"] > 0 and file["deleted"] / 100 >= rules.delete_ratio_threshold
        )

    partitions: dict[object, list[int]] = {}
    for number, file in enumerate(files):
        fits = rules.min_bytes <= file["size"] <= rules.max_bytes
        if rules.rewrite_all or worn(file) or not fits:
            where = file["day"] if file["spec"] == 1 else "others"
            partitions.setdefault(where, []).append(number)
    bins: list[list[int]] = []
    for numbers in partitions.values():
        bins.append([])
        for number in numbers:
            held = sum(files[each]["size"] for each in bins[-1])
            if bins[-1] and held + files[number]["size"] > rules.max_group_bytes:
                bins.append([])
            bins[-1].append(number)
    found = []
    for each in bins:
        total = sum(files[number]["size"] for number in each)
        enough = len(each) >= rules.min_input_files or total > rules.target_bytes
        if (
            rules.rewrite_all
            or (len(each) > 1 and enough)
            or total > rules.max_bytes
            or any(worn(files[number]) for number in each)
        ):
            found.append(each)
    return sorted(found)


@pytest.mark.law
@pytest.mark.parametrize("seed", range(60 * EFFORT))
def test_groups_are_those_of_a_plain_model(seed: int) -> None:
    draw = random.Random(seed)
    files = [
        {
            "size": draw.choice([1, 40, 74, 75, 100, 180, 181, 500]),
            "spec": draw.choice([1, 1, 1, 0]),
            "day": draw.randrange(3),
            "deleted": draw.choice([0, 0, 0, 29, 30, 100]),
            "equality": draw.choice([0, 0, 1, 2]),
        }
        for _ in range(draw.randrange(40))
    ]
    rules = GroupRules(
        target_bytes=100,
        min_bytes=75,
        max_bytes=180,
        min_input_files=draw.choice([1, 2, 5]),
        delete_file_threshold=draw.choice([1, 2, 2**31 - 1]),
        delete_ratio_threshold=draw.choice([0.3, 1.0]),
        rewrite_all=draw.random() < 0.2,
        max_group_bytes=draw.choice([150, 400, 10**9]),
    )
    group = grouped(tasks(files), SHAPE, rules, spec_id=1).tolist()
    found: dict[int, list[int]] = {}
    for number, each in enumerate(group):
        if each >= 0:
            found.setdefault(each, []).append(number)
    assert sorted(found.values()) == plainly(files, rules)
    assert sorted(found) == list(range(len(found)))


@pytest.mark.parametrize(
    ("size", "count"), [(0, 1), (99, 1), (100, 1), (109, 1), (160, 2), (176, 2), (205, 2), (280, 3)]
)
def test_files_come_near_the_target_and_none_is_needlessly_small(size: int, count: int) -> None:
    assert file_count(size, GroupRules(target_bytes=100, min_bytes=75, max_bytes=180)) == count
