"""Rows that are appended come back, whatever their type, and any Parquet reader finds them."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UnknownType,
)

from icetree.errors import InvalidInput
from icetree.spec.entry.stats import column
from tests.rows.lake import files, new_table, rows

UTC = dt.timezone.utc
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [0.5, float("nan"), float("-inf"), -0.0]),
    "double": (pa.float64(), [1e300, float("nan"), float("inf"), -0.0]),
    "decimal": (pa.decimal128(38, 9), [Decimal("-1.000000001"), Decimal(10) ** 28]),
    "small decimal": (pa.decimal128(7, 2), [Decimal("-99999.99"), Decimal("0.01")]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "time": (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999)]),
    "timestamp": (pa.timestamp("us"), [-(10**16), 0, 10**15]),
    "timestamptz": (pa.timestamp("us", tz="UTC"), [dt.datetime(1969, 12, 31, 23, tzinfo=UTC)]),
    "timestamp_ns": (pa.timestamp("ns"), [1, -1, 2**62]),
    "timestamptz_ns": (pa.timestamp("ns", tz="UTC"), [1, -1, 2**62]),
    "string": (pa.string(), ["", "grün", "\U0001f9ca" * 20]),
    "uuid": (pa.uuid(), [uuid.UUID(int=0).bytes, uuid.UUID(int=2**128 - 1).bytes]),
    "fixed": (pa.binary(3), [b"abc", b"\xff\xff\xff"]),
    "binary": (pa.binary(), [b"", b"\x00\xff" * 20]),
    "struct": (
        pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())]),
        [{"a": 1, "b": None}, {"a": 2, "b": "x"}],
    ),
    "list": (pa.list_(pa.float32()), [[], [1.5, None]]),
    "map": (pa.map_(pa.string(), pa.list_(pa.int64())), [[], [("a", [1, None]), ("b", None)]]),
    "deep": (
        pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.struct([("d", pa.date32())])))])),
        [[{"m": [(1, {"d": dt.date(2026, 1, 1)}), (2, None)]}, None]],
    ),
}


def in_nanos(data: pa.Table) -> pa.Table:
    """Return the data with timestamps as numbers, since Python's have no nanoseconds."""
    for at, field in enumerate(data.schema):
        if pa.types.is_timestamp(field.type):
            data = data.set_column(at, field.name, data.column(at).cast(pa.int64()))
    return data


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_type_come_back(name: str) -> None:
    type, values = VALUES[name]
    table = new_table(pa.schema([pa.field("c", type)]))
    data = pa.table({"c": pa.array([*values, None], type)})
    table.append(data)
    found = table.scan().to_arrow()
    assert found.schema.field("c").type == table.scan().arrow_schema.field("c").type
    assert rows(in_nanos(found)) == rows(in_nanos(data))


@pytest.mark.parametrize("name", VALUES)
def test_a_slice_of_many_batches_comes_back(name: str) -> None:
    type, values = VALUES[name]
    table = new_table(pa.schema([pa.field("c", type)]))
    part = pa.table({"c": pa.array([None, *values, *values, None], type)}).slice(1)
    data = pa.concat_tables([part, part.slice(1, 1)])
    table.append(data.to_reader())
    assert rows(in_nanos(table.scan().to_arrow())) == rows(in_nanos(data))


def test_uuids_inside_other_columns_are_taken_as_plain_bytes_and_come_back_as_uuids() -> None:
    def schema(type: pa.DataType) -> pa.Schema:
        return pa.schema([("c", pa.list_(pa.struct([("u", type)])))])

    table = new_table(schema(pa.uuid()))
    id = uuid.UUID(int=7)
    table.append(pa.table({"c": [[{"u": id.bytes}, None], None]}, schema(pa.binary(16))))
    assert table.scan().to_arrow()["c"].to_pylist() == [[{"u": id}, None], None]


def test_a_column_of_unknown_type_is_not_stored_and_reads_as_null() -> None:
    schema = Schema(
        NestedField(1, "a", IntegerType(), required=True),
        NestedField(2, "n", UnknownType(), required=False),
    )
    table = new_table(schema)
    table.append(pa.table({"a": pa.array([1], pa.int32()), "n": pa.nulls(1)}))
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "n": None}]


NESTED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(
        2,
        "s",
        StructType(
            NestedField(3, "x", StringType(), required=True),
            NestedField(4, "f", FixedType(4), required=False),
        ),
        required=False,
    ),
    NestedField(5, "l", ListType(6, BinaryType(), element_required=True), required=False),
    NestedField(
        7, "m", MapType(8, StringType(), 9, TimestampType(), value_required=False), required=True
    ),
    NestedField(10, "t", TimestamptzType(), required=False),
)


