"""Rows in ORC and in Avro: the same as in Parquet, with all that a table makes of them."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, NestedField, StringType, TimestampType

from icetree.errors import CorruptTable, InvalidInput, Unsupported
from icetree.rows.formats.orc import OrcReader
from icetree.rows.read.deletes import Deletes
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import parse_column
from icetree.table.table import Table
from tests.rows.lake import files, new_table, rows, write_file
from tests.rows.test_round_trip import VALUES, in_nanos
from tests.table.changing import changing_table, delete_equal, delete_rows, some

OTHERS = ("orc", "avro")
#: Further from 1970 than ORC's times are read.
FAR = pa.scalar(-(10**16), pa.timestamp("us"))


def written_in(format: str, schema: Any, **how: Any) -> Table:
    return new_table(schema, properties={"write.format.default": format}, **how)


def every_type() -> pa.Table:
    """A column of each type, with nulls; of two rows and more."""
    columns, names = [], []
    for name, (type, values) in VALUES.items():
        kept = [each for each in values if each != FAR.value]
        columns.append(pa.array([*kept, *[None] * (5 - len(kept))], type))
        names.append(name)
    return pa.table(columns, names=names)


@pytest.mark.parametrize("format", ["parquet", *OTHERS])
def test_a_struct_that_is_null_within_another_takes_no_value_from_the_rows_after(
    format: str,
) -> None:
    inner = pa.struct([("k", pa.int32())])
    outer = pa.struct([("c", inner)])
    types = {
        "s": outer,
        "deep": pa.struct([("s", outer)]),
        "l": pa.list_(outer),
        "m": pa.map_(pa.string(), outer),
    }
    values = [{"c": {"k": 17}}, {"c": None}, {"c": {"k": 25}}]
    rows = [{"s": one, "deep": {"s": one}, "l": [one], "m": [("k", one)]} for one in values]
    table = written_in(format, pa.schema(types.items()))
    table.append(pa.Table.from_pylist(rows, schema=pa.schema(types.items())))
    assert table.scan().to_arrow().to_pylist() == rows
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("format", OTHERS)
def test_rows_of_every_type_and_their_stats_are_those_of_parquet(format: str) -> None:
    data = every_type()
    tables = [written_in(each, data.schema) for each in ("parquet", format)]
    for table in tables:
        table.append(data.slice(1))
        table.append(data.slice(3, 2).to_reader())
        assert table.verify(deep=True).is_clean
    plain, other = tables
    assert all(each.endswith(f".{format}") for each in files(other))
    assert other.inspect.files()["file_format"].unique().to_pylist() == [format.upper()]
    found = other.scan().to_arrow()
    assert found.schema == plain.scan().to_arrow().schema
    assert rows(in_nanos(found)) == rows(
        in_nanos(pa.concat_tables([data.slice(1), data.slice(3, 2)]))
    )
    assert stats_of(other) == stats_of(plain)


def stats_of(table: Table) -> list[Any]:
    told = table.files.root(table.snapshot(), table.metadata.shape())
    names = sorted(name for name in told.column_names if parse_column(name))
    return [str(told[name].to_pylist()) for name in names]


@pytest.mark.parametrize("format", OTHERS)
def test_a_file_of_many_runs_is_read_in_part_and_in_order(format: str) -> None:
    table = written_in(format, pa.schema([("n", pa.int64()), ("t", pa.string())]))
    table.set_properties(
        {"write.orc.stripe-size-bytes": "65536", "write.avro.compression-codec": "uncompressed"}
    )
    count = 150_000
    texts = pa.array([f"{number:040}" for number in range(count)])
    table.append(pa.table({"n": range(count), "t": texts}))
    [entry] = table.scan().plan().tasks.to_pylist()
    assert (len(entry["split_offsets"]) > 1) if format == "orc" else not entry["split_offsets"]
    found = table.scan("n >= 149998", columns=["t", "_pos"]).to_arrow()
    assert found["_pos"].to_pylist() == [149_998, 149_999]
    assert found["t"].to_pylist() == [f"{149_998:040}", f"{149_999:040}"]
    assert table.scan(columns=["n"]).to_arrow()["n"].to_pylist() == list(range(count))


@pytest.mark.parametrize("format", OTHERS)
def test_columns_are_found_by_id_promoted_and_given_their_defaults(format: str) -> None:
    schema = Schema(
        NestedField(1, "a", IntegerType(), required=True),
        NestedField(2, "b.c", StringType(), required=False),
        NestedField(3, "d", DateType(), required=False),
        NestedField(4, "gone", StringType(), required=False),
    )
    table = written_in(format, schema)
    day = dt.date(2026, 1, 2)
    table.append(
        pa.table(
            {"a": pa.array([1], pa.int32()), "b.c": ["x"], "d": [day], "gone": ["y"]},
        )
    )
    with table.edit_schema() as edit:
        edit.rename("a", "b").widen("b", "long").rename("b.c", "a").drop("gone")
        edit.widen("d", "timestamp").add("gone", "int", default=7)
    assert table.scan("b = 1 and gone = 7").to_arrow().to_pylist() == [
        {"b": 1, "a": "x", "d": dt.datetime.combine(day, dt.time()), "gone": 7}
    ]
    assert table.scan("gone = 8").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("format", "deletes"), [("orc", "avro"), ("avro", "orc"), ("orc", "parquet")]
)
def test_rows_are_deleted_by_vectors_and_keys_and_keep_their_ids(format: str, deletes: str) -> None:
    table = changing_table(
        properties={"write.format.default": format, "write.delete.format.default": deletes}
    )
    table.append(some(*((number, f"v{number}") for number in range(6))))
    delete_rows(table, [1])
    delete_equal(table, [4])
    found = table.scan(columns=["id", "_row_id", "_pos", "_last_updated_sequence_number"])
    assert found.to_arrow().to_pydict() == {
        "id": [0, 2, 3, 5],
        "_row_id": [0, 2, 3, 5],
        "_pos": [0, 2, 3, 5],
        "_last_updated_sequence_number": [1] * 4,
    }
    kinds = set(table.inspect.delete_files()["file_format"].to_pylist())
    assert kinds == {"PUFFIN", deletes.upper()}
    table.update({"v": "'new'"}, where="id = 3")
    table.delete("id = 0")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    left = table.scan(columns=["id", "v", "_row_id"]).to_arrow().sort_by("id").to_pylist()
    assert left == [
        {"id": 2, "v": "v2", "_row_id": 2},
        {"id": 3, "v": "new", "_row_id": 3},
        {"id": 5, "v": "v5", "_row_id": 5},
    ]
    assert {name.rpartition(".")[2] for name in files(table)} == {format}
    assert table.verify(deep=True).is_clean


def position_deletes(format: str, path: str) -> bytes:
    """Two rows of a file, as other writers delete them by position."""
    ids = {"file_path": 2147483546, "pos": 2147483545}
    sink = io.BytesIO()
    if format == "avro":
        fields = [
            {"name": name, "type": kind, "field-id": ids[name]}
            for name, kind in (("file_path", "string"), ("pos", "long"))
        ]
        record = {"type": "record", "name": "delete", "fields": fields}
        fastavro.writer(sink, record, [{"file_path": path, "pos": at} for at in (2, 0)])
    else:
        schema = pa.schema(
            [
                pa.field("file_path", pa.string(), metadata={"iceberg.id": str(ids["file_path"])}),
                pa.field("pos", pa.int64(), metadata={"iceberg.id": str(ids["pos"])}),
            ]
        )
        orc.write_table(pa.table([[path, path], [2, 0]], schema=schema), sink)
    return sink.getvalue()


@pytest.mark.parametrize("format", OTHERS)
def test_position_deletes_of_v2_are_read(format: str) -> None:
    table = written_in(format, pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [10, 11, 12, 13]}))
    [data] = files(table)
    content = position_deletes(format, data)
    write_file(table, f"deletes.{format}", content)
    known = Deletes(
        files=[{"location": f"data/deletes.{format}", "file_format": format, "key_metadata": None}],
        store=table.files.store,
        metadata=table.metadata,
        schema=table.schema,
        mapping=None,
    )
    [task] = table.scan().plan().tasks.to_pylist()
    assert known.removed_rows({**task, "position_deletes": [0]}, data).tolist() == [0, 2]


def foreign(format: str, data: pa.Table) -> bytes:
    """Rows as a writer has them that knows of no ids."""
    sink = io.BytesIO()
    if format == "orc":
        orc.write_table(data, sink, compression="snappy")
    else:
        fields = [
            {"name": "first", "type": "int"},
            {"name": "place", "type": ["null", PLACE]},
            {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "again", "type": ["null", "decimal_5_2"]},
        ]
        record = {"type": "record", "name": "row", "fields": fields}
        fastavro.writer(sink, record, data.to_pylist(), codec="deflate")
    return sink.getvalue()


PLACE = {
    "type": "record",
    "name": "place",
    "fields": [
        {
            "name": "tall",
            "type": {
                "type": "fixed",
                "size": 3,
                "name": "decimal_5_2",
                "logicalType": "decimal",
                "precision": 5,
                "scale": 2,
            },
        }
    ],
}
FOREIGN = pa.schema(
    [
        ("first", pa.int32()),
        ("place", pa.struct([("tall", pa.decimal128(5, 2))])),
        ("when", pa.timestamp("ms", tz="UTC")),
        ("again", pa.decimal128(5, 2)),
    ]
)


@pytest.mark.parametrize("format", OTHERS)
def test_files_without_ids_are_read_by_the_name_mapping_and_refused_without_one(
    format: str,
) -> None:
    table = new_table(FOREIGN)
    when = dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)
    tall = Decimal("1.25")
    given = [
        {"first": 1, "place": {"tall": tall}, "when": when, "again": tall},
        {"first": 2, "place": None, "when": when, "again": None},
    ]
    content = foreign(format, pa.Table.from_pylist(given, FOREIGN))
    write_file(table, f"x.{format}", content)
    entry = Entry(
        location=f"data/x.{format}",
        file_format=format,
        record_count=2,
        file_size_in_bytes=len(content),
    )
    table.append_files([entry])
    with pytest.raises(CorruptTable, match="no field ids"):
        table.scan().to_arrow()
    table.set_properties({"schema.name-mapping.default": MAPPING})
    assert table.scan().to_arrow().to_pylist() == given
    # What is left out may tell a type that is used again.
    assert table.scan(columns=["again"]).to_arrow()["again"].to_pylist() == [tall, None]


MAPPING = """[{"field-id":1,"names":["first"]},{"field-id":2,"names":["place"],
"fields":[{"field-id":5,"names":["tall"]}]},{"field-id":3,"names":["when"]},
{"field-id":4,"names":["again"]}]"""


@pytest.mark.parametrize("format", OTHERS)
def test_files_of_others_are_added_with_the_stats_of_their_rows(format: str) -> None:
    table = new_table(FOREIGN, partition_by=["day(when)"])
    when = dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)
    tall = Decimal("1.25")
    given = [
        {"first": first, "place": {"tall": tall * first}, "when": when, "again": None}
        for first in (5, 3)
    ]
    content = foreign(format, pa.Table.from_pylist(given, FOREIGN))
    table.files.store.write_new(f"memory://lake/theirs/x.{format}", content)
    table.add_files("memory://lake/theirs/")
    assert table.scan().to_arrow().to_pylist() == given
    assert table.scan("first < 3").plan().tasks.num_rows == 0
    assert table.scan("when < '2026-01-01T00:00:00Z'").plan().tasks.num_rows == 0
    assert table.verify(deep=True).is_clean
    later = [{**each, "when": when + dt.timedelta(days=at)} for at, each in enumerate(given)]
    content = foreign(format, pa.Table.from_pylist(later, FOREIGN))
    table.files.store.write_new(f"memory://lake/more/y.{format}", content)
    with pytest.raises(InvalidInput, match="rows of several partitions"):
        table.add_files(f"memory://lake/more/y.{format}")


@pytest.mark.parametrize("format", OTHERS)
def test_lists_and_maps_with_uuids_inside_may_all_be_null(format: str) -> None:
    schema = {"id": "int", "m": "map<string, uuid>", "l": "list<struct<u: uuid>>"}
    table = new_table(schema, properties={"write.format.default": format})
    table.append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    found = table.scan().to_arrow()
    assert (found["m"].null_count, found["l"].null_count) == (2, 2)


def test_stock_readers_of_avro_read_what_is_written() -> None:
    data = every_type()
    table = written_in("avro", data.schema)
    for codec in ("gzip", "uncompressed"):
        table.set_properties({"write.avro.compression-codec": codec})
        table.append(data)
    for name in files(table):
        found = list(fastavro.reader(io.BytesIO(table.files.store.read(name))))
        assert len(found) == data.num_rows
        for column in ("int", "long", "boolean", "date", "list", "struct", "decimal"):
            assert [row[column] for row in found] == data[column].to_pylist()


def test_codecs_of_blocks_and_stripes_come_back_as_they_were() -> None:
    data = pa.table({"n": range(1000), "t": [f"text {number % 7}" for number in range(1000)]})
    for format, codecs in (
        ("avro", ("gzip", "zstd", "snappy", "uncompressed")),
        ("orc", ("zlib", "zstd", "snappy", "lz4", "none")),
    ):
        table = written_in(format, data.schema)
        for codec in codecs:
            table.set_properties({f"write.{format}.compression-codec": codec})
            table.append(data)
        assert table.scan().count() == len(codecs) * 1000
        assert table.scan("n = 999").to_arrow()["t"].to_pylist() == ["text 5"] * len(codecs)
        with pytest.raises(InvalidInput, match="compression-codec='rar': allowed are"):
            table.set_properties({f"write.{format}.compression-codec": "rar"})


def test_a_format_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidInput, match="allowed are parquet, orc, avro"):
        written_in("csv", pa.schema([("a", pa.int64())]))


def test_times_that_orc_is_not_read_in_are_refused_before_they_are_written() -> None:
    schema = Schema(NestedField(1, "t", TimestampType(), required=False))
    table = written_in("orc", schema)
    with pytest.raises(InvalidInput, match="write Parquet instead"):
        table.append(pa.table({"t": [FAR]}, pa.schema([("t", pa.timestamp("us"))])))
    assert list(table.files.store.list(f"{table.location}/data")) == []
    sink = io.BytesIO()
    field = pa.field("t", pa.timestamp("us"), metadata={"iceberg.id": "1"})
    orc.write_table(pa.table([[FAR]], schema=pa.schema([field])), sink)
    write_file(table, "far.orc", sink.getvalue())
    table.append_files(
        [
            Entry(
                location="data/far.orc",
                file_format="orc",
                record_count=1,
                file_size_in_bytes=len(sink.getvalue()),
            )
        ]
    )
    with pytest.raises(Unsupported, match=r"far\.orc has a time that no count of nanoseconds"):
        table.scan().to_arrow()


def test_times_of_orc_with_more_digits_are_floored_on_both_sides_of_1970() -> None:
    """A time is that of the microsecond which it falls in, at the top and within any nesting."""
    told = pa.field("t", pa.timestamp("ns"), metadata={"iceberg.id": "2"})
    zoned = pa.field("z", pa.timestamp("ns", "UTC"), metadata={"iceberg.id": "3"})
    fields = [
        pa.field("t", told.type, metadata={"iceberg.id": "1"}),
        pa.field("s", pa.struct([zoned]), metadata={"iceberg.id": "4"}),
        pa.field("l", pa.list_(told), metadata={"iceberg.id": "5"}),
        pa.field("m", pa.map_(pa.int64(), told), metadata={"iceberg.id": "6"}),
    ]
    nanos = [-1, -1500, 1500, -1000, 0, 999, None, -(2**63) + 1]
    times = pa.array(nanos, told.type)
    starts = pa.array([*range(len(nanos) + 1)], pa.int32())
    sink = io.BytesIO()
    inner = pa.StructArray.from_arrays([times.cast(zoned.type)], fields=[zoned])
    keyed = pa.MapArray.from_arrays(starts, pa.array([*range(len(nanos))]), times)
    columns = [times, inner, pa.ListArray.from_arrays(starts, times), keyed]
    written = [each.cast(field.type) for each, field in zip(columns, fields, strict=True)]
    orc.write_table(pa.table(written, schema=pa.schema(fields)), sink)
    found = OrcReader(pa.BufferReader(sink.getvalue()), "x.orc").read(0, [*range(4)], [*"tslm"])
    floors = [None if each is None else each // 1000 for each in nanos]
    plain, struct, list, map = (column.combine_chunks() for column in found)
    for read in (plain, struct.field("z"), list.values, map.items):
        assert read.type.unit == "us"
        assert read.view(pa.int64()).to_pylist() == floors
