"""Iceberg's standard key metadata: what opens one file, as its entry has it.

A version byte, then an Avro record: the key, the file's own prefix of what is authenticated with
each part of it, and the length of an AES-GCM stream as it is stored, so that no end can be cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from icetree.codec.encryption.gcm import KEY_BYTES, new_bytes
from icetree.errors import CorruptTable

_VERSION: Final = 1
_SCHEMA: Final = parse_schema(
    {
        "type": "record",
        "name": "key_metadata",
        "fields": [
            {"name": "encryption_key", "type": "bytes"},
            {"name": "aad_prefix", "type": ["null", "bytes"], "default": None},
            {"name": "file_length", "type": ["null", "long"], "default": None},
        ],
    }
)
#: As long as Iceberg's own.
_PREFIX_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKey:
    """What opens one file; none of it is shown in the text form."""

    key: bytes = field(repr=False)
    aad_prefix: bytes = field(default=b"", repr=False)
    #: Of an AES-GCM stream, as stored.
    length: int | None = None


def new_file_key(key_bytes: int) -> FileKey:
    """Return a key that no other file has."""
    return FileKey(key=new_bytes(key_bytes), aad_prefix=new_bytes(_PREFIX_BYTES))


def encode(key: FileKey) -> bytes:
    """Return the bytes that an entry has."""
    out = BytesIO()
    out.write(bytes([_VERSION]))
    record = {
        "encryption_key": key.key,
        "aad_prefix": key.aad_prefix,
        "file_length": key.length,
    }
    schemaless_writer(out, _SCHEMA, record)
    return out.getvalue()


def standard(stored: bytes | None) -> bytes | None:
    """Return key metadata, None where it is none of the standard kind.

    What another kind means only its writer knows. Its files are read as they are, and one that is
    encrypted is told from those that are not by its first bytes.
    """
    return stored if stored is not None and stored[:1] == bytes([_VERSION]) else None


def decode(stored: bytes, *, file: str) -> FileKey:
    """Read the key metadata of a file; no message shows any of it."""
    if stored[:1] != bytes([_VERSION]):
        raise CorruptTable(file, "its key metadata is not of the standard kind, version 1")
    try:
        found: Any = schemaless_reader(BytesIO(stored[1:]), _SCHEMA, None)
    except Exception:
        # What fastavro raises for broken bytes is of many kinds, and may quote them.
        raise CorruptTable(file, "its key metadata is broken") from None
    key, length = found["encryption_key"], found["file_length"]
    if len(key) not in KEY_BYTES or (length is not None and length < 0):
        raise CorruptTable(file, "its key metadata has no key of 16, 24 or 32 bytes")
    return FileKey(key=key, aad_prefix=found["aad_prefix"] or b"", length=length)