def test_files_have_the_field_ids_and_types_that_pyiceberg_expects() -> None:
    table = new_table(NESTED)
    table.append(
        pa.table(
            {
                "id": [1, 2],
                "s": pa.array(
                    [{"x": "a", "f": b"1234"}, None], table.scan().arrow_schema.field("s").type
                ),
                "l": pa.array([[b"a"], None], pa.list_(pa.binary())),
                "m": pa.array([[("k", 5)], []], pa.map_(pa.string(), pa.timestamp("us"))),
            }
        )
    )
    [file] = files(table)
    stored = pq.read_table(table.files.store.open(file))
    assert stored["id"].to_pylist() == [1, 2]
    assert stored["s"].to_pylist() == [{"x": "a", "f": b"1234"}, None]
    with_ids = pq.read_schema(table.files.store.open(file))
    assert pyarrow_to_schema(with_ids).as_struct() == table.schema.as_struct()


def test_split_offsets_are_where_the_row_groups_start() -> None:
    table = new_table(
        pa.schema([("a", pa.int64())]), properties={"write.parquet.row-group-limit": "10"}
    )
    table.append(pa.table({"a": range(25)}))
    [file] = files(table)
    footer = pq.read_metadata(table.files.store.open(file))
    starts = [
        footer.row_group(at).column(0).dictionary_page_offset
        or footer.row_group(at).column(0).data_page_offset
        for at in range(footer.num_row_groups)
    ]
    assert len(starts) == 3
    assert table.scan().plan().tasks["split_offsets"].to_pylist() == [starts]


def test_large_data_becomes_several_files_of_about_the_target_size() -> None:
    table = new_table(
        pa.schema([("a", pa.int64())]), properties={"write.target-file-size-bytes": "8000"}
    )
    data = pa.table({"a": range(10_000)})
    table.append(data)
    counts = table.scan().plan().tasks["record_count"].to_pylist()
    assert counts == [1000] * 10
    assert table.scan().to_arrow().column("a").to_pylist() == list(range(10_000))


def test_rows_are_sorted_by_the_tables_order() -> None:
    table = new_table(
        pa.schema([("a", pa.float64()), ("b", pa.string())]),
        order_by=["a desc nulls last", "truncate(1, b) nulls first"],
    )
    data = pa.table(
        {
            "a": [1.0, None, float("nan"), 2.0, 1.0, 1.0],
            "b": ["za", "a", "b", "c", None, "ab"],
        }
    )
    table.append(data)
    found = table.scan().to_arrow()
    assert found["b"].to_pylist() == ["b", "c", None, "ab", "za", "a"]
    assert table.scan().plan().tasks["sort_order_id"].to_pylist() == [1]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an extra column": ({"id": [1], "other": [2]}, "no column 'other'.*schema first"),
    "a missing required column": ({"name": ["a"]}, "no column id, which is required"),
    "another type": ({"id": ["a"]}, "column id is string in the data, but long in the table"),
    "a null in a required column": ({"id": pa.array([1, None])}, "id is required, but the data"),
    "a wider integer": (
        {"id": [1], "small": pa.array([1], pa.int64())},
        "column small is int64 in the data, but int in the table",
    ),
    "a zone that is not there": (
        {"id": [1], "at": pa.array([1], pa.timestamp("us"))},
        "at is timestamp.* but timestamptz in the table: give its values a time zone",
    ),
    "a unit that is too fine": (
        {"id": [1], "day": pa.array([1], pa.timestamp("ns"))},
        "column day is timestamp.ns.*without loss",
    ),
    "an extra field of a struct": (
        {"id": [1], "s": [{"x": 1, "y": 2}]},
        "s has no field 'y'",
    ),
    "a null in a required field of a struct": (
        {"id": [1], "s": pa.array([{"x": None}], pa.struct([("x", pa.int64())]))},
        r"column s\.x is required",
    ),
}
STRICT = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("small", pa.int32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("day", pa.timestamp("us")),
        pa.field("name", pa.string()),
        pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable=False)])),
    ]
)


@pytest.mark.parametrize("case", REFUSED)
def test_data_that_does_not_fit_is_refused_and_leaves_nothing_behind(case: str) -> None:
    columns, message = REFUSED[case]
    table = new_table(STRICT)
    before = [file.location for file in table.files.store.list("memory://lake")]
    with pytest.raises(InvalidInput, match=message):
        table.append(pa.table(columns))
    assert [file.location for file in table.files.store.list("memory://lake")] == before
    assert table.snapshot() is None


