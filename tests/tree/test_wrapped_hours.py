"""Hours of a time some 245,000 years away wrap around, since a partition's are of 32 bits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.transforms import HourTransform
from pyiceberg.types import NestedField, TimestampType, TimestamptzType

from icetree.rows.transform import transformed
from icetree.spec.entry.entry import Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import may_match, must_match
from tests.rows.lake import new_table
from tests.tree.rows import COMPARISONS

_HOUR = 3_600_000_000
_LAST = 2**31 * _HOUR
#: Times around the ends of what hours can tell, the ends of all times, and 1970.
_TIMES = [
    *(near + step * _HOUR for near in (-_LAST, 0, _LAST) for step in (-2, -1, 0, 1, 2)),
    *(-(2**63) + 1, -(2**63) + _HOUR, 2**63 - 1, 2**63 - _HOUR),
]
_OPERATORS = {
    **COMPARISONS,
    ice.In: lambda value, listed: value in listed,
    ice.NotIn: lambda value, listed: value not in listed,
}


def _shape(type: Any) -> Shape:
    expression = Expression(expr_id=101, source_ids=(1,), transform="hour", name="hours")
    return Shape(schema=Schema(NestedField(1, "at", type)), expressions={101: expression})


def _files(times: list[int], shape: Shape) -> Entries:
    """Return a file for each time, of which the partition alone is known."""
    hours = transformed(pa.array(times, pa.timestamp("us")), HourTransform(), TimestampType())
    stats = [{101: FieldStats(lower=n, upper=n, values=1, nulls=0)} for n in hours.to_pylist()]
    return to_table([Entry(location="f", record_count=1, stats=each) for each in stats], shape)


@pytest.mark.parametrize("type", [TimestampType(), TimestamptzType()], ids=str)
def test_a_partition_of_hours_that_wrapped_is_neither_pruned_nor_proven(type: Any) -> None:
    shape = _shape(type)
    files = _files(_TIMES, shape)
    for kind, holds in _OPERATORS.items():
        for literal in (_TIMES[:3], _TIMES[-3:]) if kind in (ice.In, ice.NotIn) else _TIMES:
            bound = bind(kind("at", literal), shape)
            wanted = [holds(time, literal) for time in _TIMES]
            may, must = may_match(files, bound).to_pylist(), must_match(files, bound).to_pylist()
            assert all(kept or not each for kept, each in zip(may, wanted, strict=True)), bound
            assert all(each or not sure for sure, each in zip(must, wanted, strict=True)), bound


def test_hours_that_did_not_wrap_are_pruned_as_before() -> None:
    shape = _shape(TimestampType())
    ends = [-(2**62), -_HOUR, _HOUR, 2**62]
    below = bind(ice.LessThan("at", "1970-01-01T00:00:00"), shape)
    assert may_match(_files(ends, shape), below).to_pylist() == [True, True, False, False]
    assert must_match(_files(ends, shape), below).to_pylist() == [True, True, False, False]


def test_no_row_is_lost_or_deleted_by_hours_that_wrapped() -> None:
    table = new_table([("id", "long"), ("at", "timestamp")], partition_by=["hour(at)"])
    table.set_properties({"write.metadata.metrics.column.at": "none"})
    times = pa.array([-(2**63) + 1, 0, 2**63 - 1], pa.timestamp("us"))
    table.append(pa.table({"id": pa.array([1, 2, 3]), "at": times}))
    long_ago, far_off = "at < '1970-01-01'", "at > '1970-01-02'"
    assert table.scan(long_ago).to_arrow()["id"].to_pylist() == [1]
    assert table.scan(far_off).to_arrow()["id"].to_pylist() == [3]
    table.delete(far_off)
    assert pc.sort_indices(table.scan().to_arrow()["id"]).to_pylist() == [0, 1]
    assert {*table.scan().to_arrow()["id"].to_pylist()} == {1, 2}
