"""Encrypted lakes, and what whoever has no key finds in their files."""

from __future__ import annotations

import gzip
import io
from base64 import b64encode
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

import icetree
from icetree.table.lake import Lake
from icetree.table.table import Table

KEY, WRONG = b"0123456789012345", b"1123456789012345"
#: Values, and names of columns, that nobody may find.
VALUES = (b"hush-", b"Zanzibar")
NAMES = (b"diagnosis", b"city")
SCHEMA = pa.schema([("n", pa.int64()), ("diagnosis", pa.string()), ("city", pa.string())])
#: Small, so that few rows make leaves, manifest DVs in Puffin and all else there is.
SMALL = {
    "encryption.key-id": "k",
    "write.root.max-data-entries": "3",
    "write.root.max-delete-entries": "3",
    "write.manifest-dv.inline-max-bytes": "0",
}


def key_file(tmp_path: Path, **keys: bytes) -> str:
    path = tmp_path / "-".join(["keys", *(key[:4].decode() for key in keys.values())])
    path.write_text("\n".join(f"{id}={b64encode(key).decode()}" for id, key in keys.items()))
    return str(path)


def connected(tmp_path: Path, **keys: bytes) -> Lake:
    return icetree.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "lake"),
        properties={"encryption.key-file": key_file(tmp_path, **keys)} if keys else None,
    )


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {
            "n": numbers,
            "diagnosis": [f"hush-{n}" for n in numbers],
            "city": ["Zanzibar" if n % 2 else "Zanzibar-2" for n in numbers],
        },
        schema=SCHEMA,
    )


EXPECTED = sorted({n for n in range(60) if n % 2 == 0 or n > 10} - {5, 6, 15, 22, 23} | {1, 1000})


def numbers(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["n"].to_pylist())


def texts_in(folder: Path, *words: bytes) -> dict[str, list[bytes]]:
    """Return the words that files have, or their names, as they are or unpacked."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(folder.rglob("*")):
        content = unpacked(path.read_bytes()) if path.is_file() else b""
        content += str(path.relative_to(folder)).encode()
        if there := [word for word in words if word in content]:
            found[str(path.relative_to(folder))] = there
    return found


def unpacked(content: bytes) -> bytes:
    """Return a file's bytes and all that stock readers get out of it, as whoever has no key."""
    rows: object = b""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if content.startswith(b"PAR1"):
        rows = pq.read_table(pa.BufferReader(content)).to_pydict()
    elif content.startswith(b"ORC"):
        rows = orc.ORCFile(pa.BufferReader(content)).read().to_pydict()
    elif content.startswith(b"Obj\1"):
        rows = list(fastavro.reader(io.BytesIO(content)))
    return content + repr(rows).encode()
