"""What PyIceberg writes is decoded to what PyIceberg reads."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.codec.inherit import Inherited
from icetree.codec.legacy import decode_manifest, decode_manifest_list
from icetree.spec.entry.entry import Content, Entries
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape

TYPES: list[IcebergType] = [
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    FixedType(4),
    BinaryType(),
    DecimalType(9, 2),
    DecimalType(38, 10),
]
SCHEMA = Schema(
    *(NestedField(id, f"c{id}", type, required=False) for id, type in enumerate(TYPES, start=1))
)
#: For each type, a lower bound and an upper bound.
BOUNDS: dict[type[IcebergType], tuple[Any, Any]] = {
    BooleanType: (False, True),
    IntegerType: (-(2**31), 2**31 - 1),
    LongType: (-(2**63), 2**63 - 1),
    FloatType: (-1.5, 3.25),
    DoubleType: (-1e300, 1e300),
    DateType: (-719162, 20000),
    TimeType: (0, 86_399_999_999),
    TimestampType: (-1, 1_700_000_000_123_456),
    TimestamptzType: (0, 1_700_000_000_123_456),
    StringType: ("", "çé漢字"),
    UUIDType: (UUID(int=0), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    FixedType: (b"\0\0\0\0", b"\xff\xfe\xfd\xfc"),
    BinaryType: (b"", b"\xff\0"),
}
DECIMALS = {
    2: (Decimal("-0.01"), Decimal("9.99")),
    10: (Decimal("-0.0000000001"), Decimal("12345678.0123456789")),
}


def bounds_of(type: IcebergType) -> tuple[Any, Any]:
    return DECIMALS[type.scale] if isinstance(type, DecimalType) else BOUNDS[type.__class__]


SPEC_FIELDS: list[tuple[int, str, list[Any]]] = [
    (10, "identity", ["a string longer than sixteen characters", "", None]),
    (3, "bucket[16]", [0, 15, None]),
    (8, "day", [19000, -1, None]),
    (9, "hour", [456789, 0, None]),
    (6, "month", [650, -1, None]),
    (6, "year", [54, 0, None]),
    (10, "truncate[3]", ["abc", "漢字é", None]),
    (14, "truncate[10]", [Decimal("1.20"), Decimal("-3.50"), None]),
    (13, "bucket[4]", [3, 1, None]),
    (1, "identity", [True, False, None]),
    (2, "identity", [7, -7, None]),
    (6, "identity", [19000, -1, None]),
    (8, "identity", [1_700_000_000_123_456, -1, None]),
    (15, "identity", [Decimal("1.0000000001"), Decimal("-99.9900000000"), None]),
    (11, "identity", [UUID(int=5), UUID(int=2**127), None]),
    (12, "identity", [b"abcd", b"\xff\xff\xff\xff", None]),
    (5, "identity", [0.5, -0.5, None]),
    (10, "void", [None, None, None]),
]


def spec_of(fields: list[tuple[int, str, list[Any]]]) -> tuple[PartitionSpec, Shape]:
    """The same spec for PyIceberg and for us, under spec id 3."""
    partition, expressions = [], {}
    for at, (source, transform, _) in enumerate(fields):
        name = f"p{at}"
        partition.append(PartitionField(source, 1000 + at, parse_transform(transform), name))
        expressions[100 + at] = Expression(
            expr_id=100 + at,
            source_ids=(source,),
            transform=transform,
            name=name,
            partition_field_id=1000 + at,
        )
    shape = Shape(
        schema=SCHEMA, expressions=expressions, specs={3: tuple(expressions)}, default_spec_id=3
    )
    return PartitionSpec(*partition, spec_id=3), shape


def data_file(table: str, at: int, partition: list[Any]) -> DataFile:
    ids = range(1, len(TYPES) + 1)
    has = [id for id in ids if (id + at) % 3]  # Each file lacks the metrics of some columns.
    bounds = {id: bounds_of(TYPES[id - 1]) for id in has}
    type_of = {id: TYPES[id - 1] for id in has}
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table}/data/{at}.parquet" if at % 4 else f"s3://elsewhere/{at}.orc",
        file_format=FileFormat.PARQUET if at % 4 else FileFormat.ORC,
        partition=Record(*partition),
        record_count=100 + at,
        file_size_in_bytes=1000 + at,
        column_sizes=dict.fromkeys(ids, 5),
        value_counts=dict.fromkeys(has, 100 + at),
        null_value_counts=dict.fromkeys(has, at),
        nan_value_counts={id: 1 for id in has if isinstance(type_of[id], FloatType | DoubleType)},
        lower_bounds={id: to_bytes(type_of[id], bounds[id][0]) for id in has},
        upper_bounds={id: to_bytes(type_of[id], bounds[id][1]) for id in has if id != 3},
        key_metadata=b"key" if at % 2 else None,
        split_offsets=[4, 400] if at % 2 else None,
        sort_order_id=at,
    )


def written(
    path: Path, version: Literal[1, 2], spec: PartitionSpec, tuples: list[list[Any]], codec: str
) -> ManifestFile:
    """A manifest with two added entries, then one existing and one deleted, and so on."""
    output = PyArrowFileIO().new_output(str(path))
    with write_manifest(version, spec, SCHEMA, output, 77, codec) as writer:  # type: ignore[arg-type]
        for at, partition in enumerate(tuples):
            file = data_file(str(path.parent), at, partition)
            status = [ManifestEntryStatus.ADDED, ManifestEntryStatus.ADDED, *ManifestEntryStatus][
                at % 5
            ]
            own = (
                {}
                if status == ManifestEntryStatus.ADDED
                else {"sequence_number": 2, "file_sequence_number": 3}
            )
            writer.add_entry(
                ManifestEntry.from_args(status=status, snapshot_id=77, data_file=file, **own)
            )
    manifest = writer.to_manifest_file()
    manifest.sequence_number = 0 if version == 1 else 9
    return manifest


def plain(value: Any) -> Any:
    """A partition value or bound as PyIceberg holds it: temporal values are integers."""
    return value.bytes if isinstance(value, UUID) else value


def stored(entries: Entries, name: str) -> list[Any]:
    """A stats column in the same form; all null where the manifest had nothing to say."""
    if name not in entries.column_names:
        return [None] * entries.num_rows
    column = entries[name]
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def decode(path: Path, manifest: ManifestFile, shape: Shape) -> Entries:
    return decode_manifest(
        path.read_bytes(),
        file=path.name,
        shape=shape,
        table_location=str(path.parent),
        inherit=Inherited(
            snapshot_id=manifest.added_snapshot_id,
            sequence_number=manifest.sequence_number,
            partition_spec_id=3,
        ),
    )


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "zstandard"])
@pytest.mark.parametrize("version", [1, 2])
def test_every_entry_is_what_pyiceberg_says_it_is(
    tmp_path: Path, version: Literal[1, 2], codec: str
) -> None:
    spec, shape = spec_of([])
    path = tmp_path / "m.avro"
    manifest = written(path, version, spec, [[]] * 11, codec)
    theirs = manifest.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    ours = decode(path, manifest, shape)
    assert len(theirs) == ours.num_rows == 11
    for name in ("status", "snapshot_id", "sequence_number", "file_sequence_number"):
        assert ours[name].to_pylist() == [getattr(each, name) for each in theirs]
    for name in (
        "record_count",
        "file_size_in_bytes",
        "key_metadata",
        "split_offsets",
        "sort_order_id",
    ):
        assert ours[name].to_pylist() == [getattr(each.data_file, name) for each in theirs]
    paths = [each.data_file.file_path.removeprefix(f"{tmp_path}/") for each in theirs]
    assert ours["location"].to_pylist() == paths
    formats = [each.data_file.file_format.value.lower() for each in theirs]
    assert ours["file_format"].to_pylist() == formats
    for id, type in enumerate(TYPES, start=1):
        for stat, name in (("lower", "lower_bounds"), ("upper", "upper_bounds")):
            maps = [getattr(each.data_file, name) for each in theirs]
            expected = [plain(from_bytes(type, each[id])) if id in each else None for each in maps]
            assert stored(ours, f"{id}:{stat}") == expected, (type, stat)
        for stat, name in (
            ("values", "value_counts"),
            ("nulls", "null_value_counts"),
            ("nans", "nan_value_counts"),
        ):
            expected = [getattr(each.data_file, name).get(id) for each in theirs]
            assert stored(ours, f"{id}:{stat}") == expected, (type, stat)


@pytest.mark.parametrize("field", SPEC_FIELDS, ids=lambda field: f"{field[0]}-{field[1]}")
@pytest.mark.parametrize("version", [1, 2])
def test_every_partition_tuple_is_what_pyiceberg_says_it_is(
    tmp_path: Path, version: Literal[1, 2], field: tuple[int, str, list[Any]]
) -> None:
    spec, shape = spec_of([field])
    path = tmp_path / "m.avro"
    manifest = written(path, version, spec, [[value] for value in field[2]], "deflate")
    theirs = manifest.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    ours = decode(path, manifest, shape)
    if field[1] == "void":
        assert not [name for name in ours.column_names if name.startswith("100:")]
        return
    id = shape.expressions[100].stats_field
    tuples = [plain(each.data_file.partition[0]) for each in theirs]
    assert stored(ours, f"{id}:lower") == stored(ours, f"{id}:upper") == tuples
    counts = [each.data_file.record_count for each in theirs]
    assert stored(ours, f"{id}:values") == counts
    is_null = [each is None for each in tuples]
    assert is_null == [False, False, True]
    assert stored(ours, f"{id}:nulls") == [
        counts[at] if null else 0 for at, null in enumerate(is_null)
    ]
    assert stored(ours, f"{id}:tight") == [None if null else True for null in is_null]


@pytest.mark.parametrize("version", [1, 2])
def test_every_manifest_of_a_list_is_what_pyiceberg_says_it_is(
    tmp_path: Path, version: Literal[1, 2]
) -> None:
    # PyIceberg cannot compute summaries of void fields, nor sort UUIDs among None.
    fields = [each for each in SPEC_FIELDS if each[1] != "void"]
    spec, shape = spec_of(fields)
    tuples = [[each[2][at] for each in fields] for at in range(3)]
    manifests = [
        written(tmp_path / "m1.avro", version, spec, tuples, "deflate"),
        written(tmp_path / "m2.avro", version, spec, tuples[:1], "deflate"),
    ]
    path = tmp_path / "snap.avro"
    output = PyArrowFileIO().new_output(str(path))
    with write_manifest_list(version, output, 77, None, 9, "deflate") as writer:
        writer.add_manifests(manifests)
    theirs = list(read_manifest_list(PyArrowFileIO().new_input(str(path))))
    ours = decode_manifest_list(
        path.read_bytes(), file=path.name, shape=shape, table_location=str(tmp_path)
    )
    assert ours["location"].to_pylist() == ["m1.avro", "m2.avro"]
    assert ours["content_type"].to_pylist() == [Content.DATA_MANIFEST] * 2
    same = {
        "file_size_in_bytes": "manifest_length",
        "snapshot_id": "added_snapshot_id",
        **{
            name: name
            for name in (
                "partition_spec_id",
                "sequence_number",
                "added_files_count",
                "existing_files_count",
                "deleted_files_count",
                "added_rows_count",
                "existing_rows_count",
                "deleted_rows_count",
            )
        },
    }
    for name, their_name in same.items():
        expected = [getattr(each, their_name) or 0 for each in theirs]
        assert ours[name].to_pylist() == expected, name
    assert ours["record_count"].to_pylist() == [3, 1]
    result_types = [each.field_type for each in spec.partition_type(SCHEMA).fields]
    for at, type in enumerate(result_types):
        summaries = [each.partitions[at] for each in theirs if each.partitions is not None]
        id = shape.expressions[100 + at].stats_field
        for stat, name in (("lower", "lower_bound"), ("upper", "upper_bound")):
            bounds = [plain(from_bytes(type, getattr(each, name))) for each in summaries]
            assert stored(ours, f"{id}:{stat}") == bounds, fields[at]
        nulls = [None if each.contains_null else 0 for each in summaries]
        assert stored(ours, f"{id}:nulls") == nulls == [None, 0]


def test_timestamps_keep_their_unit_and_zone(tmp_path: Path) -> None:
    spec, shape = spec_of([])
    path = tmp_path / "m.avro"
    ours = decode(path, written(path, 2, spec, [[]] * 3, "deflate"), shape)
    assert ours.schema.field("8:lower").type == pa.timestamp("us")
    assert ours.schema.field("9:upper").type == pa.timestamp("us", tz="UTC")
    expected = datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    assert expected in ours["8:lower"].to_pylist()
