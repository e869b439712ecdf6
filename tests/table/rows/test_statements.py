"""DELETE, UPDATE, MERGE and their kin, in one process."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icetree.errors import CommitConflict, InvalidInput
from icetree.table.table import Table
from tests.rows.lake import files, foreign_delete, new_table

MODES = ("merge-on-read", "copy-on-write")
_COLUMNS = [("id", "long"), ("n", "int"), ("s", "string")]


def table_of(*rows: tuple[Any, ...], mode: str = "merge-on-read", **how: Any) -> Table:
    table = new_table(
        how.pop("columns", _COLUMNS),
        properties={f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        | how.pop("properties", {}),
        **how,
    )
    if rows:
        table.append(some(*rows))
    return table


def some(*rows: tuple[Any, ...]) -> pa.Table:
    ids, ns, ss = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "n": pa.array(ns, pa.int32()), "s": pa.array(ss, pa.string())}
    )  # fmt: skip


def rows(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    found = table.scan(columns=columns or None).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


ONE, TWO, THREE = (1, 10, "a"), (2, 20, "b"), (3, None, None)


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


@pytest.mark.parametrize("mode", MODES)
def test_an_upsert_replaces_rows_of_equal_keys_and_adds_the_others(mode: str) -> None:
    table = table_of(ONE, TWO, mode=mode)
    done = table.upsert(some((2, 22, "B"), THREE), on=["id"])
    assert rows(table) == [ONE, (2, 22, "B"), THREE]
    assert (done.rows.inserted, done.rows.updated, done.rows.deleted) == (1, 1, 0)
    assert rows(table, "id", "_row_id")[:2] == [(1, 0), (2, 1)]


def test_an_upsert_matches_by_the_identifier_fields() -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])
    table = table_of(columns=columns)
    new = pa.table({"id": [1], "s": ["a"]}, columns)
    with pytest.raises(InvalidInput, match="has no identifier fields"):
        table.upsert(new)
    with table.edit_schema() as edit:
        edit.set_identifier_fields(["id"])
    table.upsert(new)
    table.upsert(pa.table({"id": [1], "s": ["b"]}, columns))
    assert rows(table) == [(1, "b")]


@pytest.mark.parametrize(
    ("type", "old", "new", "matches"),
    [
        (pa.float64(), [float("nan"), 0.0, None, 2.0], [float("nan"), -0.0, None, 2.5], 2),
        (pa.string(), ["a", "A", " a", None], ["a", "A ", None, "b"], 1),
        (pa.decimal128(9, 2), [Decimal("1.00"), None], [Decimal("1.00"), Decimal("1.01")], 1),
        (pa.date32(), [1, 2], [2, 3], 1),
        (pa.timestamp("us", tz="UTC"), [1, 2], [2, 3], 1),
        (pa.binary(), [b"a", b""], [b"", b"x"], 1),
        (pa.bool_(), [True, None], [True, False], 1),
    ],
)
def test_keys_match_as_spark_has_it(
    type: pa.DataType, old: list[Any], new: list[Any], matches: int
) -> None:
    table = table_of(columns=pa.schema([("k", type), ("v", pa.string())]))
    table.append(pa.table({"k": pa.array(old, type), "v": ["old"] * len(old)}))
    done = table.upsert(pa.table({"k": pa.array(new, type), "v": ["new"] * len(new)}), on="k")
    assert done.rows.updated == matches
    assert done.rows.inserted == len(new) - matches


@pytest.mark.parametrize(
    ("own", "source", "values"),
    [
        ("int", pa.int64(), [7, 2**40]),
        ("long", pa.int32(), [7, 8]),
        ("long", pa.float64(), [7.0, 7.5]),
        ("long", pa.decimal128(20, 3), [Decimal(7), Decimal("7.001")]),
        ("decimal(9, 2)", pa.decimal128(9, 4), [Decimal(7), Decimal("7.0001")]),
        ("string", pa.large_string(), ["7", "8"]),
        ("string", pa.dictionary(pa.int8(), pa.string()), ["7", "8"]),
    ],
)
def test_keys_of_other_types_match_by_value(
    own: str, source: pa.DataType, values: list[Any]
) -> None:
    table = table_of(columns=[("k", own), ("v", "string")])
    seven = {"string": "7", "decimal(9, 2)": Decimal(7)}.get(own, 7)
    type = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}.get(own)
    table.append(pa.table({"k": pa.array([seven], type or pa.decimal128(9, 2)), "v": ["old"]}))
    keys = pa.table({"k": pa.array(values, source)})
    done = table.merge(keys, on=["k"]).when_matched_update({"v": "'new'"}).run()
    assert done.rows.updated == 1
    assert rows(table, "v") == [("new",)]


def test_keys_that_cannot_be_compared_are_refused() -> None:
    table = table_of(ONE)
    with pytest.raises(InvalidInput, match="'id' is int64 in the table and string in the source"):
        table.upsert(pa.table({"id": ["1"], "n": [1], "s": ["x"]}), on=["id"])
    with pytest.raises(InvalidInput, match="has no column 'ix' to match by"):
        table.upsert(some(ONE), on=["ix"])
    with pytest.raises(InvalidInput, match="the source has no column 'id'"):
        table.merge(pa.table({"x": [1]}), on=["id"]).when_matched_delete().run()


@pytest.mark.parametrize("mode", MODES)
def test_rows_match_by_several_keys(mode: str) -> None:
    table = table_of((1, 1, "a"), (1, 2, "b"), (2, 1, "c"), (1, None, "d"), mode=mode)
    table.upsert(some((1, 2, "B"), (2, 2, "D"), (1, None, "E")), on=["id", "n"])
    assert rows(table) == sorted(
        [(1, 1, "a"), (1, 2, "B"), (2, 1, "c"), (1, None, "d"), (2, 2, "D"), (1, None, "E")], key=repr
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_the_first_clause_that_applies_wins(mode: str) -> None:
    table = table_of(ONE, TWO, THREE, (4, 40, "d"), mode=mode)
    source = pa.table({"id": [1, 2, 3, 8, 9], "op": ["drop", "set", "other", "add", "no"]})
    done = (
        table.merge(source, on=["id"])
        .when_matched_delete("source.op = 'drop'")
        .when_matched_update({"s": "op || target.id"}, "op = 'set'")
        .when_not_matched_insert({"id": "id", "n": "length(op)"}, "op = 'add'")
        .when_not_matched_by_source_update({"n": "n + 1"}, "id = 4")
        .run()
    )
    assert rows(table) == [(2, 20, "set2"), THREE, (4, 41, "d"), (8, 3, None)]
    assert (done.rows.inserted, done.rows.updated, done.rows.deleted) == (1, 2, 1)


@pytest.mark.parametrize("mode", MODES)
def test_two_rows_of_a_source_for_one_of_the_table_are_refused(mode: str) -> None:
    table = table_of(ONE, TWO, mode=mode)
    twice = some((1, 5, "x"), (1, 6, "y"))
    with pytest.raises(InvalidInput, match="matches more than one row of the source"):
        table.upsert(twice, on=["id"])
    with pytest.raises(InvalidInput, match="matches more than one row of the source"):
        table.merge(twice, on=["id"]).when_matched_delete("source.n > 0").run()
    assert rows(table) == [ONE, TWO]
    # Where only one of them acts, or all mean the end, it is known what becomes of the row.
    table.merge(twice, on=["id"]).when_matched_update({"n": "source.n"}, "source.n = 6").run()
    assert rows(table) == [(1, 6, "a"), TWO]
    assert table.merge(twice, on=["id"]).when_matched_delete().run().rows.deleted == 1
    assert rows(table) == [TWO]


def test_a_clause_speaks_of_rows_that_there_are() -> None:
    table = table_of(ONE)
    merge = table.merge(some(ONE), on=["id"])
    with pytest.raises(InvalidInput, match="say what to do"):
        merge.run()
    with pytest.raises(
        InvalidInput, match=r"both sides have a column 's': say target\.s or source\.s"
    ):
        table.merge(some(ONE), on=["id"]).when_matched_update({"s": "s"}).run()
    with pytest.raises(InvalidInput, match="not known in a clause for rows that target lacks"):
        table.merge(some(ONE), on=["id"]).when_not_matched_insert({"s": "target.s"}).run()
    with pytest.raises(InvalidInput, match="can follow one without a condition"):
        table.merge(some(ONE), on=["id"]).when_matched_delete().when_matched_update_all()
    with pytest.raises(InvalidInput, match="the source has no column 's'"):
        table.merge(some(ONE).drop_columns("s"), on=["id"]).when_matched_update_all().run()
    with pytest.raises(InvalidInput, match="has no column 'more'"):
        table.upsert(some(ONE).append_column("more", pa.array([1])), on=["id"])
    assert rows(table) == [ONE]


def test_a_source_beyond_the_limit_is_refused() -> None:
    table = table_of(ONE, properties={"write.merge.source-limit-bytes": "100"})
    many = some(*[ONE] * 100)
    for begun in (
        lambda: table.upsert(many, on=["id"]),
        lambda: table.merge(many.to_reader(), on=["id"]).when_matched_delete().run(),
    ):
        with pytest.raises(InvalidInput) as refused:
            begun()
        assert str(refused.value) == (
            "db.rows: the source has more than 100 bytes, which are held in memory: merge it in parts, "
            "set write.merge.source-limit-bytes, or use Spark"
        )
    assert rows(table) == [ONE]


@pytest.mark.parametrize("on", ["target.id = source.id", "id=id", "id is not null"])
def test_rows_match_by_columns_and_a_condition_is_told_what_to_do(on: str) -> None:
    table = table_of(ONE)
    for given in (on, [on]):
        with pytest.raises(
            InvalidInput, match=r"on=.* is a condition, .*give those.*Spark's merge"
        ):
            table.merge(some(ONE), on=given).when_matched_delete().run()
        with pytest.raises(InvalidInput, match="is a condition"):
            table.upsert(some(ONE), on=given)
    assert rows(table) == [ONE]


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
