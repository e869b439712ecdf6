"""What callers may give, in which forms, and the sentence for what they may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import icetree
from icetree.errors import InvalidInput
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.edit.sort import SortEdit
from icetree.spec.entry.entry import to_table
from icetree.table.table import Table
from tests.rows import lake as arrow_lake
from tests.table.lake import connection, data_file, live, new_table


def test_numbers_of_numpy_are_numbers() -> None:
    table = new_table()
    table.append_files([data_file("a")])
    snapshot = table.snapshot()
    assert snapshot is not None
    id: Any = np.int64(snapshot.snapshot_id)
    limit: Any = np.int32(3)
    assert table.scan(at=id).snapshot == snapshot
    assert table.scan(limit=limit).limit == 3


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda t: t.scan(limit="x"), "limit='x': allowed are whole numbers of 0 or more"),
        (lambda t: t.scan(limit=-1), "limit=-1: allowed are whole numbers of 0 or more"),
        (lambda t: t.scan(limit=True), "limit=True"),
        (lambda t: t.scan(columns=5), "columns=5: give a list of names"),
        (lambda t: t.scan(at=1.5), "at=1.5: give a snapshot id, the name of a branch"),
        (lambda t: t.snapshot(True), "at=True: give a snapshot id"),
        (lambda t: t.inspect.files(at=()), r"at=\(\): give a snapshot id"),
        (lambda t: t.rollback(1.5), "to=1.5: give a snapshot id"),
        (lambda t: t.create_branch("b", at=1.5), "at=1.5"),
        (lambda t: t.create_tag("b", at=1.5), "at=1.5"),
        (lambda t: t.set_current(None), "to=None"),
        (lambda t: t.cherry_pick(1.5), "at=1.5"),
        (lambda t: t.append_files(["x"]), "'x' does not tell enough of a file"),
        (lambda t: t.append_files("x"), "'x' does not tell enough of a file"),
        (lambda t: t.append_files(3), "3 does not tell enough of a file"),
        (lambda t: t.append_files(pa.table({"n": [1]})), "add rows with append"),
        (lambda t: t.row_delta(pa.table({"n": [1]})), "add rows with append"),
        (lambda t: t.delete_files([1]), "1 is no text"),
        (lambda t: t.delete_files(1), "give texts"),
        (lambda t: t.truncate(brnch="b"), "no 'brnch', but .* did you mean 'branch'"),
        (
            lambda t: t.merge([], ["n"]).when_matched_update(sets={}),
            "update takes no 'sets'.* 'set'",
        ),
        (lambda t: t.snapshot(att=1), "snapshot takes no 'att', but at; did you mean 'at'"),
        (lambda t: t.remove_properties(names=["a"]), "takes no 'names', but values alone"),
        (lambda t: t.explain("n = 1", att="b"), "explain takes no 'att'.* mean 'at'"),
        (lambda t: t.verify(depth=1), "verify takes no 'depth'"),
        (lambda t: t.truncate(branch=5), "branch=5"),
        (lambda t: t.truncate(branch=" "), "branch=' '"),
        (lambda t: t.truncate(summary={"a": 1}), "summary has texts only, not 'a': 1"),
        (lambda t: t.truncate(summary=["a"]), r"summary=\['a'\]: give a mapping"),
        (lambda t: t.truncate(summary=0), "summary=0: give a mapping"),
        (lambda t: t.truncate(summary={"total-records": "x"}), "'total-records' .*icetree's own"),
        (lambda t: t.truncate(summary={"operation": "append"}), "'operation' .*icetree's own"),
        (lambda t: t.truncate(summary={"icetree.commit-key": "k"}), "commit-key' .*icetree's own"),
        (lambda t: t.delete_files(pa.table({"x": [1]})), r"a table of \['x'\] does not name them"),
        (lambda t: t.row_delta([], tasks=5), "tasks=5: give the tasks of a plan"),
        (lambda t: t.row_delta([], tasks=pa.table({"x": [1]})), "give the tasks of a plan"),
        (lambda t: t.create_tag(None), "tag=None: give a text"),
        (lambda t: t.create_tag("b", max_ref_age_ms="x"), "is a positive number, not 'x'"),
        (lambda t: t.create_branch(5), "branch=5: give a text"),
        (lambda t: t.remove_tag([]), r"tag=\[\]: give a text"),
        (lambda t: t.fast_forward("main", []), r"to=\[\]: give a snapshot id"),
        (lambda t: t.fast_forward([], "main"), r"branch=\[\]: give a text"),
        (lambda t: t.set_current("main", branch=[]), r"branch=\[\]: give a text"),
        (lambda t: t.cherry_pick(t.snapshot().snapshot_id, branch=[]), r"branch=\[\]: give a text"),
        (lambda t: t.set_retention("main", 5), "retention=5: give a Retention"),
        (lambda t: t.scan(at=[]), r"at=\[\]: give a snapshot id"),
        (lambda t: t.upgrade("x"), "can become v4 to v4, not vx"),
        (lambda t: t.upgrade(4.0), "can become v4 to v4, not v4.0"),
        (lambda t: t.update_metadata(5), "5 is no update of a table"),
        (lambda t: t.set_properties(5), "properties=5: give a mapping"),
        (lambda t: t.set_properties({5: "a"}), "name of a property is a string, not 5"),
        (lambda t: edit_spec(t).add(5), "what to partition by=5: give a text"),
        (lambda t: edit_spec(t).add("n", name=5), "name=5: give a text"),
        (lambda t: edit_spec(t).remove(5), "partition field=5: give a text"),
        (lambda t: edit_spec(t).remove([]), r"partition field=\[\]: give a text"),
        (lambda t: edit_spec(t).add("n", "m").rename("m", 5), "name=5: give a text"),
        (lambda t: edit_sort(t).by(5), "what to sort by=5: give a text"),
        (lambda t: edit_sort(t).asc(5), "what to sort by=5: give a text"),
        (lambda t: edit_schema(t).rename("n", 5), "to=5: give a text"),
        (lambda t: edit_schema(t).drop(5), "5 is no column: give its name"),
        (lambda t: edit_schema(t).drop((5,)), "is no column: give its name"),
        (lambda t: edit_schema(t).add(5, "int"), "5 is no column: give its name"),
        (lambda t: edit_schema(t).add("x", "int", doc=5), "doc=5: give a text"),
        (lambda t: edit_schema(t).set_doc("n", 5), "doc=5: give a text"),
        (lambda t: edit_schema(t).move_after("n", 5), "its neighbour=5: give a text"),
        (lambda t: edit_schema(t).set_identifier_fields([5]), "5 is no column: give its name"),
        (lambda t: edit_schema(t).set_identifier_fields(5), "5: give a list of columns"),
        (lambda t: t.truncate(key=5), "key=5: give a text that is not empty"),
        (lambda t: t.truncate(key=[]), r"key=\[\]: give a text"),
        (lambda t: t.truncate(key=""), "key='': give a text"),
        (lambda t: t.truncate(key=" "), "key=' ': give a text"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_and_changes_nothing(
    act: Callable[[Table], Any], why: str
) -> None:
    table = new_table()
    table.append_files([data_file("a")])
    before = table.metadata
    with pytest.raises(InvalidInput, match=why):
        act(table)
    assert table.refresh().metadata == before


def edit_schema(table: Table) -> Any:
    return SchemaEdit(table.metadata)


def edit_spec(table: Table) -> Any:
    return SpecEdit(table.metadata)


def edit_sort(table: Table) -> Any:
    return SortEdit(table.metadata)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda lake: lake.create_table(None, "n int"), "table name=None: give a text"),
        (lambda lake: lake.table(5), "table name=5: give a text"),
        (lambda lake: lake.create_namespace(5), "namespace=5: give a text"),
        (lambda lake: lake.create_namespace("q", 5), "properties=5: give a mapping"),
        (lambda lake: lake.create_namespace("q", {5: "a"}), "the property name is 5: give a text"),
        (lambda lake: lake.update_namespace("db", remove=5), "remove=5: give texts"),
        (lambda lake: lake.create_table("db.t", "n int", location=5), "location=5: give a text"),
        (lambda lake: lake.create_table("db.t", "n int", properties=5), "properties=5: give"),
        (lambda lake: lake.register_table("db.t", 5), "metadata_location=5: give a text"),
        (lambda _: icetree.connect(5), "int is no kind of catalog: give an address"),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_at_the_front_door_is_told_in_a_sentence_and_changes_nothing(
    act: Callable[[Any], Any], why: str
) -> None:
    lake = connection()
    with pytest.raises(InvalidInput, match=why):
        act(lake)
    assert lake.namespaces() == ["db"]
    assert lake.tables("db") == []


HALF = "\udcff"


@pytest.mark.parametrize(
    "act",
    [
        lambda t: t.truncate(summary={"a": HALF}),
        lambda t: t.truncate(summary={HALF: "a"}),
        lambda t: t.truncate(key=HALF),
        lambda t: t.truncate(branch=HALF, create_branch=True),
        lambda t: t.create_branch(HALF),
        lambda t: t.create_tag(HALF),
        lambda t: t.set_properties({"a": HALF}),
        lambda t: t.set_properties({HALF: "a"}),
        lambda t: with_column(t, HALF),
        lambda t: with_column(t, "more", doc=HALF),
        lambda t: with_column(t, "more", default=HALF),
    ],
)
def test_half_a_character_is_refused_wherever_it_would_be_stored(
    act: Callable[[Table], Any],
) -> None:
    table = new_table()
    table.append_files([data_file("a")])
    before = table.metadata
    with pytest.raises(InvalidInput, match="holds half of a character"):
        act(table)
    assert table.refresh().metadata == before


def with_column(table: Table, name: str, **how: Any) -> None:
    with table.edit_schema() as schema:
        schema.add(name, "string", **how)


def test_every_name_that_a_commit_notes_of_itself_is_refused_from_callers() -> None:
    table = partitioned()
    rows = pa.table({"country": ["DE"], "n": [9]})
    done = [table.replace_partitions(rows, key="k"), table.truncate(summary={"wap.id": "w"})]
    noted = {name for each in done if each.snapshot for name in each.snapshot.summary or {}}
    for name in noted - {"wap.id"}:
        with pytest.raises(InvalidInput, match=f"'{name}' in a summary is icetree's own"):
            table.append(rows, summary={name: "1"})


def test_a_total_that_is_no_number_is_not_carried_on() -> None:
    table = partitioned()
    rows = pa.table({"country": ["DE"], "n": [9]})
    with table.transaction() as tx:
        tx.append(rows)
        tx.note("total-records", "many")
    after = table.append(rows).snapshot
    assert after is not None
    assert after.summary is not None
    assert "total-records" not in after.summary
    assert after.summary["total-data-files"] == "4"


def test_one_transform_need_not_be_a_list() -> None:
    schema = pa.schema([("ts", pa.timestamp("us"))])
    table = arrow_lake.new_table(schema, partition_by="day(ts)", order_by="ts desc")
    [expression] = table.metadata.expressions
    assert expression.transform == "day"
    assert len(table.metadata.shape().sort_order) == 1
    with pytest.raises(InvalidInput, match="partition_by: 1 is no text"):
        arrow_lake.new_table(schema, partition_by=[1])


def test_a_struct_without_fields_is_refused_since_no_file_can_hold_it() -> None:
    for type in (pa.struct([]), pa.list_(pa.struct([]))):
        with pytest.raises(InvalidInput, match="is a struct without fields"):
            arrow_lake.new_table(pa.schema([("s", type)]))
    table = new_table()
    with (
        pytest.raises(InvalidInput, match="'s' is a struct without fields"),
        table.edit_schema() as schema,
    ):
        schema.add("s", "struct<>")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def partitioned() -> Table:
    schema = pa.schema([("country", pa.string()), ("n", pa.int64())])
    table = arrow_lake.new_table(schema, partition_by="country")
    table.append(pa.table({"country": ["DE", "DE", "FR"], "n": [1, 2, 3]}))
    return table


def test_rows_take_the_place_of_rows_that_match() -> None:
    table = partitioned()
    table.overwrite("country = 'DE'", pa.table({"country": ["DE"], "n": [9]}))
    assert rows_of(table) == [("DE", 9), ("FR", 3)]


def test_rows_take_the_place_of_their_partitions() -> None:
    table = partitioned()
    new = pa.table({"country": ["FR", "US"], "n": [7, 8]})
    table.replace_partitions(new.to_batches())
    assert rows_of(table) == [("DE", 1), ("DE", 2), ("FR", 7), ("US", 8)]
    table.replace_partitions(pa.record_batch({"country": ["US"], "n": [0]}))
    assert rows_of(table) == [("DE", 1), ("DE", 2), ("FR", 7), ("US", 0)]


def test_rows_take_the_place_of_files() -> None:
    table = partitioned()
    gone = [name for name in arrow_lake.files(table) if "FR" in name]
    reader = pa.table({"country": ["FR"], "n": [5]}).to_reader()
    table.overwrite_files(gone, reader)
    assert rows_of(table) == [("DE", 1), ("DE", 2), ("FR", 5)]


def test_rows_that_do_not_match_the_filter_are_refused_and_leave_no_file() -> None:
    table = partitioned()
    before = sorted(each.location for each in table.files.store.list(f"{table.location}/data"))
    with pytest.raises(InvalidInput):
        table.overwrite("country = 'DE'", pa.table({"country": ["FR"], "n": [9]}))
    after = sorted(each.location for each in table.files.store.list(f"{table.location}/data"))
    assert after == before
    assert rows_of(table) == [("DE", 1), ("DE", 2), ("FR", 3)]


def test_files_as_columns_are_still_files() -> None:
    table = new_table()
    table.append_files([data_file("a", 0, 9)])
    table.overwrite("n < 10", to_table([data_file("b", 0, 9)], table.metadata.shape()))
    assert live(table) == ["b"]


def test_a_commit_shows_itself_in_a_line() -> None:
    table = new_table()
    done = table.append_files([data_file("a")], key="once")
    assert done.snapshot is not None
    assert repr(done) == (
        f"Committed('db.t', snapshot={done.snapshot.snapshot_id}, operation='append', "
        "10 inserted, attempts=1)"
    )
    assert repr(table.append_files([data_file("a")], key="once")).endswith(", made before)")
    assert repr(table.set_properties({"a": "b"})) == "Committed('db.t', no snapshot, attempts=1)"
