"""Deletes of every kind as vectors that any reader finds: the same rows are gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.codec import puffin
from icetree.rows.read.read import read_tasks
from icetree.spec.location import absolute
from icetree.store.local import LocalStore
from icetree.table.export.vectors import with_plain_vectors
from icetree.table.lake import Lake
from icetree.table.scan.planning import planner
from icetree.table.table import Table
from icetree.tree.plan.tasks import Plan
from tests.serve.plan.rich import rich_table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=str(tmp_path))
    lake.create_namespace("db")
    return rich_table(lake, "db.t", equality=True)


def planned(table: Table) -> Plan:
    return planner(table.files, table.metadata, table.current_snapshot, stats_columns=True).whole()


def read(table: Table, plan: Plan) -> list[int]:
    batches = read_tasks(
        plan, store=table.files.store, metadata=table.metadata, columns=table.scan().columns
    )
    return sorted(id for batch in batches for id in batch.column("id").to_pylist())


def files_of(table: Table) -> set[str]:
    return {each.location for each in table.files.store.list(table.location)}


def test_the_same_rows_are_gone_by_vectors_alone(table: Table) -> None:
    plain = with_plain_vectors(planned(table), table.files, table.metadata)
    for name in ("equality_deletes", "position_deletes"):
        assert not any(plain.tasks[name].to_pylist())
    assert read(table, plain) == sorted(table.scan().to_arrow()["id"].to_pylist())


def test_every_vector_names_its_data_file_in_full(table: Table) -> None:
    plain = with_plain_vectors(planned(table), table.files, table.metadata)
    store = table.files.store
    marked = plain.tasks.filter(plain.tasks["dv_location"].is_valid())
    assert marked.num_rows > 3
    for task in marked.to_pylist():
        place = absolute(task["dv_location"], table.location)
        footer = puffin.read_footer(
            lambda offset, length, place=place: store.read_range(
                place, offset=offset, length=length
            ),
            task["dv_file_size_in_bytes"],
            file=place,
        )
        [blob] = [each for each in footer.blobs if each.offset == task["dv_offset"]]
        named = blob.properties[puffin.REFERENCED_DATA_FILE]
        assert named == absolute(task["location"], table.location)


def test_vectors_are_made_once_and_again_where_they_went(table: Table) -> None:
    before = files_of(table)
    first = with_plain_vectors(planned(table), table.files, table.metadata)
    made = files_of(table) - before
    assert made
    again = with_plain_vectors(planned(table), table.files, table.metadata)
    assert files_of(table) - before == made
    assert again.tasks.equals(first.tasks)
    table.files.store.delete(sorted(made))
    with_plain_vectors(planned(table), table.files, table.metadata)
    assert files_of(table) - before == made


def test_a_delete_that_finds_no_row_leaves_no_vector(tmp_path: Path) -> None:
    from icetree.rows.write.deletes import write_equality_deletes

    lake = Lake(catalog=MemoryCatalog("m"), store=LocalStore(), warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 9]}))
    places = {"metadata": table.metadata, "store": table.files.store}
    table.row_delta(write_equality_deletes(pa.table({"id": [5]}), ["id"], **places))
    plan = planned(table)
    assert any(plan.tasks["equality_deletes"].to_pylist())
    plain = with_plain_vectors(plan, table.files, table.metadata)
    assert plain.tasks["dv_location"].to_pylist() == [None]
    assert read(table, plain) == [1, 9]
