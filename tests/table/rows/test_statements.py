"""DELETE, UPDATE and OVERWRITE, in one process, and statements beside others."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icetree.errors import CommitConflict, InvalidInput
from icetree.table.table import Table
from tests.rows.lake import files, foreign_delete
from tests.table.rows.three import MODES, ONE, THREE, TWO, rows, some, table_of


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_deleted_and_counted(mode: str) -> None:
    table = table_of(ONE, TWO, THREE, mode=mode)
    done = table.delete("n > 10 or s is null")
    assert rows(table) == [ONE]
    assert (done.rows.inserted, done.rows.updated, done.rows.deleted) == (0, 0, 2)
    assert len(files(table)) == 1


def test_a_file_whose_rows_all_match_is_not_read() -> None:
    table = table_of(ONE, TWO)
    table.append(some(THREE))
    whole = table.scan("id <= 2").plan().tasks["location"][0].as_py()
    table.files.store.delete([f"{table.location}/{whole}"])
    assert table.delete("id <= 2").rows.deleted == 2
    assert rows(table) == [THREE]


@pytest.mark.parametrize(
    "verb",
    [
        lambda table, rows: table.append(rows),
        lambda table, rows: table.overwrite("id > 1", rows),
        lambda table, rows: table.upsert(rows, on=["id"]),
        lambda table, rows: table.merge(rows, on=["id"]).when_not_matched_insert_all().run(),
    ],
    ids=["append", "overwrite", "upsert", "merge"],
)
def test_rows_come_in_any_batches_and_some_of_these_are_empty(verb: Any) -> None:
    whole = some(TWO, (4, 0, "d"))
    none = whole.slice(0, 0).combine_chunks()
    parts = [none, whole.slice(0, 1), none, whole.slice(1), none]
    batches = [
        pa.record_batch(
            [pa.array(column.to_pylist(), column.type) for column in part], whole.schema
        )
        for part in parts
    ]
    told = []
    for given in (whole, pa.RecordBatchReader.from_batches(whole.schema, batches)):
        table = table_of(ONE, THREE)
        done = verb(table, given)
        told.append((rows(table), done.rows.inserted, done.rows.updated, done.rows.deleted))
    assert told[0] == told[1]


def test_a_condition_may_be_any_expression_over_columns() -> None:
    table = table_of(ONE, TWO, THREE)
    assert table.delete("id % 2 = 1 and coalesce(n, 0) = 0").rows.deleted == 1
    assert rows(table) == [ONE, TWO]
    with pytest.raises(InvalidInput, match="there is no column 'nope'"):
        table.delete("nope % 2 = 1")
    with pytest.raises(InvalidInput, match="cannot read the filter 'id ='"):
        table.delete("id =")
    with pytest.raises(InvalidInput, match="true or false, not int64"):
        table.delete("id + 1")


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_updated_and_stay_the_same_rows(mode: str) -> None:
    table = table_of(ONE, TWO, THREE, mode=mode)
    done = table.update({"n": "n + 1", "s": "upper(s)"}, "id < 3")
    assert rows(table) == [(1, 11, "A"), (2, 21, "B"), THREE]
    assert done.rows.updated == 2
    lineage = ("id", "_row_id", "_last_updated_sequence_number")
    assert rows(table, *lineage) == [(1, 0, 2), (2, 1, 2), (3, 2, 1)]


def test_values_are_texts_arrow_expressions_or_themselves() -> None:
    table = table_of(ONE, TWO)
    table.update({"n": 5, "s": "'it''s ' || id"})
    assert rows(table) == [(1, 5, "it's 1"), (2, 5, "it's 2")]
    table.update({"n": pc.add(pc.field("n"), pa.scalar(1, pa.int32())), "s": None}, "id = 1")
    assert rows(table) == [(1, 6, None), (2, 5, "it's 2")]


@pytest.mark.parametrize(
    ("type", "value", "stored"),
    [
        ("int", "n * 2", 14),
        ("long", 2**40, 2**40),
        ("float", 0.1, pytest.approx(0.1)),
        ("double", "1.5", 1.5),
        ("decimal(9, 2)", "n * 1.5", Decimal("10.50")),
        ("decimal(9, 2)", Decimal("3.1"), Decimal("3.10")),
        ("date", "'2026-02-03'", date(2026, 2, 3)),
        ("timestamp", datetime(2026, 2, 3), datetime(2026, 2, 3)),  # noqa: DTZ001
        (
            "timestamptz",
            datetime(2026, 2, 3, tzinfo=timezone.utc),
            datetime(2026, 2, 3, tzinfo=timezone.utc),
        ),
        ("binary", b"\x00", b"\x00"),
        ("boolean", "n > 3", True),
        ("list<int>", [1, 2], [1, 2]),
        ("struct<a: int, b: string>", {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
    ],
)
def test_a_value_that_means_the_same_in_the_columns_type_is_taken(
    type: str, value: Any, stored: Any
) -> None:
    table = table_of(columns=[("n", "int"), ("v", type)])
    table.append(pa.table({"n": pa.array([7], pa.int32())}))
    table.update({"v": value})
    assert table.scan().to_arrow()["v"].to_pylist() == [stored]


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("int", 2**31),
        ("int", "n + 2147483641"),
        ("int", "cast(n as long) * 1000000000"),
        ("int", 1.0),
        ("int", "'7'"),
        ("long", True),
        ("string", "n"),
        ("decimal(4, 2)", "n * 0.001"),
        ("decimal(4, 2)", 100),
        ("timestamptz", datetime(2026, 2, 3)),  # noqa: DTZ001
        ("date", "'soon'"),
        ("struct<a: int>", "n"),
    ],
)
@pytest.mark.parametrize("where", [None, "n > 100"])
def test_a_value_that_does_not_fit_is_refused_and_nothing_changes(
    type: str, value: Any, where: str | None
) -> None:
    table = table_of(columns=[("n", "int"), ("v", type)])
    table.append(pa.table({"n": pa.array([7], pa.int32())}))
    before = table.metadata
    depends_on_rows = isinstance(value, str) and (
        "n +" in value or "n *" in value or "* 10" in value
    )
    if where is not None and depends_on_rows:
        return  # only a row shows it
    with pytest.raises(InvalidInput):
        table.update({"v": value}, where)
    assert table.refresh().metadata == before


def test_a_field_of_a_struct_is_set_and_a_null_struct_made() -> None:
    table = table_of(columns=[("id", "long"), ("st", "struct<a: int, b: struct<c: string>>")])
    inner = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    given = [{"a": 1, "b": {"c": "x"}}, None]
    table.append(pa.table({"id": [1, 2], "st": pa.array(given, inner)}))
    table.update({"st.a": "id", "st.b.c": "'y'"})
    assert rows(table, "st") == [({"a": 1, "b": {"c": "y"}},), ({"a": 2, "b": {"c": "y"}},)]
    with pytest.raises(InvalidInput, match=r"st\.a is set twice"):
        table.update({"st": None, "st.a": 1})
    with pytest.raises(InvalidInput, match=r"no column 'st\.nope' to set"):
        table.update({"st.nope": 1})


def test_a_required_column_takes_no_null() -> None:
    table = table_of(columns=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    table.append(pa.table({"id": [1, 2]}, pa.schema([pa.field("id", pa.int64(), nullable=False)])))
    with pytest.raises(InvalidInput, match="id is required"):
        table.update({"id": "nullif(id, 2)"})
    assert rows(table) == [(1,), (2,)]


def test_rows_that_do_not_fit_are_refused_in_the_table_s_own_name() -> None:
    table = table_of(ONE)
    for begun in (
        lambda: table.append(pa.table({"nope": [1]})),
        lambda: table.overwrite("id = 1", pa.table({"nope": [1]})),
        lambda: table.update({"id": "'a'"}),
        lambda: table.replace_partitions(pa.table({"id": ["a"]})),
    ):
        with pytest.raises(InvalidInput, match=r"^(table )?db\.rows\b"):
            begun()


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_match_are_overwritten_in_part(mode: str) -> None:
    table = table_of(ONE, TWO, THREE, mode=mode)
    table.overwrite("id >= 2", some((2, 0, "new")))
    assert rows(table) == [ONE, (2, 0, "new")]
    with pytest.raises(InvalidInput, match="a new row does not match id >= 2"):
        table.overwrite("id >= 2", some(ONE))
    table.overwrite("id > 1", some((0, 0, "other")), strict=False)
    assert rows(table) == [(0, 0, "other"), ONE]


@pytest.mark.parametrize("mode", MODES)
def test_deletes_of_other_writers_are_honoured(mode: str) -> None:
    table = table_of(ONE, TWO, THREE, (4, 40, "d"), mode=mode)
    with table.transaction() as tx:
        tx.apply(foreign_delete(table, pa.table({"id": [2]})))
    assert table.update({"s": "'seen'"}, "id > 1").rows.updated == 2
    assert table.upsert(some(TWO), on=["id"]).rows.inserted == 1
    assert table.delete("id = 3").rows.deleted == 1
    assert rows(table) == [ONE, TWO, (4, 40, "seen")]
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_older_layouts_move_to_the_newest(mode: str) -> None:
    table = table_of(ONE, TWO, mode=mode, partition_by=["bucket(2, id)"])
    with table.edit_schema() as edit:
        edit.add("more", "long", default=7).rename("s", "text")
    with table.edit_spec() as edit:
        for each in edit.fields:
            edit.remove(each.name)
        edit.add("truncate(10, n)")
    table.update({"more": "more + 1"}, "id = 1")
    assert rows(table) == [(1, 10, "a", 8), (2, 20, "b", 7)]
    assert table.verify(deep=True).is_clean


def _late(table: Table) -> Table:
    """Return a handle that has not seen what the other commits since."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "do",
    [
        lambda t: t.delete("id = 1"),
        lambda t: t.update({"n": 0}, "id = 1"),
        lambda t: t.upsert(some((1, 0, "x")), on=["id"]),
        lambda t: t.overwrite("id = 1", some((1, 0, "x"))),
    ],
)
def test_two_statements_on_one_row_conflict_and_on_others_do_not(mode: str, do: Any) -> None:
    table = table_of(ONE, TWO, mode=mode)
    late = _late(table)
    table.update({"n": 11}, "id = 1")
    with pytest.raises(CommitConflict):
        do(late)
    late = _late(table)
    table.append(some((50, 0, "far")))
    do(late)


