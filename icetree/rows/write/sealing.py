"""New files of rows, encrypted where their table is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from icetree.codec.encryption import key_metadata
from icetree.codec.encryption.key_metadata import FileKey, new_file_key
from icetree.codec.encryption.stream import encrypt
from icetree.rows.formats.format import Format, as_it_is


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file as it is stored, and what its entry says of that."""

    content: bytes = field(repr=False)
    split_offsets: list[int] | None
    key_metadata: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """How one new file is made: in which format, and with which key, if any."""

    format: Format
    key: FileKey | None = None

    @classmethod
    def of(cls, format: Format, key_bytes: int | None) -> Sealing:
        """Return how a file is made, with a new key of so many bytes; None for a plain one."""
        if key_bytes is None:
            return cls(format=format)
        key = new_file_key(key_bytes)
        return cls(format=format if format.keyed is None else format.keyed(key), key=key)

    @property
    def is_as_written(self) -> bool:
        """Whether a file is stored as its format writes it, byte for byte."""
        is_sealed = self.key is not None and self.format.keyed is None
        return self.format.finished is as_it_is and not is_sealed

    def of_written(self, content: pa.Buffer) -> Stored:
        """Return what an entry says of a file that is stored as its format wrote it; not its content."""
        key = None if self.key is None else key_metadata.encode(self.key)
        return Stored(
            content=b"", split_offsets=self.format.split_offsets(content), key_metadata=key
        )

    def stored(self, content: pa.Buffer) -> Stored:
        """Return what the format made, as it is stored."""
        content = self.format.finished(content)
        offsets, key = self.format.split_offsets(content), self.key
        whole: bytes = content.to_pybytes()
        if key is None:
            return Stored(content=whole, split_offsets=offsets, key_metadata=None)
        if self.format.keyed is None:
            # Where it could be cut is of no use to who sees the stream alone.
            whole, offsets = encrypt(whole, key), None
            key = replace(key, length=len(whole))
        return Stored(content=whole, split_offsets=offsets, key_metadata=key_metadata.encode(key))
