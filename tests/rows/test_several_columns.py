"""Partitions and orders by several columns at once."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec.bucket import buckets
from icetree.spec.schema.types import parse_type
from icetree.table.table import Table
from tests.effort import law
from tests.rows.lake import new_table, rows

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.int32())])


def bucket(*values: Any, of: int) -> int | None:
    """The bucket of a row by the text of the decision: each hash is the seed of the next."""
    known = [
        struct.pack("<q", each) if isinstance(each, int) else each.encode()
        for each in values
        if each is not None
    ]
    found = 0
    for each in known:
        found = mmh3.hash(each, found, signed=False)
    return (found & 0x7FFFFFFF) % of if known else None


def test_a_bucket_over_several_columns_seeds_each_hash_with_the_one_before() -> None:
    columns = [
        (pa.array([1, 1, None, None, -5], pa.int64()), parse_type("long")),
        (pa.array(["x", None, "x", None, ""]), parse_type("string")),
    ]
    given = [(1, "x"), (1, None), (None, "x"), (None, None), (-5, "")]
    assert buckets(columns, 100).to_pylist() == [bucket(*each, of=100) for each in given]


def test_over_one_column_it_is_the_bucket_of_the_specification() -> None:
    # Appendix B of the specification.
    vectors: list[tuple[str, Any, int]] = [
        ("long", pa.array([34], pa.int64()), 2017239379),
        ("decimal(9, 2)", pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
        ("string", pa.array(["iceberg"]), 1210000089),
        ("binary", pa.array([b"\x00\x01\x02\x03"]), -188683207),
    ]
    for type, values, hashed in vectors:
        most = 2**31 - 1
        [found] = buckets([(values, parse_type(type))], most).to_pylist()
        assert found == (hashed & 0x7FFFFFFF) % most, type


def table_of(**how: Any) -> Table:
    return new_table(SCHEMA, partition_by=["bucket(4, a, b)"], **how)


_ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from(["x", "y", ""]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=25,
)
_WHERE = ("a = 1 and b = 'x'", "a in (0, 2) and b in ('x', 'y') and n > 3", "a is null and b = ''")


def held(found: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*found, strict=True)], schema=SCHEMA)


@law(12)
@given(_ROWS, st.sampled_from(_WHERE))
def test_pruning_by_several_columns_loses_no_row(found: list[tuple[Any, ...]], where: str) -> None:
    table = table_of(properties={"write.root.max-data-entries": "2"})
    table.append(held(found[: len(found) // 2 + 1]))
    table.append(held(found))
    plain = new_table(SCHEMA)
    plain.append(held(found[: len(found) // 2 + 1]))
    plain.append(held(found))
    assert rows(table.scan(where).to_arrow()) == rows(plain.scan(where).to_arrow())
    assert table.verify(deep=True).is_clean


def test_only_files_of_the_bucket_are_read_where_all_its_columns_are_told() -> None:
    table = table_of()
    table.append(held([(a, b, 0) for a in range(8) for b in "pqrs"]))
    assert table.scan().plan().tasks.num_rows == 4
    assert table.scan("a = 3 and b = 'q'").plan().tasks.num_rows == 1
    assert table.scan("a in (3, 4) and b = 'q'").plan().tasks.num_rows <= 2
    assert table.scan("a = 3").plan().tasks.num_rows > 1
    # What is only one of two ways rules nothing out by itself.
    assert table.scan("a = 3 and b = 'q' or n = 0").plan().tasks.num_rows == 4
    values = {(1, "p"), (6, "s")}
    for a, b in values:
        number = bucket(a, b, of=4)
        [task] = table.scan(f"a = {a} and b = '{b}'").plan().tasks.to_pylist()
        assert f"a_b_bucket_4={number}/" in task["location"]


@pytest.mark.parametrize(
    "where", ["a in (4, 1, 2) and b in ('t', 'p', 'q')", "a in (1, 4) and b is null"]
)
def test_a_row_of_every_combination_of_listed_values_is_found(where: str) -> None:
    given = [(a, b, 0) for a in range(6) for b in (*"pqrst", None)]
    tables = [new_table(SCHEMA, partition_by=by) for by in (["bucket(50, a, b)"], [])]
    for table in tables:
        table.append(held(given))
    found, wanted = (rows(table.scan(where).to_arrow()) for table in tables)
    assert found == wanted


def test_rows_are_sorted_by_a_bucket_of_several_columns() -> None:
    table = new_table(SCHEMA, order_by=["bucket(3, a, b) desc", "n"])
    given = [(a, b, 5 - a) for a in range(5) for b in "pq"]
    table.append(held(given))
    found = [tuple(each.values()) for each in table.scan().to_arrow().to_pylist()]
    assert found == sorted(given, key=lambda row: (-(bucket(*row[:2], of=3) or 0), row[2]))
    assert table.sort_order == ("bucket(3, a, b) desc", "n")


def test_equality_deletes_reach_the_buckets_of_their_keys() -> None:
    table = table_of()
    table.append(held([(a, b, 0) for a in range(4) for b in "pq"]))
    table.upsert(pa.table({"a": [1, 9], "b": ["p", "p"], "n": [7, 7]}, SCHEMA), on=["a", "b"])
    assert table.scan("n = 7").count() == 2
    assert table.scan("a = 1 and b = 'p'").to_arrow()["n"].to_pylist() == [7]
    table.delete("a = 2")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert table.scan().count() == 7
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("text", ["truncate(4, a, b)", "identity(a, b)"])
def test_other_transforms_take_one_column(text: str) -> None:
    from icetree.errors import InvalidInput

    with pytest.raises(InvalidInput, match="takes one column, not 2"):
        new_table(SCHEMA, partition_by=[text])
