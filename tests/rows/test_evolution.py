"""Old files under new schemas: columns are found by id, or by what is known of those that lack it."""

from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, NestedField, StringType, StructType

from icetree.errors import CorruptTable, NotFound
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.table.table import Table
from tests.rows.lake import new_table, write_file

PLAIN = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float32())])


def plain() -> Table:
    table = new_table(PLAIN)
    table.append(pa.table({"a": [1, 2], "b": ["x", None], "c": [0.5, None]}, PLAIN))
    return table


def add_file(table: Table, name: str, data: pa.Table, **facts: Any) -> None:
    """Add a file that another writer made, ids or no ids."""
    sink = io.BytesIO()
    if facts.get("file_format") == "orc":
        orc.write_table(data, sink)
    else:
        pq.write_table(data, sink, row_group_size=2)
    write_file(table, name, sink.getvalue())
    table.append_files(
        [
            Entry(
                location=f"{table.location}/data/{name}",
                record_count=data.num_rows,
                file_size_in_bytes=len(sink.getvalue()),
                **facts,
            )
        ]
    )


def test_renamed_moved_dropped_and_added_columns_are_read_by_id() -> None:
    table = plain()
    with table.edit_schema() as edit:
        edit.rename("a", "b2").drop("b").add("a", "string").move_first("c")
    table.append(pa.table({"a": ["new"], "b2": pa.array([9], pa.int32())}))
    assert table.scan().to_arrow().to_pylist() == [
        {"c": 0.5, "b2": 1, "a": None},
        {"c": None, "b2": 2, "a": None},
        {"c": None, "b2": 9, "a": "new"},
    ]
    assert table.scan("b2 > 1 and a is null").to_arrow()["b2"].to_pylist() == [2]


def test_an_older_snapshot_is_read_with_the_schema_of_its_time() -> None:
    table = plain()
    then = table.snapshot()
    assert then is not None
    with table.edit_schema() as edit:
        edit.drop("b").rename("a", "z")
    table.append(pa.table({"z": pa.array([3], pa.int32())}))
    scan = table.scan("a = 2", at=then.snapshot_id)
    assert scan.to_arrow().to_pylist() == [{"a": 2, "b": None, "c": None}]
    assert table.scan(columns=["z"]).to_arrow().to_pylist() == [{"z": 1}, {"z": 2}, {"z": 3}]
    with pytest.raises(NotFound, match=r"no column 'b';.*z, c,.*_row_id"):
        table.scan(columns=["b"])


def test_promoted_columns_are_widened_and_filtered_as_the_new_type() -> None:
    schema = pa.schema(
        [("i", pa.int32()), ("f", pa.float32()), ("d", pa.decimal128(5, 2)), ("day", pa.date32())]
    )
    table = new_table(schema)
    table.append(pa.table([[1], [0.5], [Decimal("1.25")], [dt.date(2026, 1, 2)]], schema=schema))
    with table.edit_schema() as edit:
        edit.widen("i", "long").widen("f", "double")
        edit.widen("d", "decimal(9, 2)").widen("day", "timestamp")
    found = table.scan("i = 1 and day >= '2026-01-02T00:00:00' and d < 1.30").to_arrow()
    assert found.schema.types == [
        pa.int64(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.timestamp("us"),
    ]
    assert found.num_rows == 1
    assert found["day"].cast(pa.date32()).to_pylist() == [dt.date(2026, 1, 2)]


@pytest.mark.parametrize("at_root", ["1000", "1"])
def test_a_day_that_nanoseconds_cannot_tell_costs_its_own_row_alone(at_root: str) -> None:
    schema = pa.schema([("day", pa.date32()), ("n", pa.int64())])
    table = new_table(schema, properties={"write.root.max-data-entries": at_root})
    days = [dt.date(1, 1, 1), dt.date(2026, 1, 2), dt.date(9999, 12, 31), None]
    for n, day in enumerate(days):
        table.append(pa.table([[day], [n]], schema=schema))
    with table.edit_schema() as edit:
        edit.widen("day", "timestamp_ns")
    table.append(table.scan("n = 1").to_arrow())
    assert table.scan(columns=["n"]).to_arrow()["n"].to_pylist().count(1) == 2
    assert table.scan("day = '2026-01-02T00:00:00'").to_arrow()["n"].to_pylist() == [1, 1]
    assert table.scan("day > '2026-01-02T00:00:00'").count() == 1
    assert table.scan("day is null").to_arrow()["n"].to_pylist() == [3]
    assert table.verify().is_clean
    with pytest.raises(CorruptTable, match="day is not timestamp_ns"):
        table.scan("day < '2026-01-02T00:00:00'", columns=["day"]).to_arrow()


DEFAULTS: dict[str, Any] = {
    "boolean": True,
    "int": 7,
    "double": 0.25,
    "decimal(9, 2)": Decimal("1.25"),
    "date": dt.date(2026, 1, 2),
    "time": dt.time(1, 2, 3, 4),
    "timestamptz": dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone.utc),
    "string": "grün",
    "uuid": uuid.UUID(int=5),
    "fixed[2]": b"\xff\x00",
    "binary": b"\x01",
}


