"""Scans against a plain model: filters, columns, limits and counts."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice

from icetree.errors import InvalidInput
from icetree.table.table import Table
from icetree.tree.prune.predicates import Transformed
from tests.effort import law
from tests.rows.lake import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("st", pa.struct([("v", pa.int32())])),
    ]
)
LAYOUTS: list[dict[str, list[str]]] = [
    {},
    {"partition_by": ["s"]},
    {"partition_by": ["bucket(3, n)", "truncate(1, s)"], "order_by": ["x desc"]},
]

N = st.none() | st.integers(-3, 3)
X = st.none() | st.sampled_from([-1.5, -0.0, 0.0, 2.0, math.nan, math.inf])
S = st.none() | st.sampled_from(["", "a", "ab", "b", "ba"])
ROW = st.fixed_dictionaries(
    {"n": N, "x": X, "s": S, "st": st.none() | st.fixed_dictionaries({"v": N})}
).map(lambda row: {name: row[name] for name in ("n", "x", "s", "st")})


def value(row: dict[str, Any], name: str) -> Any:
    for part in name.split("."):
        row = None if row is None else row[part]  # type: ignore[assignment]
    return row


COMPARE = {
    ice.LessThan: lambda a, b: a < b,
    ice.LessThanOrEqual: lambda a, b: a <= b,
    ice.GreaterThan: lambda a, b: a > b,
    ice.GreaterThanOrEqual: lambda a, b: a >= b,
    ice.EqualTo: lambda a, b: a == b,
    ice.NotEqualTo: lambda a, b: a != b,
}


UNARY = {
    ice.IsNull: lambda a: a is None,
    ice.NotNull: lambda a: a is not None,
    ice.IsNaN: lambda a: a is not None and math.isnan(a),
    ice.NotNaN: lambda a: a is None or not math.isnan(a),
}
AMONG = {ice.In: True, ice.NotIn: False}
PREFIX = {ice.StartsWith: True, ice.NotStartsWith: False}


def matches(row: dict[str, Any], where: ice.BooleanExpression) -> bool:
    """Judge a row by SQL's rules for nulls and IEEE's for NaN; `not` is pushed down."""
    match where:
        case ice.And():
            return matches(row, where.left) and matches(row, where.right)
        case ice.Or():
            return matches(row, where.left) or matches(row, where.right)
        case ice.Not():
            return matches(row, ~where.child)
    kind = type(where)
    found = value(row, where.term.name)
    if kind in UNARY:
        return UNARY[kind](found)
    if found is None:
        return False
    if kind in AMONG:
        return any(found == each.value for each in where.literals) is AMONG[kind]
    if kind in PREFIX:
        return found.startswith(where.literal.value) is PREFIX[kind]
    return COMPARE[kind](found, where.literal.value)


def comparisons(name: str, literals: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda op, v: op(name, v), st.sampled_from(list(COMPARE)), literals),
        st.builds(
            lambda op, vs: op(name, set(vs)),
            st.sampled_from([ice.In, ice.NotIn]),
            st.lists(literals, min_size=2, max_size=3, unique=True),
        ),
        st.sampled_from([ice.IsNull(name), ice.NotNull(name)]),
    )


SIMPLE = st.one_of(
    comparisons("n", st.integers(-3, 3)),
    comparisons("st.v", st.integers(-3, 3)),
    comparisons("x", st.sampled_from([-1.5, 0.0, 2.0])),
    comparisons("s", st.sampled_from(["", "a", "ab", "b"])),
    st.sampled_from([ice.IsNaN("x"), ice.NotNaN("x")]),
    st.sampled_from([ice.StartsWith("s", "a"), ice.NotStartsWith("s", "a")]),
)
WHERE = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(ice.And, inner, inner), st.builds(ice.Or, inner, inner), st.builds(ice.Not, inner)
    ),
    max_leaves=4,
)


def filled(appends: list[list[dict[str, Any]]], layout: dict[str, list[str]]) -> tuple[Table, Any]:
    table = new_table(SCHEMA, properties={"write.parquet.row-group-limit": "3"}, **layout)
    model: list[dict[str, Any]] = []
    for batch in appends:
        rows = [{"id": len(model) + at, **row} for at, row in enumerate(batch)]
        table.append(pa.Table.from_pylist(rows, SCHEMA))
        model += rows
    return table, model


@law(10)
@given(
    st.lists(st.lists(ROW, min_size=1, max_size=8), min_size=1, max_size=3),
    st.sampled_from(LAYOUTS),
    st.lists(WHERE, min_size=1, max_size=5),
)
def test_a_scan_finds_exactly_the_rows_that_match(
    appends: list[list[dict[str, Any]]],
    layout: dict[str, list[str]],
    filters: list[ice.BooleanExpression],
) -> None:
    table, model = filled(appends, layout)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [row["id"] for row in model]
    for where in filters:
        expected = [row["id"] for row in model if matches(row, where)]
        scan = table.scan(where, columns=["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected
        assert scan.count() == len(expected)
        whole = sorted(map(repr, table.scan(where).to_arrow().to_pylist()))
        assert whole == sorted(repr(row) for row in model if matches(row, where))


def some_rows() -> tuple[Table, Any]:
    row = {"n": 1, "x": 0.5, "s": "a", "st": {"v": 1}}
    return filled([[row] * 4, [row] * 4], {})


def test_columns_come_in_the_order_asked_for_with_where_rows_stand() -> None:
    table, _ = some_rows()
    scan = table.scan("id >= 3", columns=["_pos", "st.v", "id", "_spec_id", "_row_id", "_file"])
    found = scan.to_arrow()
    assert found.column_names == ["_pos", "st", "id", "_spec_id", "_row_id", "_file"]
    assert found["_pos"].to_pylist() == [3, 0, 1, 2, 3]
    assert found["_row_id"].to_pylist() == found["id"].to_pylist() == [3, 4, 5, 6, 7]
    assert len(set(found["_file"].to_pylist())) == 2
    sequence = table.scan(columns=["_last_updated_sequence_number"]).to_arrow()
    assert sequence.column(0).to_pylist() == [1] * 4 + [2] * 4


def test_names_may_be_spelt_in_any_case_when_told_so() -> None:
    table, _ = some_rows()
    scan = table.scan("ID > 5 and ST.V = 1", columns=["Id"], case_sensitive=False)
    assert scan.to_arrow().to_pylist() == [{"id": 6}, {"id": 7}]
    with pytest.raises(InvalidInput, match="no column 'ID' to filter on"):
        table.scan("ID > 5").to_arrow()


def test_a_limit_stops_reading() -> None:
    table, _ = some_rows()
    assert table.scan(limit=5).to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4]
    assert table.scan(limit=0).to_arrow().num_rows == 0
    assert table.scan(limit=5).count() == 5
    assert table.scan("id > 4", limit=2).count() == 2
    with pytest.raises(InvalidInput, match="limit=-1"):
        table.scan(limit=-1)


def test_batches_come_one_by_one_and_may_be_left_unread() -> None:
    table, _ = some_rows()
    batches = table.scan().to_batches()
    assert next(batches)["id"].to_pylist() == [0, 1, 2]
    batches.close()  # type: ignore[attr-defined]


def test_predicates_on_transforms_are_judged_on_rows() -> None:
    table, model = filled([[{"n": n, "x": None, "s": None, "st": None} for n in range(8)]], {})
    where = ice.EqualTo(Transformed("truncate[4]", "n"), 4)
    assert table.scan(where).to_arrow()["n"].to_pylist() == [4, 5, 6, 7]
    where = ice.EqualTo(Transformed("bucket[2]", "n"), 0)
    rest = ice.EqualTo(Transformed("bucket[2]", "n"), 1)
    assert table.scan(where).count() + table.scan(rest).count() == len(model)


def test_what_a_scan_cannot_say_is_refused() -> None:
    table, _ = some_rows()
    with pytest.raises(InvalidInput, match="give a list of names"):
        table.scan(columns="id")


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_that_is_not_installed_is_named(engine: str) -> None:
    table, _ = some_rows()
    try:
        __import__(engine)
    except ImportError:
        with pytest.raises(InvalidInput, match=f"pip install {engine}"):
            getattr(table.scan(), f"to_{engine}")()
    else:
        assert getattr(table.scan(), f"to_{engine}")() is not None


def test_an_empty_table_has_no_rows_and_its_columns() -> None:
    table = new_table(SCHEMA)
    assert table.scan("n > 1").to_arrow().num_rows == 0
    assert table.scan().count(metadata_only=True) == 0
    table.append(SCHEMA.empty_table())
    assert table.scan().to_arrow().column_names == SCHEMA.names
