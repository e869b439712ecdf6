"""What an equality delete may be: refused when it is added, told of by `verify`, never misread."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from icetree.errors import CorruptTable, InvalidInput
from icetree.rows.read.equality_files import require_fields_of
from icetree.rows.write.deletes import write_equality_deletes
from icetree.spec.entry.entry import Content, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.table.table import Table
from icetree.tree.changes import Changes, Intent
from tests.rows.lake import new_table

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", StringType()),
    NestedField(3, "x", DoubleType()),
    NestedField(4, "tags", ListType(6, LongType(), element_required=False)),
    NestedField(5, "s", StructType(NestedField(7, "n", LongType()))),
)
EXPRESSION = 8
#: What makes an equality delete by `id` in the partition of `a` a bad one, and what is said of it.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no ids": ({"equality_ids": []}, "equality_ids must name a field to delete by"),
    "an unknown id": ({"equality_ids": [1, 99]}, "deletes by field 99, which no schema has"),
    "an expression": ({"equality_ids": [EXPRESSION]}, f"field {EXPRESSION}, which no schema has"),
    "a float": ({"equality_ids": [3]}, "deletes by x, a floating point number"),
    "a list": ({"equality_ids": [4]}, "deletes by tags, which is a list"),
    "an element": ({"equality_ids": [6]}, "inside a list or a map"),
    "a struct": ({"equality_ids": [5]}, "deletes by s, which is a struct"),
    "no partition": ({"stats": {1: FieldStats(lower=1, upper=1)}}, "v_trunc_1"),
    "two partitions": (
        {"stats": {EXPRESSION: FieldStats(lower="a", upper="b", values=1, nulls=0)}},
        "v_trunc_1",
    ),
    "stats of v": (
        {"stats": {2: FieldStats(lower="a", upper="a", values=1, nulls=0)}},
        "has stats of v, by which it neither deletes nor is partitioned",
    ),
    "a count of v": ({"stats": {2: FieldStats(values=1)}}, "has stats of v"),
}
IN_A = {EXPRESSION: FieldStats(lower="a", upper="a", values=1, nulls=0)}


def table_of_rows(**how: Any) -> Table:
    table = new_table(SCHEMA, partition_by=["truncate(1, v)"], **how)
    rows = [
        {"id": id, "v": v, "x": 0.5, "tags": [id], "s": {"n": id}}
        for id, v in ((1, "aa"), (2, "ab"), (1, "bb"))
    ]
    table.append(pa.Table.from_pylist(rows, table.scan().arrow_schema))
    return table


def delete_of_one(table: Table, **bad: Any) -> Entry:
    """An equality delete of `id` 1 in the partition of `a`, its file written; or a bad one."""
    keys = pa.table({"id": [1], "v": ["a"]})
    [made] = write_equality_deletes(
        keys, ["id"], metadata=table.metadata, store=table.files.store
    ).to_pylist()
    told = {1: FieldStats(lower=1, upper=1, values=1, nulls=0), **IN_A}
    if "stats" in bad:
        bad["stats"] = (told if set(bad["stats"]) == {2} else {}) | bad["stats"]
    facts = {
        "content_type": Content.EQUALITY_DELETES,
        "location": made["location"],
        "partition_spec_id": table.metadata.default_spec_id,
        "record_count": 1,
        "file_size_in_bytes": made["file_size_in_bytes"],
        "equality_ids": [1],
        "stats": told,
    }
    return Entry(**facts | bad)


def ids(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist())


def read(table: Table, where: str | None) -> list[int] | str:
    try:
        return ids(table, where)
    except CorruptTable:
        return "corrupt"


def add_unchecked(table: Table, *entries: Entry) -> None:
    """Commit as another writer might, who checks nothing."""
    with table.transaction() as tx:
        added = to_table(entries, table.metadata.shape())
        tx.apply(Changes(intent=Intent.ROW_DELTA, added=added))


def test_a_sound_one_is_taken_and_applies() -> None:
    table = table_of_rows()
    table.row_delta([delete_of_one(table)])
    assert ids(table) == [1, 2]
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("what", BAD)
def test_a_bad_one_is_refused_with_a_sentence_and_changes_nothing(what: str) -> None:
    table = table_of_rows()
    bad, sentence = BAD[what]
    before = table.state
    with pytest.raises(InvalidInput, match=sentence):
        table.row_delta([delete_of_one(table, **bad)])
    assert table.refresh().state == before
    assert ids(table) == [1, 1, 2]


@pytest.mark.parametrize("leafy", [False, True])
@pytest.mark.parametrize("what", [what for what in BAD if what != "no ids"])
def test_verify_tells_of_a_bad_one_and_reading_is_right_or_corrupt(what: str, leafy: bool) -> None:
    table = table_of_rows(properties={"write.root.max-delete-entries": "1"} if leafy else {})
    bad, sentence = BAD[what]
    add_unchecked(table, *(delete_of_one(table, **bad) for _ in range(2 if leafy else 1)))
    says_nothing = "v" in what.split()
    rules = " ".join(each.rule for each in table.verify().findings)
    assert sentence in rules or (leafy and says_nothing)  # new leaves do not have such stats
    for where, wanted in ((None, [1, 2]), ("v = 'aa' or v = 'bb'", [1])):
        assert read(table, where) in ([wanted] if says_nothing else [wanted, "corrupt"])


def test_ids_that_are_empty_make_a_manifest_corrupt() -> None:
    table = table_of_rows()
    with pytest.raises((CorruptTable, InvalidInput), match="field to delete by"):
        add_unchecked(table, delete_of_one(table, equality_ids=[]))


def test_an_unpartitioned_one_needs_no_partition_and_may_not_tell_of_one() -> None:
    table = table_of_rows()
    scoped = delete_of_one(table)
    with table.edit_spec() as spec:
        spec.remove("truncate(1, v)")
    plain = replace(scoped, stats={}, partition_spec_id=table.metadata.default_spec_id)
    with pytest.raises(InvalidInput, match="has stats of v_trunc_1, by which it neither"):
        table.row_delta([replace(plain, stats=IN_A)])
    table.row_delta([plain])
    assert ids(table) == [2]


def test_a_file_without_a_column_it_deletes_by_is_refused_or_corrupt() -> None:
    """A column that is not there reads as null: rows with nulls would go."""
    table = table_of_rows()
    table.append(pa.Table.from_pylist([{"id": 9, "v": "ac"}], table.scan().arrow_schema))
    lacking = replace(delete_of_one(table), equality_ids=[1, 7], stats=IN_A)
    with pytest.raises(InvalidInput, match=r"it deletes by s\.n, but lacks it"):
        table.row_delta([lacking])
    add_unchecked(table, lacking)
    assert any(
        "it deletes by s.n, but lacks it" in f.rule for f in table.verify(deep=True).findings
    )
    with pytest.raises(CorruptTable, match=r"it deletes by s\.n, but lacks it"):
        ids(table)


def test_what_a_file_lacks_is_asked_again_under_another_name_mapping() -> None:
    def mapped(to: str) -> dict[str, str]:
        return {"schema.name-mapping.default": json.dumps([{"field-id": 1, "names": [to]}])}

    table = table_of_rows(properties=mapped("key"))
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"key": [1]}), out)
    content = out.getvalue().to_pybytes()
    table.files.store.write_new(f"{table.location}/data/plain.parquet", content)
    size = {"location": "data/plain.parquet", "file_size_in_bytes": len(content)}
    table.row_delta([replace(delete_of_one(table), **size)])
    for _ in range(2):
        table.set_properties(mapped("other"))
        with pytest.raises(CorruptTable, match="it deletes by id, but lacks it"):
            require_fields_of(table.scan().plan().deletes, table.files, table.metadata)
        table.set_properties(mapped("key"))
        require_fields_of(table.scan().plan().deletes, table.files, table.metadata)
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("ids", [["a"], "ab", 3, [True], [1 << 40]])
def test_ids_that_are_no_numbers_are_refused(ids: Any) -> None:
    table = table_of_rows()
    with pytest.raises(InvalidInput, match="equality_ids cannot be stored as"):
        table.row_delta([delete_of_one(table, equality_ids=ids)])


def test_a_file_that_is_not_there_or_not_one_of_rows_is_refused() -> None:
    table = table_of_rows()
    with pytest.raises(InvalidInput, match=r"nowhere\.parquet is not there"):
        table.row_delta([delete_of_one(table, location="data/nowhere.parquet")])
    table.files.store.write_new(f"{table.location}/data/junk.parquet", b"junk")
    with pytest.raises(InvalidInput, match=r"junk\.parquet is no file that could be added"):
        table.row_delta([delete_of_one(table, location="data/junk.parquet")])


@pytest.mark.parametrize("column", ["x", "tags", "s"])
def test_none_is_written_by_what_cannot_be_compared(column: str) -> None:
    table = table_of_rows()
    with pytest.raises(InvalidInput, match=f"column '{column}' is .*: it cannot be deleted by"):
        write_equality_deletes(
            pa.table({column: [None]}),
            [column],
            metadata=table.metadata,
            store=table.files.store,
        )


def test_stats_that_say_nothing_are_left_behind_by_the_next_commits() -> None:
    table = table_of_rows(properties={"write.root.max-delete-entries": "1"})
    loose = {**IN_A, 2: FieldStats(lower="zz", upper="zz", values=1, nulls=0)}
    add_unchecked(table, replace(delete_of_one(table), stats=loose))
    assert "has stats of v" in str(table.verify())
    table.append(pa.Table.from_pylist([{"id": 3, "v": "ac"}], table.scan().arrow_schema))
    assert table.verify(snapshots="current").findings == ()
    assert ids(table, "v = 'aa'") == []
