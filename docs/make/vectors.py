"""Make the test vectors anew: `python -m docs.make.vectors`.

Each is a tiny table with the JSON that says what it holds. icetree writes the table, nothing of it by
chance; what it should hold is told by icetree's own scans, feeds and inspection, while
`vectors/check.py` reads the same files without icetree. Tests hold the one against the other.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from docs.make.still import Still, lake_in_memory
from icetree.rows.write.deletes import write_equality_deletes
from icetree.spec.metadata.snapshot import Snapshot
from icetree.surroundings import within
from icetree.table.table import Table

VECTORS: Final = Path(__file__).parents[2] / "vectors"
PLAIN: Final = {"write.metadata.compression-codec": "none"}
COLUMNS: Final = pa.schema([("id", pa.int64()), ("name", pa.string())])

Make = Callable[[], tuple[str, Table]]


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{id}" for id in ids]}, schema=COLUMNS)


def _table(columns: pa.Schema, partition_by: Sequence[str] = (), **properties: str) -> Table:
    return lake_in_memory().create_table(
        "db.t", columns, partition_by=partition_by, properties=PLAIN | properties
    )


def appends() -> tuple[str, Table]:
    """Three appends to the root, and one that moves them to a leaf."""
    table = _table(COLUMNS, **{"write.root.max-data-entries": "2"})
    for at in range(4):
        table.append(_rows(2 * at, 2 * at + 1))
    return "Appends to the root; the fourth one moves what the root has to a leaf", table


def removals() -> tuple[str, Table]:
    """Files that go: from the root, from a leaf, and from a leaf again."""
    table = _table(COLUMNS, partition_by=["id"], **{"write.root.max-data-entries": "4"})
    table.append(_rows(*range(6)))  # more than the root may have: a leaf at once
    table.append(_rows(6))
    table.delete("id = 6")  # of the root: a tombstone
    table.delete("id = 1")  # of the leaf: a manifest DV
    table.delete("id in (3, 4)")  # which grows, and tells what is new in it
    table.set_properties({"write.manifest-dv.inline-max-bytes": "0"})
    table.delete("id = 0")  # and moves to a Puffin file
    return "Files removed from the root and from a leaf: manifest DVs inline and in Puffin", table


def rows() -> tuple[str, Table]:
    """Rows that go and change: data DVs, one of them replaced, one with its data file."""
    table = _table(COLUMNS)
    table.append(_rows(*range(5)))
    table.append(_rows(5, 6))
    table.delete("id = 1")
    table.delete("id = 3")
    table.update({"name": "upper(name)"}, "id = 5")
    table.delete("id < 5")
    return (
        "Rows deleted and updated: data DVs, replaced ones, and one that goes with its file",
        table,
    )


def delete_manifests() -> tuple[str, Table]:
    """Data DVs in leaves of their own, which belong to a leaf of data files."""
    few = {
        "write.root.max-data-entries": "1",
        "write.root.max-delete-entries": "1",
        "write.flush.affinity-min-entries": "1",
        "write.commit.compact-max-entries": "0",
    }
    table = _table(COLUMNS, **few)
    with table.transaction() as both:
        both.append(_rows(0, 1, 2))
        both.append(_rows(3, 4, 5))
    table.delete("id = 0")
    table.delete("id = 3")  # more than the root may have: the first data DV moves to a leaf
    table.append(_rows(6))
    table.delete("id = 1")  # replaces one that a leaf tracks: a manifest DV on that leaf
    table.delete("id >= 3 and id <= 5")  # a data file, and its DV with it: two manifest DVs
    return "Delete manifests that belong to a data manifest, and manifest DVs on both", table


def partitions() -> tuple[str, Table]:
    """Expressions: days, buckets, nulls, and a spec that follows another."""
    columns = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    start = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)

    def days(first: int, count: int) -> pa.Table:
        ids = range(first, first + count)
        at = [start + timedelta(days=id) for id in ids]
        return pa.table({"id": ids, "at": at}, schema=columns)

    table = _table(columns, partition_by=["day(at)"])
    table.append(days(0, 2))
    table.append(pa.table({"id": [9], "at": [None]}, schema=columns))
    with table.edit_spec() as spec:
        spec.add("bucket(4, id)")
    table.append(days(2, 2))
    table.delete("day(at) = '2026-01-02'")
    return "Partition expressions: a day, a null, and a second spec with a bucket", table


def equality_deletes() -> tuple[str, Table]:
    """Rows deleted by value, in one partition and everywhere."""
    columns = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    table = _table(columns, partition_by=["kind"])
    table.append(pa.table({"id": [1, 2, 1], "kind": ["a", "a", "b"]}, schema=columns))
    keys = pa.table({"id": [1], "kind": ["a"]}, schema=columns)
    made = write_equality_deletes(
        keys, ["id", "kind"], metadata=table.metadata, store=table.files.store
    )
    table.row_delta(made)
    table.append(pa.table({"id": [1], "kind": ["a"]}, schema=columns))  # newer: it stays
    return "Equality deletes of one partition, and a row that came after them", table


def history() -> tuple[str, Table]:
    """So many snapshots that most of them are in pages."""
    table = _table(COLUMNS, **{"write.metadata.inline-snapshots": "1"})
    for at in range(13):
        table.append(_rows(at))
    return "Thirteen snapshots, most of them in a page of history", table


MADE: Final[dict[str, Make]] = {
    "appends": appends,
    "removals": removals,
    "rows": rows,
    "delete-manifests": delete_manifests,
    "partitions": partitions,
    "equality-deletes": equality_deletes,
    "history": history,
}


def files_of(name: str) -> dict[str, bytes]:
    """Return the files of a vector by their names in its folder, `expected.json` among them."""
    with within(Still(name)):
        what, table = MADE[name]()
        told = {"what": what, **expected(table)}
    place = table.location + "/"
    found = {
        each.location.removeprefix(place): table.files.store.read(each.location)
        for each in table.files.store.list(place)
    }
    # Former metadata files are of no use to who reads the newest.
    newest = told["metadata"]
    found = {
        name: content
        for name, content in found.items()
        if not name.endswith(".metadata.json") or name == newest
    }
    return found | {"expected.json": json.dumps(told, indent=1).encode() + b"\n"}


def expected(table: Table) -> dict[str, Any]:
    """Return what a table holds, as icetree tells it."""
    snapshots = sorted(table.history(), key=lambda each: each.sequence_number)
    return {
        "metadata": _relative(table, table.state.metadata_location),
        "snapshots": [_snapshot(table, each) for each in snapshots],
    }


def _snapshot(table: Table, snapshot: Snapshot) -> dict[str, Any]:
    id = snapshot.snapshot_id
    changed = table.changes(since=snapshot.parent_snapshot_id, upto=id).files().to_pylist()
    names = {
        kind: sorted({_name(table, each) for each in changed if each["change"] == kind})
        for kind in ("added", "removed")
    }
    rows = table.scan(at=id, columns=[*table.schema.column_names, "_row_id"]).to_arrow()
    found = rows.sort_by("_row_id").to_pylist()
    return {
        "snapshot_id": id,
        "sequence_number": snapshot.sequence_number,
        "operation": snapshot.operation,
        "root_manifest": snapshot.root_manifest,
        "live": _live(table, id),
        **names,
        "rows": [{name: _plain(value) for name, value in row.items()} for row in found],
    }


def _live(table: Table, id: int) -> list[dict[str, Any]]:
    """Return the files of a snapshot, by what icetree's inspection says of each."""
    made = []
    for each in table.inspect.entries(at=id).to_pylist():
        if each["status"] == 2 or each["is_removed"] or each["data_file"]["content"] > 2:
            continue
        file = each["data_file"]
        names = [each.name for each in table.metadata.shape().spec(file["spec_id"])]
        referenced = file["referenced_data_file"]
        told = {
            "content": ("DATA", "POSITION_DELETES", "EQUALITY_DELETES")[file["content"]],
            "file": _name(table, file),
            "records": file["record_count"],
            "sequence_number": each["sequence_number"],
            "first_row_id": file["first_row_id"],
            "applies_to": None if referenced is None else _relative(table, referenced),
            "partition": {name: _plain(file["partition"][name]) for name in names},
        }
        made.append({name: value for name, value in told.items() if value not in (None, {})})
    return sorted(made, key=lambda told: (told["content"], told["file"]))


def _name(table: Table, file: dict[str, Any]) -> str:
    at = f"@{file['content_offset']}" if file["content"] == 1 else ""
    return _relative(table, file["file_path"]) + at


def _relative(table: Table, location: str) -> str:
    return location.removeprefix(table.location + "/")


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; a time as Arrow writes it."""
    if isinstance(value, datetime):
        return pa.scalar(value, pa.timestamp("us", "UTC")).cast(pa.string()).as_py()
    return value.isoformat() if hasattr(value, "isoformat") else value


def main() -> None:
    """Write every vector anew."""
    for name in MADE:
        folder = VECTORS / name
        shutil.rmtree(folder, ignore_errors=True)
        for file, content in files_of(name).items():
            place = folder / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        print(f"{name}: {len(list(folder.rglob('*')))} files")


if __name__ == "__main__":
    main()
