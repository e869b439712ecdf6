"""Types that Iceberg Java knows: it reads our names of them and the values in our files, and we its."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

import icetree
from icetree.spec.schema.types import parse_schema, type_text
from icetree.table.lake import Lake
from tests.java import IcebergJava, iceberg_java
from tests.rows.geometries import line, point, square
from tests.rows.test_geo import TYPES
from tests.rows.test_variant import SHREDS
from tests.rows.variants import pairs


@pytest.fixture(scope="module")
def java() -> Iterator[IcebergJava]:
    with iceberg_java() as java:
        yield java


def test_java_and_we_write_types_of_places_alike(java: IcebergJava) -> None:
    fields = [
        {"id": id, "name": f"c{id}", "required": False, "type": type}
        for id, type in enumerate(TYPES.values(), 1)
    ]
    document = json.dumps({"type": "struct", "schema-id": 0, "fields": fields})
    parser = java.jvm.org.apache.iceberg.SchemaParser
    again = json.loads(parser.toJson(parser.fromJson(document)))
    found = parse_schema(again)
    assert [type_text(field.field_type) for field in found.fields] == list(TYPES.values())


#: Values of each type, and how Java tells them.
VALUES: dict[str, tuple[Any, list[Any], list[str]]] = {
    "decimal(9, 2)": (pa.decimal128(9, 2), [Decimal("-1.25"), Decimal("0.07")], ["-1.25", "0.07"]),
    "decimal(18, 1)": (pa.decimal128(18, 1), [Decimal("-0.1"), Decimal(7)], ["-0.1", "7.0"]),
    "decimal(38, 0)": (
        pa.decimal128(38, 0),
        [Decimal(-(10**37)), Decimal(1)],
        [f"-1{'0' * 37}", "1"],
    ),
    "timestamp_ns": (
        pa.timestamp("ns"),
        [1, -1],
        [f"1970-01-01T00:00:00.{1:09d}", f"1969-12-31T23:59:59.{'9' * 9}"],
    ),
    "time": (pa.time64("us"), [1, 0], ["00:00:00.000001", "00:00"]),
    "uuid": (
        pa.uuid(),
        [bytes(15) + b"\1", bytes(16)],
        [f"{'0' * 8}-0000-0000-0000-{1:012d}", f"{'0' * 8}-0000-0000-0000-{0:012d}"],
    ),
    "fixed[3]": (pa.binary(3), [b"abc", b"\0\1\2"], ["616263", "000102"]),
}


def _exported(
    lake: Lake, type: str, values: pa.Array, properties: dict[str, str] | None = None
) -> str:
    lake.create_namespace("db")
    table = lake.create_table("db.t", {"id": "int", "c": type}, properties=properties)
    table.append(pa.table({"id": pa.array(range(len(values)), pa.int32()), "c": values}))
    return table.export().metadata_location


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    address = f"sqlite:///{tmp_path}/catalog.db"
    with icetree.connect(address, warehouse=str(tmp_path)) as lake:
        yield lake


@pytest.mark.parametrize("type", VALUES)
def test_java_reads_values_that_we_wrote(type: str, java: IcebergJava, lake: Lake) -> None:
    arrow, values, told = VALUES[type]
    theirs = java.table(_exported(lake, type, pa.array([*values, None], arrow)))
    wanted = [(str(at), each) for at, each in enumerate([*told, "null"])]
    assert java.rows(theirs, ["id", "c"]) == wanted


@pytest.mark.parametrize("shreds", [False, True])
def test_java_reads_variants_that_we_wrote(shreds: bool, java: IcebergJava, lake: Lake) -> None:
    values = pairs({"a": 1, "b": "x"}, {"a": 2, "b": "y"}, ..., [Decimal("1.5"), None])
    theirs = java.table(_exported(lake, "variant", values, SHREDS if shreds else {}))
    told = java.rows(theirs, ["id", "c"])
    assert told is not None
    assert [id for id, _ in told] == ["0", "1", "2", "3"]
    assert told[2][1] == "null"
    for text, (_, found) in zip(['"a"', '"b"', None, "1.5"], told, strict=True):
        assert text is None or text.strip('"') in found
    assert "x" in told[0][1]
    assert "y" in told[1][1]


@pytest.mark.parametrize("type", ["geometry(srid:4326)", "geography(srid:4326, karney)"])
def test_java_plans_a_table_of_places_though_it_cannot_read_them(
    type: str, java: IcebergJava, lake: Lake
) -> None:
    values = pa.array([point(1, 2), square(0, 0), line((170, 0), (-170, 1))])
    theirs = java.table(_exported(lake, type, values))
    assert len(java.plan(theirs) or ()) == 1
    # It knows what the bytes are, and has no reader for them yet.
    with pytest.raises(Py4JJavaError, match=r"Unsupported logical type: GEO\w+\(srid:4326"):
        java.rows(theirs, ["id", "c"])


def test_java_counts_the_bytes_of_fixed_values_in_partitions_and_we_read_that(
    java: IcebergJava, lake: Lake, tmp_path: Path
) -> None:
    """The schema in a manifest says that no length stands before them: what Java does is its own."""
    lake.create_namespace("db")
    table = lake.create_table("db.ours", {"id": "int", "c": "fixed[3]"}, partition_by=["c"])
    table.append(pa.table({"id": pa.array([1], pa.int32()), "c": pa.array([b"abc"], pa.binary(3))}))
    ours = java.table(table.export().metadata_location)
    with pytest.raises(Py4JJavaError, match="Length is negative"):
        java.plan(ours)
    made = java.compiled("Fixed", _FIXED).apply(ours.schema(), str(tmp_path / "theirs"))
    assert len(java.plan(java.table(made)) or ()) == 2
    theirs = lake.register_table("db.theirs", made)
    found = theirs.inspect.files().to_pylist()
    assert sorted((each["partition"]["c"] or b"", each["record_count"]) for each in found) == [
        (b"", 7),
        (b"abc", 7),
    ]


_FIXED = """
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.hadoop.HadoopTables;

public class Fixed implements java.util.function.BiFunction {
  public Object apply(Object given, Object asked) {
    Schema schema = (Schema) given;
    PartitionSpec spec = PartitionSpec.builderFor(schema).identity("c").build();
    Table table = new HadoopTables(new org.apache.hadoop.conf.Configuration())
        .create(schema, spec, new HashMap(), (String) asked);
    AppendFiles append = table.newAppend();
    byte[][] values = new byte[][] {{97, 98, 99}, null};
    for (int at = 0; at < 2; at++) {
      PartitionKey key = new PartitionKey(table.spec(), table.schema());
      key.set(0, values[at] == null ? null : java.nio.ByteBuffer.wrap(values[at]));
      append.appendFile(DataFiles.builder(table.spec())
          .withPath(asked + "/data/" + at + ".parquet")
          .withFileSizeInBytes(10)
          .withRecordCount(7)
          .withPartition(key)
          .build());
    }
    append.commit();
    table.refresh();
    return ((HasTableOperations) table).operations().current().metadataFileLocation();
  }
}
"""
