"""Columns beside the table's own, and columns of the table that have their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from icetree.errors import InvalidInput
from icetree.rows.write.deletes import write_data_vectors, write_equality_deletes
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.schema.metadata_columns import NAMES
from icetree.table.table import Table
from tests.rows import lake as arrow_lake
from tests.table.foreign_names import rename_as_others_may

ROWS = pa.schema([("id", pa.int64()), ("kind", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "kind": ["even" if id % 2 == 0 else "odd" for id in ids]}, ROWS)


def delete_at(table: Table, *positions: int) -> None:
    """Delete rows of the first file by a DV."""
    plan = table.scan().plan()
    vector = {plan.tasks["location"][0].as_py(): BitMap64(positions)}
    how: dict[str, Any] = {"tasks": plan.tasks, "metadata": table.metadata}
    table.row_delta(
        write_data_vectors(vector, **how, store=table.files.store, deletes=plan.deletes)
    )


@pytest.mark.parametrize("name", [*NAMES, "_FILE", "_Row_Id"])
def test_no_new_column_has_the_name_of_a_metadata_column(name: str) -> None:
    lake = arrow_lake.new_lake()
    table = lake.create_table("db.rows", ROWS)
    with pytest.raises(InvalidInput, match="name of a metadata column"):
        lake.create_table("db.other", {"id": "long", name: "string"})
    edits: list[Callable[[SchemaEdit], object]] = [
        lambda edit: edit.add(name, "string"),
        lambda edit: edit.rename("kind", name),
        lambda edit: edit.union_by_name({name: "string"}),
    ]
    for change in edits:
        with (
            pytest.raises(InvalidInput, match="name of a metadata column"),
            table.edit_schema() as edit,
        ):
            change(edit)
    lake.create_table("db.nested", {"id": "long", "st": f"struct<{name}: string>"})


def test_a_partition_has_the_fields_of_every_spec() -> None:
    table = arrow_lake.new_table(ROWS, partition_by=["bucket(4, id)"])
    table.append(rows(1))
    with table.edit_spec() as spec:
        spec.add("kind")
    table.append(rows(2))
    found = table.scan(columns=["id", "_partition", "_spec_id"]).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": 1, "_partition": {"id_bucket_4": 0, "kind": None}, "_spec_id": 0},
        {"id": 2, "_partition": {"id_bucket_4": 0, "kind": "even"}, "_spec_id": 1},
    ]
    assert arrow_lake.new_table(ROWS).scan(columns=["_partition"]).to_arrow().num_rows == 0


def test_rows_that_are_gone_come_out_where_one_asks_which_they_are() -> None:
    table = arrow_lake.new_table(ROWS)
    table.append(rows(0, 1, 2, 3, 4, 5))
    delete_at(table, 1, 4)
    keys = pa.table({"kind": ["odd"]})
    how: dict[str, Any] = {"metadata": table.metadata, "store": table.files.store}
    table.row_delta(write_equality_deletes(keys, ["kind"], **how))
    table.append(rows(7))
    found = table.scan(columns=["id", "_deleted"]).to_arrow()
    assert {row["id"]: row["_deleted"] for row in found.to_pylist()} == {
        0: False,
        1: True,
        2: False,
        3: True,
        4: True,
        5: True,
        7: False,
    }
    some = table.scan("id > 3", columns=["id", "_deleted"]).to_arrow().to_pylist()
    assert {row["id"]: row["_deleted"] for row in some} == {4: True, 5: True, 7: False}
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [0, 2, 7]


def test_every_position_that_is_marked_is_told() -> None:
    table = arrow_lake.new_table(ROWS, partition_by=["bucket(4, id)"])
    assert table.inspect.position_deletes().num_rows == 0
    table.append(rows(1))
    with table.edit_spec() as spec:
        spec.remove("id_bucket_4")
        spec.add("kind")
    table.append(rows(0, 2, 4, 6))
    [evens] = [name for name in arrow_lake.files(table) if "even" in name]
    where = "kind = 'even'"
    plan = table.scan(where).plan()
    vector = {plan.tasks["location"][0].as_py(): BitMap64([0, 3])}
    how: dict[str, Any] = {"tasks": plan.tasks, "metadata": table.metadata}
    made = write_data_vectors(vector, **how, store=table.files.store, deletes=plan.deletes)
    before = table.metadata.current_snapshot_id
    table.row_delta(made)
    found = table.inspect.position_deletes().to_pylist()
    assert [(row["file_path"], row["pos"], row["row"]) for row in found] == [
        (evens, 0, None),
        (evens, 3, None),
    ]
    assert found[0]["partition"] == {"id_bucket_4": None, "kind": "even"}
    assert found[0]["spec_id"] == table.metadata.default_spec_id
    assert found[0]["delete_file_path"].endswith(".puffin")
    assert found[0]["content_size_in_bytes"] > 0
    was = table.inspect.position_deletes(at=before)
    assert was.num_rows == 0


def test_a_feed_refuses_columns_that_it_cannot_tell() -> None:
    table = arrow_lake.new_table(ROWS)
    for name in ("_deleted", "_partition"):
        with pytest.raises(InvalidInput, match=f"{name} is not told of a change"):
            table.changes().to_arrow(columns=["id", name])
    with table.edit_schema() as edit:
        edit.rename("kind", "_change_type")
    with pytest.raises(InvalidInput, match="own column '_change_type'"):
        table.changes().to_arrow()
    assert table.changes().to_arrow(columns=["id"]).num_rows == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_another_writer_is_read_under_its_name(name: str) -> None:
    table = arrow_lake.new_table(ROWS)
    table.append(rows(0, 1))
    rename_as_others_may(table, {"kind": name})
    table.append(pa.table({"id": [2], name: ["new"]}))
    assert table.scan(columns=["id", name]).to_arrow().to_pylist() == [
        {"id": 0, name: "even"},
        {"id": 1, name: "odd"},
        {"id": 2, name: "new"},
    ]
    assert table.scan(f"{name} = 'new'").to_arrow().num_rows == 1
    fed = table.changes().to_arrow()
    assert sorted(fed[name].to_pylist()) == ["even", "new", "odd"]
    assert [each.kind for each in table.verify(deep=True).findings] == []
