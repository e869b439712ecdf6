"""Plans of a snapshot by its own schema, where the table has another one since.

Iceberg Java 1.11 asks so of any read of Spark's, the current snapshot's too, whose columns it knows by
their names of today.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client
from tests.serve.plan.planning import NUMBERS, PLAN

EVERY_ROW = {"type": "not", "child": False}


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two files: of ids 0 to 9, with `x`, and 10 to 19, with `y`."""
    made = lake.create_table("db.t", NUMBERS)
    for start, s in ((0, "x"), (10, "y")):
        made.append(pa.table({"id": range(start, start + 10), "s": [s] * 10}))
    return made


def ask(client: Client, table: Table, **body: Any) -> list[Any]:
    """Return the tasks of the snapshot that is current for a handle, by its schema."""
    snapshot = table.current_snapshot
    assert snapshot is not None
    told = client.post(
        PLAN, {"snapshot-id": snapshot.snapshot_id, "use-snapshot-schema": True, **body}
    )
    assert told.status == 200, told.body
    tasks: list[Any] = told.json["file-scan-tasks"]
    return tasks


def equals(name: str, value: Any) -> dict[str, Any]:
    return {"type": "eq", "term": name, "value": value}


def test_a_column_that_came_since_is_one_of_the_current_snapshot(
    client: Client, table: Table
) -> None:
    with table.edit_schema() as edit:
        edit.add("note", "string")
    assert len(ask(client, table, select=["id", "note"])) == 2
    assert len(ask(client, table, select=["note"], **{"stats-fields": ["note"]})) == 2
    missing = {"type": "is-null", "term": "note"}
    assert len(ask(client, table, filter=missing)) == 2
    both = {"type": "and", "left": missing, "right": equals("id", 3)}
    (task,) = ask(client, table, filter=both)
    assert task["residual-filter"] != EVERY_ROW


def test_a_column_is_known_by_its_name_of_today_and_by_the_former_one(
    client: Client, table: Table
) -> None:
    with table.edit_schema() as edit:
        edit.rename("id", "number")
    for name in ("id", "number"):
        assert len(ask(client, table, select=[name], filter=equals(name, 3))) == 1


@pytest.mark.parametrize("between", ["nothing", "rows", "rows and a schema", "a schema"])
def test_no_row_is_lost_of_a_name_that_was_given_to_another_column(
    client: Client, lake: Lake, table: Table, between: str
) -> None:
    with table.edit_schema() as edit:
        edit.drop("s")
    with table.edit_schema() as edit:
        edit.add("s", "string")
    # A client loads the table now, and others may commit before it asks for its plan.
    other = lake.table("db.t")
    if "rows" in between:
        other.append(pa.table({"id": [20], "s": ["z"]}))
    if "schema" in between:
        with other.edit_schema() as edit:
            edit.drop("s")
    # By the new one all rows match, by the old one those of one file.
    for asked in (equals("s", "x"), {"type": "is-null", "term": "s"}):
        tasks = ask(client, table, filter=asked)
        assert [each["residual-filter"] for each in tasks] == [EVERY_ROW] * 2


def test_where_whole_partitions_are_left_out_a_name_means_what_it_does_today(
    client: Client, lake: Lake
) -> None:
    """Spark tests no row by such filters, and knows the columns of today."""
    table = lake.create_table("db.t", "a int, b int", partition_by=["truncate(1, a)"])
    table.append(pa.table({"a": pa.array([1, 2], pa.int32()), "b": pa.array([2, 1], pa.int32())}))
    with table.edit_schema() as edit:
        edit.rename("a", "c")
    with table.edit_schema() as edit:
        edit.rename("b", "a")
    with table.edit_schema() as edit:
        edit.rename("c", "b")
    (task,) = ask(client, table, filter=equals("b", 1))
    assert task["data-file"]["partition"] == [1]


def test_a_former_snapshot_has_the_names_that_it_had(client: Client, table: Table) -> None:
    former = table.current_snapshot
    assert former is not None
    with table.edit_schema() as edit:
        edit.rename("s", "was_s")
    table.append(pa.table({"id": [20], "was_s": ["z"]}))
    asked = {"snapshot-id": former.snapshot_id, "use-snapshot-schema": True}
    told = client.post(PLAN, {**asked, "filter": equals("s", "x")}).json["file-scan-tasks"]
    assert len(told) == 1
    # Whoever learnt of columns before another wrote asks of a snapshot that is no head any more.
    with table.edit_schema() as edit:
        edit.add("note", "string")
    told = client.post(PLAN, {**asked, "select": ["note"]}).json["file-scan-tasks"]
    assert len(told) == 2


def test_a_name_that_no_schema_has_is_refused(client: Client, table: Table) -> None:
    with table.edit_schema() as edit:
        edit.add("note", "string")
    snapshot = table.current_snapshot
    assert snapshot is not None
    asked = {"snapshot-id": snapshot.snapshot_id, "use-snapshot-schema": True}
    for body in ({"select": ["nope"]}, {"filter": equals("nope", 1)}):
        told = client.post(PLAN, {**asked, **body})
        assert told.error == (400, "BadRequestException")
        assert "nope" in told.json["error"]["message"]
