"""Random access to a file of which only ranges are read."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import pyarrow as pa


def ranged_file(
    read_range: Callable[[int, int], bytes], *, size_bytes: int, tail: bytes = b""
) -> pa.NativeFile:
    """Return a file on top of `read_range(offset, length)`.

    The `tail`, if known, is the end of the file: a Parquet footer is then no further request.
    """
    return pa.PythonFile(_Ranges(read_range, size_bytes, tail), mode="r")


class _Ranges(io.RawIOBase):
    def __init__(
        self, read_range: Callable[[int, int], bytes], size_bytes: int, tail: bytes
    ) -> None:
        self._read_range = read_range
        self._size_bytes = size_bytes
        self._tail = tail
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size_bytes - self._at)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        in_tail = self._at - (self._size_bytes - len(self._tail))
        if in_tail >= 0:
            content = self._tail[in_tail : in_tail + length]
        else:
            content = self._read_range(self._at, length)
        self._at += len(content)
        return content
