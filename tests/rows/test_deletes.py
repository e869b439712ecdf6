"""Rows that deletes remove are not read: DVs, position deletes, equality deletes."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec import puffin
from icetree.errors import CorruptTable, InvalidInput
from icetree.rows.read.deletes import Deletes
from icetree.rows.write.deletes import write_data_vectors, write_equality_deletes
from icetree.spec.entry.entry import Content, Entry
from icetree.spec.entry.stats import column
from icetree.table.table import Table
from icetree.tree.check.check import check
from icetree.tree.plan.plan import plan
from tests.effort import law
from tests.rows.lake import foreign_delete, new_table

NUMBERS = pa.schema([("n", pa.int64()), ("p", pa.string())])


def numbers(*, start: int = 0, count: int = 10) -> pa.Table:
    values = list(range(start, start + count))
    return pa.table({"n": values, "p": ["even" if n % 2 == 0 else "odd" for n in values]})


def delete_rows(table: Table, **positions: list[int]) -> None:
    """Delete rows by their position in the first, second, … file of the table."""
    shape = table.metadata.shape()
    root = table.files.root(table.snapshot(), shape)
    tasks = plan(root, table.files.reader(shape), shape, stats_columns=True).tasks
    names = tasks["location"].to_pylist()
    named = {names[int(file.removeprefix("file"))]: rows for file, rows in positions.items()}
    entries = write_data_vectors(
        named, tasks=tasks, metadata=table.metadata, store=table.files.store
    )
    table.row_delta(entries)


def found(table: Table, where: str | None = None) -> list[int]:
    return table.scan(where).to_arrow()["n"].to_pylist()


def require_sound(table: Table) -> None:
    shape = table.metadata.shape()
    root = table.files.root(table.snapshot(), shape)
    assert check(root, table.files.reader(shape), shape) == []


def test_a_dv_removes_rows_by_position_across_row_groups() -> None:
    table = new_table(NUMBERS, properties={"write.parquet.row-group-limit": "3"})
    table.append(numbers())
    delete_rows(table, file0=[0, 2, 3, 9])
    assert found(table) == [1, 4, 5, 6, 7, 8]
    assert found(table, "n > 4 and p = 'odd'") == [5, 7]
    kept = table.scan(columns=["_pos", "_row_id"]).to_arrow()
    assert kept["_pos"].to_pylist() == kept["_row_id"].to_pylist() == [1, 4, 5, 6, 7, 8]
    assert table.scan().count(metadata_only=True) == 6


def test_a_second_dv_keeps_what_the_first_one_removed() -> None:
    table = new_table(NUMBERS)
    table.append(numbers())
    delete_rows(table, file0=[1])
    delete_rows(table, file0=[2, 3])
    assert found(table) == [0, 4, 5, 6, 7, 8, 9]
    assert table.scan().plan().tasks["dv_cardinality"].to_pylist() == [3]


def test_one_puffin_file_holds_the_dvs_of_many_files_with_their_partitions() -> None:
    table = new_table(NUMBERS, partition_by=["p", "bucket(2, n)"])
    table.append(numbers())
    before = table.scan().plan().tasks
    delete_rows(table, file0=[0], file1=[0])
    require_sound(table)
    after = table.scan().plan().tasks
    assert len(set(after["dv_location"].to_pylist()) - {None}) == 1
    assert after["dv_offset"].null_count == before.num_rows - 2
    live = table.files.root(table.snapshot(), table.metadata.shape())
    vectors = live.filter(pa.compute.equal(live["content_type"], int(Content.POSITION_DELETES)))
    for field_id in table.metadata.shape().partition_fields(0):
        assert vectors[column(field_id, "lower")].null_count == 0
        assert vectors[column(field_id, "lower")] == vectors[column(field_id, "upper")]
    assert len(found(table)) == 8


def test_deleting_a_row_that_is_not_there_is_refused() -> None:
    table = new_table(NUMBERS)
    table.append(numbers())
    with pytest.raises(InvalidInput, match="has 10 rows: there is no row 10"):
        delete_rows(table, file0=[10])


def test_a_dv_that_does_not_hold_what_its_entry_says_is_corrupt() -> None:
    table = new_table(NUMBERS)
    table.append(numbers())
    stored = table.scan().plan().tasks["location"][0].as_py()
    file = puffin.write([puffin.dv_blob(puffin.BitMap([1, 2]), referenced_data_file=stored)])
    table.files.store.write_new(f"{table.location}/data/dv.puffin", file.data)
    table.row_delta(
        [
            Entry(
                content_type=Content.POSITION_DELETES,
                location=f"{table.location}/data/dv.puffin",
                file_format="puffin",
                file_size_in_bytes=len(file.data),
                dv_offset=file.blobs[0].offset,
                dv_size_in_bytes=file.blobs[0].length,
                record_count=3,
                referenced_file=f"{table.location}/{stored}",
            )
        ]
    )
    with pytest.raises(CorruptTable, match=r"dv\.puffin: the DV of .* has 2 rows.*says 3"):
        table.scan().to_arrow()


def test_position_delete_files_of_v2_remove_the_rows_they_name() -> None:
    table = new_table(NUMBERS)
    table.append(numbers())
    found_plan = table.scan().plan()
    [location] = found_plan.tasks["location"].to_pylist()
    full = f"{table.location}/{location}"
    ids = {"file_path": "2147483546", "pos": "2147483545"}
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("pos", pa.int64(), nullable=False),
        ]
    )
    schema = pa.schema([f.with_metadata({"PARQUET:field_id": ids[f.name]}) for f in schema])
    sink = io.BytesIO()
    pq.write_table(pa.table([[full, "elsewhere", full], [7, 1, 2]], schema=schema), sink)
    table.files.store.write_new(f"{table.location}/data/deletes.parquet", sink.getvalue())
    deletes = Deletes(
        files=[
            {"location": "data/deletes.parquet", "file_format": "parquet", "key_metadata": None}
        ],
        store=table.files.store,
        metadata=table.metadata,
        schema=table.schema,
        mapping=None,
    )
    [task] = found_plan.tasks.to_pylist()
    removed = deletes.removed_rows({**task, "position_deletes": [0]}, full)
    assert removed.tolist() == [2, 7]
    with pytest.raises(CorruptTable, match="names row 7, but it has 5 rows"):
        deletes.removed_rows({**task, "position_deletes": [0], "record_count": 5}, full)


def delete_equal(table: Table, data: pa.Table, columns: list[str], **how: bool) -> None:
    entries = write_equality_deletes(
        data, columns, metadata=table.metadata, store=table.files.store, **how
    )
    table.row_delta(entries)


def test_an_equality_delete_reaches_older_rows_of_its_partition_alone() -> None:
    table = new_table(NUMBERS, partition_by=["p"])
    table.append(pa.table({"n": [1, 1, 2, None], "p": ["a", "b", "a", "a"]}, NUMBERS))
    delete_equal(table, pa.table({"n": [1, None], "p": ["a", "a"]}, NUMBERS), ["n"])
    table.append(pa.table({"n": [1], "p": ["a"]}, NUMBERS))
    require_sound(table)
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == [
        "{'n': 1, 'p': 'a'}",
        "{'n': 1, 'p': 'b'}",
        "{'n': 2, 'p': 'a'}",
    ]
    with pytest.raises(InvalidInput, match="count without metadata_only"):
        table.scan().count(metadata_only=True)
    assert table.scan().count() == 3
    with pytest.raises(InvalidInput, match="no unpartitioned spec"):
        delete_equal(table, pa.table({"n": [1]}), ["n"], everywhere=True)


def test_an_equality_delete_may_compare_many_columns_of_many_values() -> None:
    """All that could be combined is more than any number tells; what deletes have is not."""
    count, names = 2**13, list("abcde")
    rows = pa.table({name: [5 * n + at for n in range(count)] for at, name in enumerate(names)})
    table = new_table(rows.schema)
    table.append(rows)
    # Of each pair of rows, only one key is as some row's: the other takes a value of a neighbour.
    mixed = rows.set_column(4, "e", pa.array([5 * (n ^ (n & 1)) + 4 for n in range(count)]))
    places = {"metadata": table.metadata, "store": table.files.store}
    table.row_delta(write_equality_deletes(mixed, names, **places))
    assert table.scan().to_arrow()["a"].to_pylist() == [5 * n for n in range(1, count, 2)]


def test_an_equality_delete_by_a_column_that_was_dropped_or_widened_still_applies() -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.string())])
    table = new_table(schema)
    table.append(pa.table([[1, 2, 3], [1, 2, 3], ["x", "y", "z"]], schema=schema))
    delete_equal(table, pa.table({"a": pa.array([1], pa.int32())}), ["a"])
    delete_equal(table, pa.table({"b": pa.array([3], pa.int32())}), ["b"])
    with table.edit_schema() as edit:
        edit.drop("a").widen("b", "long")
    assert table.scan(columns=["c"]).to_arrow()["c"].to_pylist() == ["y"]


#: Few values, so that a row often has both of a delete's, or one of each of two deletes'.
KEYS = st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, 0.0, -0.0, float("nan")]))


@law(25)
@given(
    st.lists(KEYS, min_size=6, max_size=12, unique=True),
    st.lists(KEYS, min_size=2, max_size=4, unique=True),
    st.sampled_from([["a", "b"], ["b", "a"], ["a"], ["b"]]),
)
def test_an_equality_delete_removes_exactly_the_rows_with_an_equal_key(
    rows: list[tuple[object, object]], keys: list[tuple[object, object]], columns: list[str]
) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])

    def table_of(pairs: list[tuple[object, object]]) -> pa.Table:
        return pa.table([[a for a, _ in pairs], [b for _, b in pairs]], schema=schema)

    table = new_table(schema)
    table.append(table_of(rows))
    with table.transaction() as tx:
        # By floating point numbers, which others may have done: new ones are refused.
        tx.apply(foreign_delete(table, table_of(keys).select(columns)))

    # As text nulls equal nulls, NaNs equal NaNs, and -0.0 is not 0.0: what the format asks for.
    def key(pair: tuple[object, object]) -> list[str]:
        return [repr(dict(zip("ab", pair, strict=True))[name]) for name in columns]

    gone = [key(pair) for pair in keys]
    left = sorted(repr(pair) for pair in rows if key(pair) not in gone)
    read = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(map(repr, read)) == left
