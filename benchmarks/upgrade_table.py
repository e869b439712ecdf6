"""A v2 table of many manifests, as other engines leave them, to be upgraded; its files are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

import icetree
from icetree.table.moving.upgrade import Upgraded

_COLUMNS = 20
_ROWS = 1_000_000
_SNAPSHOT = 4711


def build_v2(folder: Path, *, files: int, manifests: int) -> None:
    """Make `db.t` as PyIceberg has it in its SQL catalog: as many files, in as many manifests."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("main", uri=_uri(folder), warehouse=f"file://{folder}/lake")
    catalog.create_namespace("db")
    columns = [f"column_{number}" for number in range(_COLUMNS)]
    row = pa.table({name: pa.array([0], pa.int64()) for name in columns})
    table = catalog.create_table("db.t", row.schema, properties={"format-version": "2"})
    # PyIceberg writes one of each kind of file; the others are made in their image.
    table.append(row)
    made = table.current_snapshot()
    assert made is not None
    metadata = Path(table.metadata_location.removeprefix("file://"))
    catalog.engine.dispose()
    listed, list_schema, list_says = _read(made.manifest_list)
    [entry], schema, says = _read(listed[0]["manifest_path"])
    rows = []
    for number, part in enumerate(np.array_split(np.arange(files), manifests)):
        path = metadata.with_name(f"{number:05d}-m0.avro")
        size = _write(path, schema, says, [_entry(entry, int(each)) for each in part])
        rows.append(
            {
                **listed[0],
                "manifest_path": f"file://{path}",
                "manifest_length": size,
                "added_snapshot_id": _SNAPSHOT,
                "added_files_count": len(part),
                "added_rows_count": len(part) * _ROWS,
            }
        )
    top = metadata.with_name(f"snap-{_SNAPSHOT}.avro")
    _write(top, list_schema, list_says, rows)
    _point(folder, metadata, f"file://{top}")


def upgrade(folder: Path) -> Upgraded:
    """Upgrade the table, as somebody who has just connected; it can be done once."""
    with icetree.connect(_uri(folder), properties={"name": "main"}) as lake:
        return lake.upgrade_table("db.t")


def _point(folder: Path, metadata: Path, manifest_list: str) -> None:
    document = json.loads(metadata.read_text())
    [snapshot] = document["snapshots"]
    snapshot |= {"snapshot-id": _SNAPSHOT, "manifest-list": manifest_list}
    document["current-snapshot-id"] = document["refs"]["main"]["snapshot-id"] = _SNAPSHOT
    document["snapshot-log"] = []
    newest = metadata.with_name("00099-many.metadata.json")
    newest.write_text(json.dumps(document))
    with icetree.connect(_uri(folder), properties={"name": "main"}) as lake:
        lake.drop_table("db.t")
        lake.register_table("db.t", f"file://{newest}")


def _entry(like: Any, number: int) -> Any:
    low, high = (each.to_bytes(8, "little") for each in (number * _ROWS, (number + 1) * _ROWS - 1))
    file = {
        **like["data_file"],
        "file_path": f"file:///lake/db/t/data/{number:08d}.parquet",
        "record_count": _ROWS,
        "lower_bounds": [{**each, "value": low} for each in like["data_file"]["lower_bounds"]],
        "upper_bounds": [{**each, "value": high} for each in like["data_file"]["upper_bounds"]],
    }
    return {**like, "snapshot_id": _SNAPSHOT, "data_file": file}


def _read(location: str) -> tuple[list[Any], Any, dict[str, str]]:
    with Path(location.removeprefix("file://")).open("rb") as file:
        reader = fastavro.reader(file)
        says = {key: text for key, text in reader.metadata.items() if not key.startswith("avro.")}
        return [*reader], reader.writer_schema, says


def _write(path: Path, schema: Any, says: dict[str, str], rows: list[Any]) -> int:
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="deflate", metadata=says)
    return path.stat().st_size


def _uri(folder: Path) -> str:
    return f"sqlite:///{folder}/catalog.db"