def test_a_new_row_that_would_match_conflicts_unless_the_isolation_is_of_the_snapshot() -> None:
    table = table_of(ONE, TWO)
    late = _late(table)
    table.append(some((1, 99, "late")))
    with pytest.raises(CommitConflict):
        late.delete("id = 1")
    table.set_properties({"write.delete.isolation-level": "snapshot"})
    late = _late(table)
    table.append(some((1, 98, "later")))
    late.delete("id = 1")
    assert rows(table.refresh(), "n") == [(20,), (98,)]


def test_rows_change_in_a_transaction_as_its_first_deed() -> None:
    table = table_of(ONE, TWO)
    with table.transaction() as tx:
        tx.update({"n": 0}, "id = 1")
        tx.append(some(THREE))
    assert rows(table) == [(1, 0, "a"), TWO, THREE]
    refused = pytest.raises(InvalidInput, match="commit it, then update in another")
    with refused, table.transaction() as tx:
        tx.append(some(THREE))
        tx.update({"n": 0}, "id = 1")
    assert rows(table) == [(1, 0, "a"), TWO, THREE]


def test_marks_of_many_files_are_one_file_and_older_marks_are_kept() -> None:
    table = table_of()
    for start in (0, 10, 20):
        table.append(some(*((start + at, at, "x") for at in range(10))))
    table.delete("n = 3")
    table.delete("n = 4")
    assert sorted(n for (n,) in rows(table, "n")) == sorted([0, 1, 2, 5, 6, 7, 8, 9] * 3)
    tasks = table.scan().plan().tasks
    assert len(set(tasks["dv_location"].to_pylist())) == 1
    assert tasks["dv_cardinality"].to_pylist() == [2, 2, 2]
    table.delete("n not in (3, 4)")
    assert table.scan().plan().tasks.num_rows == 0
