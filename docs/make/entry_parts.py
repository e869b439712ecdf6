"""One entry of a root, byte for byte: what stands in the pages of a file that icetree wrote."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from docs.make.still import Still, lake_in_memory
from docs.make.tables import table as as_table
from icetree.codec.parquet.thrift import I32, STRUCT, Wanted, read_struct
from icetree.surroundings import within

#: Of a page's header: how long the page is, unpacked and as it is.
_HEADER: Final = {2: Wanted(I32), 3: Wanted(I32), 5: Wanted(STRUCT, fields={1: Wanted(I32)})}
_CODECS: Final = {"LZ4": "lz4_raw", "UNCOMPRESSED": None}
_COLUMNS: Final = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])


def files_of_one_entry() -> tuple[bytes, bytes]:
    """Return a root with one data file in it, of three rows in one day; and the table's metadata."""
    with within(Still("entry")):
        lake = lake_in_memory()
        made = lake.create_table("db.t", _COLUMNS, partition_by=["day(at)"])
        days = [datetime(2026, 3, 1, hour) for hour in (6, 12, 18)]  # noqa: DTZ001 (no zone)
        made.append(pa.table([[7, 8, 9], days], schema=_COLUMNS))
        snapshot = made.current_snapshot
        assert snapshot is not None
        assert snapshot.root_manifest is not None
        place = f"{made.location}/{snapshot.root_manifest}"
        store, place_of_metadata = made.files.store, f"{made.location}/metadata"
        newest = max(
            each.location for each in store.list(place_of_metadata) if ".json" in each.location
        )
        return store.read(place), gzip.decompress(store.read(newest))


def columns(root: bytes, within: str) -> Iterator[tuple[str, int, Any, bytes]]:
    """Yield path, field id, value and bytes of every column of a group that has a value."""
    file = pq.ParquetFile(pa.BufferReader(root))
    assert file.metadata.num_rows == file.metadata.num_row_groups == 1
    entry = file.read().to_pylist()[0]
    ids = dict(_ids(file.schema_arrow, ""))
    for at in range(len(file.schema)):
        path = file.schema.column(at).path
        value = entry
        if not path.startswith(f"{within}."):
            continue
        for name in path.split("."):
            value = None if value is None else value[name]
        if value is not None:
            yield path, ids[path], value, page(root, file, at)


def page(root: bytes, file: pq.ParquetFile, at: int) -> bytes:
    """Return the values of a column's only page, as they are in the file once it is unpacked."""
    told, shape = file.metadata.row_group(0).column(at), file.schema.column(at)
    header, begin = read_struct(root, told.data_page_offset, _HEADER)
    packed = root[begin : begin + header[3]]
    codec = _CODECS[told.compression]
    content = (
        packed if codec is None else pa.Codec(codec).decompress(packed, header[2]).to_pybytes()
    )
    # First which of the groups above are there at all, with how many bytes say so.
    for level in (shape.max_repetition_level, shape.max_definition_level):
        if level:
            content = content[4 + int.from_bytes(content[:4], "little") :]
    return content


def _ids(fields: Any, above: str) -> Iterator[tuple[str, int]]:
    for field in fields:
        path = f"{above}{field.name}"
        yield path, int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
        if pa.types.is_struct(field.type):
            yield from _ids(list(field.type), f"{path}.")


def _part(group: str) -> str:
    rows = [
        (f"`{path}`", id, f"`{value}`", f"`{content.hex()}`")
        for path, id, value, content in columns(files_of_one_entry()[0], group)
    ]
    return as_table(("column", "id", "value", "bytes"), rows)


def _expressions() -> str:
    told = json.loads(files_of_one_entry()[1])
    shown = {name: told[name] for name in ("expressions", "partition-specs") if name in told}
    return f"```json\n{json.dumps(shown, indent=2)}\n```"


PARTS: Final[dict[str, Callable[[], str]]] = {
    "tracking bytes": lambda: _part("tracking_info"),
    "stats bytes": lambda: _part("content_stats"),
    "expression bytes": _expressions,
}
