"""A table whose partitions come of a transform that nobody here knows, as another engine left it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.errors import InvalidInput, Unsupported
from icetree.spec.entry.entry import Entry
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.codec import avro_manifests as avro
from tests.rows.lake import new_lake

PLACE = "memory://lake/db/old"
NAMED = {"PARQUET:field_id": "1"}, {"PARQUET:field_id": "2"}
ROWS = pa.schema(
    [pa.field("k", pa.int64(), metadata=NAMED[0]), pa.field("v", pa.string(), metadata=NAMED[1])]
)


def _write(lake: Lake, name: str, content: bytes) -> str:
    lake.store.write_new(f"{PLACE}/{name}", content)
    return f"{PLACE}/{name}"


def _parquet(lake: Lake, name: str, rows: pa.Table) -> str:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return _write(lake, f"data/{name}.parquet", sink.getvalue())


def old_table(type: Any, values: Sequence[Any]) -> Table:
    """A file of the rows 1, 2, 3 in each of two partitions; 2 is deleted in the first of them."""
    lake = new_lake()
    partition = (avro.field(1000, "k_mystery", type),)
    files = [
        _parquet(lake, f"d{at}", pa.table([[1, 2, 3], ["abc"[at]] * 3], schema=ROWS))
        for at in range(len(values))
    ]
    gone = _parquet(lake, "gone", pa.table([[2]], schema=pa.schema([ROWS.field(0)])))
    size = {"file_size_in_bytes": lake.store.size(files[0])}
    data = [
        avro.entry(
            file, rows=3, snapshot_id=1, sequence_number=1, partition={"k_mystery": value}, **size
        )
        for file, value in zip(files, values, strict=True)
    ]
    delete = avro.entry(
        gone,
        rows=1,
        content=2,
        equality_ids=[1],
        snapshot_id=1,
        sequence_number=2,
        partition={"k_mystery": values[0]},
        file_size_in_bytes=lake.store.size(gone),
    )
    lists = []
    for content, entries in enumerate((data, [delete])):
        kind = ("data", "deletes")[content]
        manifest = avro.manifest(2, *entries, partition=partition, content=kind)
        at = _write(lake, f"metadata/m{content}.avro", manifest)
        lists.append(
            {
                "manifest_path": at,
                "manifest_length": len(manifest),
                "content": content,
                "sequence_number": 1 + content,
                "min_sequence_number": 1 + content,
                "added_snapshot_id": 1,
                "added_files_count": len(entries),
                "added_rows_count": (6, 1)[content],
                "existing_files_count": 0,
                "existing_rows_count": 0,
                "deleted_files_count": 0,
                "deleted_rows_count": 0,
                # Bounds in a type that nobody here knows.
                "partitions": [
                    {"contains_null": True, "lower_bound": b"\xff\x00", "upper_bound": b"\xff\xff"}
                ],
            }
        )
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 2,
        "timestamp-ms": 1,
        "summary": {"operation": "overwrite"},
        "schema-id": 0,
        "manifest-list": _write(lake, "metadata/snap.avro", avro.manifest_list(2, *lists)),
    }
    columns = [
        {"id": 1, "name": "k", "required": False, "type": "long"},
        {"id": 2, "name": "v", "required": False, "type": "string"},
    ]
    field = {"name": "k_mystery", "transform": "mystery[7]", "source-id": 1, "field-id": 1000}
    document = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": PLACE,
        "last-sequence-number": 2,
        "last-updated-ms": 1,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [field]}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": 1,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
    }
    at = _write(lake, "metadata/v1.metadata.json", json.dumps(document).encode())
    return lake.register_table("db.old", at)


#: Types that values of a transform can have, with two of each and the null.
STORED: dict[str, tuple[Any, list[Any]]] = {
    "text": ("string", ["red", "blue"]),
    "numbers": ("long", [-7, 12]),
    "bytes": ("bytes", [b"\x00\xff", b"\x00"]),
    "the null": ("int", [None, 4]),
    "another null": ("string", ["a", None]),
}


@pytest.mark.parametrize("stored", STORED)
def test_equality_deletes_reach_the_partitions_of_their_stored_values(stored: str) -> None:
    table = old_table(*STORED[stored])
    want = [(1, "a"), (1, "b"), (2, "b"), (3, "a"), (3, "b")]

    def found(where: str = "true") -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in table.scan(where).to_arrow().to_pylist())

    assert found() == want
    assert found("k >= 2") == [row for row in want if row[0] >= 2]
    table.upgrade()
    assert found() == want
    assert found("k = 2") == [(2, "b")]
    table.maintenance.rewrite_manifests()
    assert found() == want
    table.delete("k = 3 and v = 'a'")
    want.remove((3, "a"))
    assert found() == want
    assert table.verify(deep=True).is_clean


def test_no_rows_and_no_files_are_written_into_such_partitions_until_it_is_taken_out() -> None:
    table = old_table(*STORED["text"])
    table.upgrade()
    before = table.metadata.current_snapshot_id
    new = pa.table({"k": [9], "v": ["new"]})
    with pytest.raises(
        Unsupported, match=r"k_mystery is mystery\[7\] of k, which is not known here"
    ):
        table.append(new)
    with pytest.raises(InvalidInput, match=r"whose transform mystery\[7\] is not known here"):
        table.append_files(
            [Entry(location=f"{PLACE}/data/x.parquet", record_count=1, file_size_in_bytes=1)]
        )
    assert table.metadata.current_snapshot_id == before
    with table.edit_spec() as edit:
        edit.remove("k_mystery")
    table.append(new)
    assert table.scan().count() == 6
    assert table.verify(deep=True).is_clean
