"""UPSERT and MERGE, in one process: which rows match, and what becomes of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from tests.table.rows.three import MODES, ONE, THREE, TWO, rows, some, table_of


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


@pytest.mark.parametrize("more", [0, 300], ids=["few", "many"])
@pytest.mark.parametrize(
    ("own", "old", "new"),
    [
        (pa.int64(), [2**53 + 1, -(2**63), 3], [float(2**53), -(2.0**63), 3.0]),
        (pa.decimal128(20, 18), [Decimal("0.100000000000000001"), Decimal("1.5")], [0.1, 1.5]),
        (pa.decimal128(18, 2), [Decimal("9999999999999999.99"), Decimal("0.00")], [1e16, -0.0]),
        (pa.float32(), [0.1, 3e38], [0.10000000149011612, 2.9999999e38]),
    ],
    ids=str,
)
def test_files_chosen_by_keys_hold_every_row_that_is_equal_as_a_float(
    own: pa.DataType, old: list[Any], new: list[Any], more: int
) -> None:
    columns = pa.schema([("k", own), ("v", pa.string())])
    near, whole = (table_of(columns=columns) for _ in range(2))
    for table in (near, whole):
        for key in old:
            table.append(pa.table({"k": pa.array([key], own), "v": ["old"]}))
    keys = pa.array([*new, *(100.5 + each for each in range(more))], pa.float64())
    source = pa.table({"k": keys, "v": ["new"] * len(keys)})
    near.merge(source, on=["k"]).when_matched_update({"v": "source.v"}).run()
    # Where rows without a match matter, too, no file is left out.
    every = whole.merge(source, on=["k"]).when_matched_update({"v": "source.v"})
    every.when_not_matched_by_source_delete(where="false").run()
    assert rows(near) == rows(whole)
    assert [v for _, v in rows(near)].count("new") >= len(old) - 1


def test_times_beyond_those_of_a_finer_source_match_none_of_it() -> None:
    columns = pa.schema([("k", pa.timestamp("us")), ("v", pa.string())])
    table = table_of(columns=columns)
    for_ever = 253_402_300_799_999_999
    old = pa.array([1, for_ever, -62_135_596_800_000_000], pa.timestamp("us"))
    table.append(pa.table({"k": old, "v": ["old"] * 3}))
    new = pa.table({"k": pa.array([1000, 2000], pa.timestamp("ns")), "v": ["new", "new"]})
    done = table.upsert(new, on=["k"])
    assert (done.rows.inserted, done.rows.updated) == (1, 1)
    finer = table_of(columns=pa.schema([("k", pa.timestamp("ns")), ("v", pa.string())]))
    finer.append(new)
    done = finer.merge(pa.table({"k": old}), on=["k"]).when_matched_delete().run()
    assert done.rows.deleted == 1


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()], ids=str)
def test_a_nan_matches_a_nan_of_other_bits(type: pa.DataType) -> None:
    """The processor makes another of 0.0 / 0.0 than Python has."""
    wide = np.array([0xFFF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    nans = pa.array(np.array([*wide, 1.5]), pa.float64()).cast(type)
    table = table_of(columns=pa.schema([("k", type), ("v", pa.string())]))
    table.append(pa.table({"k": nans, "v": ["old"] * 3}))
    done = table.upsert(pa.table({"k": pa.array([np.nan], type), "v": ["new"]}), on=["k"])
    assert (done.rows.updated, done.rows.inserted) == (2, 0)


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


def test_sources_that_are_none_are_refused() -> None:
    table = table_of(ONE)
    batches = [pa.record_batch({"id": [1], "n": [1]}), pa.record_batch({"n": [2], "id": [2]})]
    with pytest.raises(InvalidInput, match="batches of the source have other columns than the"):
        table.upsert(batches, on=["id"])
    wide = table_of(columns=[("k", "decimal(38, 38)")])
    keys = pa.table({"k": pa.array([Decimal("0.5")], pa.decimal256(76, 1))})
    with pytest.raises(InvalidInput, match="no type in common: cast the source's"):
        wide.merge(keys, on=["k"]).when_matched_delete().run()
    texts = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(InvalidInput, match="a key of the source is not UTF-8 text"):
        table.merge(pa.table({"s": texts}), on=["s"]).when_matched_delete().run()
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
            "table db.rows: the source has more than 100 bytes, which are held in memory: merge it "
            "in parts, set write.merge.source-limit-bytes, or use Spark"
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


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_of_a_dictionary_match_as_those_of_none(unit: str) -> None:
    table = table_of(columns=pa.schema([("k", pa.timestamp("us")), ("v", pa.string())]))
    table.append(pa.table({"k": pa.array([1_000_000], pa.timestamp("us")), "v": ["old"]}))
    new = pa.array([1_000_000, 2_000_000], pa.timestamp("us")).cast(pa.timestamp(unit))
    done = table.upsert(pa.table({"k": new.dictionary_encode(), "v": ["new"] * 2}), on=["k"])
    assert (done.rows.inserted, done.rows.updated) == (1, 1)
