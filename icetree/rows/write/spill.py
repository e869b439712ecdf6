"""Rows put aside on disk, in a file that goes with its process and is encrypted where they are secret."""

from __future__ import annotations

import tempfile
from typing import IO

import pyarrow as pa

from icetree.codec.encryption.key_metadata import new_file_key
from icetree.codec.encryption.stream import Stream, StreamFile, StreamWriter


class Spill:
    """Rows that are first all written, then read once."""

    def __init__(self, schema: pa.Schema, key_bytes: int | None) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="icetree-")  # noqa: SIM115
        # The key is nowhere but here: who finds the blocks on the disk later reads nothing.
        self._sealed = (
            None if key_bytes is None else StreamWriter(self._file.write, new_file_key(key_bytes))
        )
        self._writer = pa.ipc.new_stream(
            pa.PythonFile(self._sealed or self._file, mode="w"),
            schema,
            options=pa.ipc.IpcWriteOptions(compression="lz4"),
        )

    def write(self, rows: pa.Table) -> None:
        """Put rows after those that are there."""
        self._writer.write_table(rows)

    def read(self) -> pa.Table:
        """Return all rows."""
        self._writer.close()
        source = self._file if self._sealed is None else self._opened(self._sealed)
        source.seek(0)
        return pa.ipc.open_stream(pa.PythonFile(source, mode="r")).read_all()

    def close(self) -> None:
        """Give the file up."""
        self._file.close()

    def _opened(self, sealed: StreamWriter) -> StreamFile:
        return StreamFile(Stream(self._range, sealed.finish(), file="a temporary file"))

    def _range(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)
