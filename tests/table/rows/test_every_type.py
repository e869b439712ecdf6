"""Statements on columns of types that Arrow and Spark have otherwise, or not at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.table.table import Table
from tests.rows.lake import new_table

IDS = [bytes(15) + bytes([at]) for at in range(3)]


def _rows(ids: list[int], more: dict[str, pa.Array]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **more})


def _played(table: Table, more: dict[str, pa.Array]) -> list[Any]:
    """Do every statement to a table, with two rows at a time."""
    table.append(_rows([1, 2], more))
    table.update({"id": "id + 10"}, where="id = 2")
    merge = table.merge(_rows([12, 3], more), on=["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().run()
    table.overwrite("id = 3 or id = 4", _rows([3, 4], more))
    table.upsert(_rows([4, 5], more), on=["id"])
    assert table.verify(deep=True).is_clean
    changed = table.changes().to_arrow()
    assert changed.num_rows > 4
    found: list[Any] = table.scan().to_arrow().sort_by("id")["id"].to_pylist()
    return found


def test_statements_take_rows_with_a_column_that_has_no_type_yet() -> None:
    table = new_table({"id": "long", "n": "unknown"})
    assert _played(table, {"n": pa.nulls(2)}) == [1, 3, 4, 5, 12]


def test_a_value_in_a_column_without_a_type_is_refused() -> None:
    table = new_table({"id": "long", "n": "unknown"})
    rows = _rows([1, 2], {"n": pa.array([None, 7])})
    for add in (table.append, lambda rows: table.overwrite("id > 0", rows)):
        with pytest.raises(InvalidInput, match=r"'n' of table db\.rows has no type yet.*widen"):
            add(rows)
    assert table.scan().count() == 0


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("list<uuid>", pa.array([[IDS[0]], None], pa.list_(pa.binary(16)))),
        ("struct<u: uuid>", pa.array([{"u": IDS[1]}, None], pa.struct([("u", pa.binary(16))]))),
        (
            "map<string, uuid>",
            pa.array([[("k", IDS[2])], None], pa.map_(pa.string(), pa.binary(16))),
        ),
    ],
)
def test_statements_take_uuids_within_others(type: str, values: pa.Array) -> None:
    table = new_table({"id": "long", "c": type})
    assert _played(table, {"c": values}) == [1, 3, 4, 5, 12]
    again = new_table({"id": "long", "c": type})
    # As a scan gives them.
    again.append(table.scan().to_arrow())
    assert again.scan().to_arrow().sort_by("id") == table.scan().to_arrow().sort_by("id")