@pytest.mark.parametrize("type", DEFAULTS)
def test_rows_from_before_a_column_have_its_default(type: str) -> None:
    table = plain()
    with table.edit_schema() as edit:
        edit.add("new", type, default=DEFAULTS[type])
    table.append(pa.table({"a": pa.array([3], pa.int32())}))
    assert table.scan().to_arrow()["new"].to_pylist() == [DEFAULTS[type]] * 3
    assert table.scan("new is not null").count() == 3


def test_a_field_added_inside_structs_lists_and_maps_is_null_in_old_rows() -> None:
    inner = pa.struct([("x", pa.int32())])
    schema = pa.schema([("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    table = new_table(schema)
    one = {"x": 1}
    table.append(pa.table([[one, None], [[one, None], None], [[("k", one)], None]], schema=schema))
    with table.edit_schema() as edit:
        edit.add("s.y", "string").rename("s.x", "z").move_first("s.y")
        edit.add("l.element.y", "long", default=5)
        edit.add("m.value.y", "string")
    assert table.scan().to_arrow().to_pylist() == [
        {
            "s": {"y": None, "z": 1},
            "l": [{"x": 1, "y": 5}, None],
            "m": [("k", {"x": 1, "y": None})],
        },
        {"s": None, "l": None, "m": None},
    ]
    assert table.scan("s.z = 1", columns=["s.y"]).to_arrow().to_pylist() == [{"s": {"y": None}}]


def test_a_struct_of_which_the_file_has_no_wanted_field_still_tells_what_is_null() -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.int32())]))])
    table = new_table(schema)
    table.append(pa.table([[{"x": 1}, None]], schema=schema))
    with table.edit_schema() as edit:
        edit.add("s.y", "string", default="d")
    found = table.scan(columns=["s.y"]).to_arrow()
    assert found.to_pylist() == [{"s": {"y": "d"}}, {"s": None}]


def test_a_file_that_lacks_a_required_column_is_corrupt() -> None:
    table = new_table(Schema(NestedField(1, "a", IntegerType(), required=True)))
    ids = pa.schema([pa.field("b", pa.int32(), metadata={"PARQUET:field_id": "2"})])
    add_file(table, "x.parquet", pa.table([[1]], schema=ids))
    with pytest.raises(CorruptTable, match=r"x\.parquet: it lacks the required column a"):
        table.scan().to_arrow()


def test_files_without_ids_are_read_by_the_tables_name_mapping() -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("s", pa.struct([("x", pa.int32())])), ("l", pa.list_(pa.string()))]
    )
    data = pa.table(
        {"other": [0, 0, 0], "alpha": [1, 2, 3], "s": [{"x": 5}, None, {"x": 6}], "l": [["e"]] * 3}
    ).cast(
        pa.schema(
            [
                ("other", pa.int64()),
                ("alpha", pa.int32()),
                ("s", pa.struct([("x", pa.int32())])),
                ("l", pa.list_(pa.string())),
            ]
        )
    )
    table = new_table(schema)
    assert [field.field_id for field in table.schema.fields] == [1, 2, 3]
    add_file(table, "plain.parquet", data)
    with pytest.raises(CorruptTable, match=r"no field ids: the table needs 'schema\.name-mapping"):
        table.scan().to_arrow()
    by_name = [
        {"field-id": 1, "names": ["a", "alpha"]},
        {"field-id": 2, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}]},
        {"field-id": 3, "names": ["l"], "fields": [{"field-id": 5, "names": ["element"]}]},
    ]
    table.set_properties({"schema.name-mapping.default": json.dumps(by_name)})
    assert table.scan("a >= 2").to_arrow().to_pylist() == [
        {"a": 2, "s": None, "l": ["e"]},
        {"a": 3, "s": {"x": 6}, "l": ["e"]},
    ]


