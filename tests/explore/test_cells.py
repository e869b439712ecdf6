"""Rows of a page are few and short, whatever a file holds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icetree.explore.plain import first_plain, plain
from icetree.explore.views import look
from icetree.spec.texts import json_bytes
from tests.explore.tables import open_lake

_DEEP = pa.list_(pa.list_(pa.list_(pa.int64())))


def test_a_small_file_does_not_make_a_large_answer(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("many", pa.list_(pa.int64()))])
    with open_lake(tmp_path) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", columns)
        table.append(
            pa.table({"id": range(100), "many": [list(range(9_000))] * 100}, schema=columns)
        )
        file = table.scan().plan().tasks["location"][0].as_py()
        told = look(table, "rows", {"file_path": file})
        assert len(json_bytes(told)) < 1_000_000
        assert [each[0] for each in told["rows"]] == list(range(100))
        assert told["rows"][0][1][:3] == [0, 1, 2]
        assert told["rows"][0][1][-1] == "… (9,000 in all)"
        head = str(table.metadata.current_snapshot_id)
        assert len(json_bytes(look(table, "feed", {"at": head, "rows": "yes"}))) < 1_000_000


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (_DEEP, [[[1] * 30] * 30] * 30),
        (pa.map_(pa.string(), pa.list_(pa.int64())), [(str(at), [at] * 90) for at in range(90)]),
        (pa.struct([("a", pa.list_(pa.int64())), ("b", pa.list_(pa.int64()))]), {"a": [1] * 999, "b": [2] * 999}),
        (pa.list_(pa.int64(), 2_000), [1] * 2_000),
    ],
)  # fmt: skip
def test_a_value_is_cut_however_it_nests(type: pa.DataType, value: object) -> None:
    [[told]] = first_plain(pa.table({"x": pa.array([value], type)}))
    assert 900 < len(json_bytes(told)) < 6_000
    assert "in all)" in json_bytes(told).decode()


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (_DEEP, [[[1], []], [None, [2]]]),
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", None)]),
        (pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string())]), {"a": None, "b": "x"}),
        (pa.list_(pa.int64(), 2), [1, 2]),
        (pa.string(), None),
    ],
)
def test_a_value_that_is_short_is_told_whole(type: pa.DataType, value: object) -> None:
    assert first_plain(pa.table({"x": pa.array([value], type)})) == [[plain(value)]]


def test_rows_that_are_long_are_fewer_and_never_none() -> None:
    wide = pa.table({f"c{at}": ["x" * 3_000] * 20 for at in range(200)})
    told = first_plain(wide)
    assert 1 <= len(told) < 20
    assert len(json_bytes(told)) < 2_000_000
    huge = pa.table({f"c{at}": ["x" * 3_000] for at in range(2_000)})
    assert len(first_plain(huge)) == 1
