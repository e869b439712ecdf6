"""Files that other programs wrote: what cannot be told apart is refused, what is legal is read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from icetree.codec import metadata as metadata_codec
from icetree.errors import CorruptTable, InvalidInput
from icetree.spec.entry.entry import Entry
from icetree.spec.fields import FIELD_ID_KEY, ROW_ID_FIELD
from icetree.table.table import Table
from tests.rows.lake import new_table, write_file

SCHEMA = pa.schema([("a", pa.int64()), ("c", pa.int64())])
ONE, OTHER = pa.array([1, 2, 3]), pa.array([10, 20, 30])


def column(name: str, id: int, type: pa.DataType | None = None) -> pa.Field:
    return pa.field(name, type or pa.int64(), metadata={FIELD_ID_KEY: str(id)})


def table_of(rows: pa.Table, schema: Any = SCHEMA) -> Table:
    """Return a table with one data file, as these rows are written by Arrow."""
    table = new_table(schema)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    content = sink.getvalue().to_pybytes()
    write_file(table, "x.parquet", content)
    table.append_files(
        [
            Entry(
                location="data/x.parquet",
                record_count=rows.num_rows,
                file_size_in_bytes=len(content),
            )
        ]
    )
    return table


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ([column("a", 1), column("b", 1)], "have field id 1"),
        ([column("a", 1), column("a", 2)], "are called 'a'"),
        (
            [column("a", 1), pa.field("s", pa.struct([column("b", 1)]))],
            "have field id 1",
        ),
        (
            [column("a", 1), column("s", 2, pa.struct([column("b", 3), column("b", 4)]))],
            "are called 'b'",
        ),
    ],
    ids=["ids", "names", "ids within", "names within"],
)
def test_columns_that_cannot_be_told_apart_are_refused(fields: list[pa.Field], rule: str) -> None:
    """One flipped bit makes one name, or id, another: it must not make one column another."""
    first, second = fields
    inner = second.type
    values = OTHER
    if pa.types.is_struct(inner):
        values = pa.StructArray.from_arrays([OTHER] * inner.num_fields, fields=list(inner))
    table = table_of(pa.table([ONE, values], schema=pa.schema([first, second])))
    for where in (None, "a < 5"):
        with pytest.raises(CorruptTable, match=rule):
            table.scan(where).to_arrow()
    [finding] = table.verify(deep=True).findings
    assert rule in finding.rule


VECTORS = [[1, 2], [3, 4], None, [5, 6]]


@pytest.mark.parametrize("within", [False, True])
def test_lists_of_one_length_are_read_with_those_that_are_null(within: bool) -> None:
    """Arrow writes them, and cannot read them back as it knows them: the Parquet schema is what counts."""
    item = column("element", 4 if within else 3)
    values = pa.array(VECTORS, pa.list_(item, 2))
    want: list[Any] = VECTORS
    field = column("v", 2, values.type)
    schema = pa.schema([column("a", 1), column("v", 2, pa.list_(item))])
    if within:
        values = pa.StructArray.from_arrays([values], fields=[column("w", 3, values.type)])
        field = column("v", 2, values.type)
        schema = pa.schema(
            [column("a", 1), column("v", 2, pa.struct([column("w", 3, pa.list_(item))]))]
        )
        want = [{"w": each} for each in VECTORS]
    rows = pa.table([pa.array(range(4)), values], schema=pa.schema([column("a", 1), field]))
    table = table_of(rows, schema)
    assert table.scan().to_arrow()["v"].to_pylist() == want
    assert table.verify(deep=True).findings == ()
    table.maintenance.rewrite_data_files()
    assert table.scan("a >= 2").to_arrow()["v"].to_pylist() == want[2:]


def test_a_row_group_without_rows_is_legal_and_verified() -> None:
    table = table_of(
        pa.table([ONE[:0], OTHER[:0]], schema=pa.schema([column("a", 1), column("c", 2)]))
    )
    assert table.scan("a < 5").to_arrow().num_rows == 0
    assert table.verify(deep=True).is_clean


def test_verify_names_each_column_that_a_scan_could_not_read() -> None:
    required = Schema(
        NestedField(1, "a", LongType(), required=False),
        NestedField(2, "c", StringType(), required=True),
    )
    lacking = table_of(pa.table([ONE], schema=pa.schema([column("a", 1)])), required)
    [finding] = lacking.verify(deep=True).findings
    assert "lacks the required column c" in finding.rule
    fields = [column("a", 1), column("_row_id", ROW_ID_FIELD, pa.string())]
    rows = pa.table([ONE, pa.array(["x", "y", "z"])], schema=pa.schema(fields))
    [finding] = table_of(rows).verify(deep=True).findings
    assert "_row_id is string" in finding.rule


@pytest.mark.parametrize("levels", [99, 101, 2000], ids=str)
@pytest.mark.parametrize("kind", ["struct", "list"])
def test_a_table_takes_no_columns_that_its_own_files_could_not_give_back(
    kind: str, levels: int
) -> None:
    type, value = pa.int64(), 1
    for _ in range(levels if kind == "struct" else (levels + 1) // 2 - 1):
        type = pa.struct([("f", type)]) if kind == "struct" else pa.list_(type)
        value = {"f": value} if kind == "struct" else [value]  # type: ignore[assignment]
    schema = pa.schema([("x", type)])
    if levels > 100:
        with pytest.raises(InvalidInput, match=r"nest (deeper|too deep)"):
            new_table(pa.schema([("x", pa.list_(pa.list_(type)))]))
        return
    table = new_table(schema)
    table.append(pa.table([pa.array([value], type)], schema=schema))
    assert table.scan().to_arrow()["x"].to_pylist() == [value]


def test_metadata_whose_columns_nest_too_deep_is_refused() -> None:
    table = new_table(SCHEMA)
    text = json.dumps(json.loads(metadata_codec.encode(table.metadata, compress=False)))
    for levels in (51, 700, 2000):
        deep = '"long"'
        for at in range(levels):
            deep = (
                f'{{"type":"list","element-id":{at + 9},"element-required":false,"element":{deep}}}'
            )
        bad = text.replace('"type": "long"', f'"type": {deep}', 1)
        with pytest.raises(CorruptTable, match=r"nest deeper|recursion"):
            metadata_codec.decode(bad.encode(), file="x.metadata.json")


@pytest.mark.parametrize("format", ["parquet", "orc"])
@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_no_utf_8_is_neither_handed_on_nor_the_end_of_verify(
    format: str, nested: bool
) -> None:
    key = FIELD_ID_KEY if format == "parquet" else b"iceberg.id"
    text = pa.field("a", pa.string(), metadata={key: "1"})
    bad = pa.array([b"\xff\xfe", b"ok"]).view(pa.string())
    if nested:
        text = text.with_name("element").with_metadata({key: "2"})
        starts = pa.array([0, 1, 2], pa.int32())
        bad = pa.ListArray.from_arrays(starts, bad).cast(pa.list_(text))
        text = pa.field("a", bad.type, metadata={key: "1"})
    sink = pa.BufferOutputStream()
    write = pq.write_table if format == "parquet" else orc.write_table
    write(pa.table([bad], schema=pa.schema([text])), sink)
    content = sink.getvalue().to_pybytes()
    table = new_table(pa.schema([("a", pa.list_(pa.string()) if nested else pa.string())]))
    write_file(table, "x", content)
    entry = Entry(
        location="data/x",
        file_format=format,
        record_count=2,
        file_size_in_bytes=len(content),
    )
    table.append_files([entry])
    for read in (
        table.scan().to_arrow,
        table.scan("a is not null").to_arrow,
        lambda: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
    ):
        with pytest.raises(CorruptTable, match=r"column a.* no string: .*UTF"):
            read()
    report = table.verify(deep=True)
    assert any("UTF" in finding.rule for finding in report.findings), str(report)