def test_a_file_from_hive_has_its_partition_column_from_its_stats() -> None:
    schema = Schema(
        NestedField(1, "a", IntegerType(), required=False),
        NestedField(2, "country", StringType(), required=True),
        NestedField(3, "day", DateType(), required=False),
    )
    table = new_table(schema, partition_by=["country", "day"])
    ids = pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"})])
    add_file(
        table,
        "country=DE/x.parquet",
        pa.table([[1, 2]], schema=ids),
        stats={
            2: FieldStats(lower="DE", upper="DE", tight=True, values=2, nulls=0),
            3: FieldStats(values=2, nulls=2),
        },
    )
    assert table.scan("a = 2").to_arrow().to_pylist() == [{"a": 2, "country": "DE", "day": None}]


def test_orc_files_of_others_are_read_by_their_ids() -> None:
    table = new_table(pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int64())]))]))
    ids = [{"iceberg.id": str(number)} for number in (1, 2, 3)]
    schema = pa.schema(
        [
            pa.field("was_a", pa.int64(), metadata=ids[0]),
            pa.field("s", pa.struct([pa.field("x", pa.int64(), metadata=ids[2])]), metadata=ids[1]),
        ]
    )
    data = pa.table([[1, 2], [{"x": 5}, None]], schema=schema)
    add_file(table, "x.orc", data, file_format="orc")
    assert table.scan("a > 0").to_arrow().to_pylist() == [
        {"a": 1, "s": {"x": 5}},
        {"a": 2, "s": None},
    ]


@pytest.mark.parametrize("broken", ["not Parquet", "too few rows", "another type"])
def test_a_file_that_is_not_what_its_entry_says_is_corrupt(broken: str) -> None:
    table = new_table(pa.schema([("a", pa.int64())]))
    type = pa.string() if broken == "another type" else pa.int64()
    ids = pa.schema([pa.field("a", type, metadata={"PARQUET:field_id": "1"})])
    data = pa.table([["1"] if broken == "another type" else [1]], schema=ids)
    sink = io.BytesIO()
    pq.write_table(data, sink)
    content = b"PAR1" if broken == "not Parquet" else sink.getvalue()
    write_file(table, "x.parquet", content)
    rows = 2 if broken == "too few rows" else 1
    table.append_files(
        [
            Entry(
                location=f"{table.location}/data/x.parquet",
                record_count=rows,
                file_size_in_bytes=len(content),
            )
        ]
    )
    with pytest.raises(CorruptTable, match=r"data/x\.parquet: "):
        table.scan().to_arrow()


def test_nested_required_fields_survive_null_structs() -> None:
    schema = Schema(
        NestedField(
            1,
            "s",
            StructType(
                NestedField(2, "x", StringType(), required=True),
                NestedField(
                    3,
                    "t",
                    StructType(NestedField(4, "y", IntegerType(), required=True)),
                    required=True,
                ),
            ),
            required=False,
        )
    )
    table = new_table(schema)
    type = pa.struct([("x", pa.string()), ("t", pa.struct([("y", pa.int32())]))])
    values = [{"x": "a", "t": {"y": 1}}, None]
    table.append(pa.table({"s": pa.array(values, type)}))
    assert table.scan().to_arrow()["s"].to_pylist() == values


def test_a_filter_by_a_truncation_finds_what_wrapped_around_as_an_int() -> None:
    table = new_table({"n": "int"}, partition_by=["truncate(10, n)"])
    least = -(2**31)
    table.append(pa.table({"n": pa.array([least, 5], pa.int32())}))
    with table.edit_schema() as schema:
        schema.widen("n", "long")
    table.append(pa.table({"n": [least - 3]}))
    assert table.scan(f"truncate(10, n) = {least - 2}").to_arrow()["n"].to_pylist() == [least]