BAD_TEXT = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
PAIR = pa.array([0, 1], pa.int32())
IMPOSSIBLE: dict[str, tuple[pa.Array, str]] = {
    "text": (BAD_TEXT, "column x has values that are no UTF-8 text"),
    "text in a dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([0]), BAD_TEXT),
        "column x has values that are no UTF-8 text",
    ),
    "large text": (
        BAD_TEXT.view(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
        "column x has values that are no UTF-8 text",
    ),
    "text in a struct": (
        pa.StructArray.from_arrays([BAD_TEXT], ["s"]),
        r"column x\.s has values that are no UTF-8 text",
    ),
    "text in a list": (
        pa.ListArray.from_arrays(PAIR, BAD_TEXT),
        r"column x\.element has values that are no UTF-8 text",
    ),
    "text in a map": (
        pa.MapArray.from_arrays(PAIR, BAD_TEXT, pa.array([1])),
        r"column x\.key has values that are no UTF-8 text",
    ),
    "a time before midnight": (
        pa.array([-1]).view(pa.time64("us")),
        "column x has values that are no time: .*-1",
    ),
    "a time after midnight": (
        pa.array([10**15]).view(pa.time64("us")),
        "column x has values that are no time: .*1000000000000000",
    ),
}


@pytest.mark.parametrize("mode", ["none", "counts", "truncate(16)", "full"])
@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_value_that_its_type_does_not_allow_is_refused_and_leaves_nothing_behind(
    case: str, mode: str
) -> None:
    column, message = IMPOSSIBLE[case]
    type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    table = new_table(pa.schema([("x", type)]), properties={"write.metadata.metrics.default": mode})
    before = [file.location for file in table.files.store.list("memory://lake")]
    with pytest.raises(InvalidInput, match=message):
        table.append(pa.table({"x": column}))
    assert [file.location for file in table.files.store.list("memory://lake")] == before


def test_what_is_not_among_the_rows_is_not_looked_at() -> None:
    good = pa.array(["a"])
    texts = pa.concat_arrays([good, BAD_TEXT, good])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), texts, pa.array([1, 2, 3]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), texts)
    structs = pa.StructArray.from_arrays([texts], ["s"], mask=pa.array([False, True, False]))
    whole = pa.table({"m": maps, "l": lists, "s": structs})
    table = new_table(whole.schema)
    table.append(whole.slice(2))
    table.append(whole.slice(0, 1))
    assert table.scan().to_arrow()["l"].to_pylist() == [["a"], ["a"]]


def test_types_that_lose_nothing_are_taken() -> None:
    table = new_table(STRICT)
    table.append(
        pa.table(
            {
                "name": pa.array(["a", "a", None]).dictionary_encode(),
                "id": pa.array([1, 2, 3], pa.uint32()),
                "small": pa.array([1, 2, 3], pa.int8()),
                "at": pa.array([1, 2, 3], pa.timestamp("ms", tz="Europe/Berlin")),
                "day": pa.array([1000, 2000, 3000], pa.timestamp("ns")),
                "s": pa.nulls(3),
            }
        )
    )
    found = table.scan().to_arrow()
    assert found["id"].to_pylist() == [1, 2, 3]
    assert found["name"].to_pylist() == ["a", "a", None]
    assert found["at"].cast(pa.int64()).to_pylist() == [1000, 2000, 3000]
    assert found["day"].cast(pa.int64()).to_pylist() == [1, 2, 3]
    assert found["s"].to_pylist() == [None] * 3


def test_a_failing_transaction_deletes_the_files_it_wrote() -> None:
    table = new_table(pa.schema([("a", pa.int64())]))

    def fail() -> None:
        with table.transaction() as tx:
            tx.append(pa.table({"a": [1]}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not [f for f in table.files.store.list("memory://lake") if "/data/" in f.location]


def test_an_append_under_a_known_key_leaves_no_second_file() -> None:
    table = new_table(pa.schema([("a", pa.int64())]))
    for _ in range(2):
        table.append(pa.table({"a": [1]}), key="job")
    assert table.scan().to_arrow().num_rows == 1
    data = [f for f in table.files.store.list("memory://lake") if "/data/" in f.location]
    assert len(data) == 1


def test_lineage_of_moved_rows_is_kept_and_that_of_new_rows_is_inherited() -> None:
    from icetree.rows.write.write import write_files

    table = new_table(pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [10, 11]}))
    moved = pa.table(
        {"a": [10, 12], "_row_id": [0, None], "_last_updated_sequence_number": [1, None]}
    )
    entries = write_files(
        moved, metadata=table.metadata, store=table.files.store, keep_lineage=True
    )
    table.append_files(entries)
    wanted = ["a", "_row_id", "_last_updated_sequence_number"]
    found = table.scan(columns=wanted).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (10, 0, 1),
        (11, 1, 1),
        (10, 0, 1),
        (12, 3, 2),
    ]
    assert column(1, "lower") in entries.column_names


def test_maps_come_back_whose_keys_are_laid_out_another_way() -> None:
    """Arrow ends a process over keys that it has not counted the nulls of."""
    type = pa.map_(pa.string(), pa.string())
    given = pa.table({"m": pa.array([[("a", "1"), ("b", None)], None, []] * 2, type)})
    table = new_table(given.schema)
    large = given.cast(pa.schema({"m": pa.map_(pa.large_string(), pa.string())}))
    table.append(large.take(pa.array([0, 4])))
    assert rows(table.scan().to_arrow()) == rows(given.take(pa.array([0, 4])))
