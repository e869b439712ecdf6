"""Parquet files with variants that are there already, added where they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.table.lake import Lake
from tests.rows.test_variant import SHREDS
from tests.rows.variants import pairs, said
from tests.table.commit.test_add_files import lake, put, rows_of

__all__ = ["lake"]  # a fixture


@pytest.mark.parametrize("shreds", [False, True])
def test_files_of_variants_are_added_wherever_these_stand(lake: Lake, shreds: bool) -> None:
    columns = {"id": "int", "v": "variant", "s": "struct<v: variant>", "l": "list<variant>"}
    source = lake.create_table("db.source", columns, properties=SHREDS if shreds else {})
    values = pairs({"a": 1}, {"a": 2}, ..., None)
    rows = {
        "id": pa.array(range(4), pa.int32()),
        "v": values,
        "s": pa.StructArray.from_arrays([values], ["v"]),
        "l": pa.ListArray.from_arrays([0, 1, 2, 3, 4], values),
    }
    source.append(pa.table(rows))
    [written] = source.inspect.files()["file_path"].to_pylist()
    table = lake.create_table("db.t", columns)
    table.add_files([written])
    assert rows_of(table) == rows_of(source)
    assert [row["id"] for row in rows_of(table, where="variant_get(v, '$.a', 'int') > 1")] == [1]
    assert table.verify(deep=True).is_clean


def test_parts_of_variants_by_name_are_no_columns_and_others_are(
    lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", {"id": "int", "v": "variant"})
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": pairs({"a": 1}, ...)})
    table.add_files(put(tmp_path, "named.parquet", rows))
    assert [said(row["v"]) for row in rows_of(table)] == [{"a": 1}, ...]
    none = pa.table({"v": pa.array([{"x": 1}])})
    with pytest.raises(InvalidInput, match="column v is struct<x: int64>"):
        table.add_files(put(tmp_path, "other.parquet", none))
