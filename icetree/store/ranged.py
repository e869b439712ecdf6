"""Random access to a file of which only ranges are read."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from icetree.codec.seeking import Seeking


def ranged_file(
    read_range: Callable[[int, int], bytes], *, size_bytes: int, tail: bytes = b""
) -> pa.NativeFile:
    """Return a file on top of `read_range(offset, length)`.

    The `tail`, if known, is the end of the file: a Parquet footer is then no further request.
    """
    return pa.PythonFile(_Ranges(read_range, size_bytes, tail), mode="r")


class _Ranges(Seeking):
    def __init__(
        self, read_range: Callable[[int, int], bytes], size_bytes: int, tail: bytes
    ) -> None:
        super().__init__(size_bytes)
        self._read_range = read_range
        self._tail = tail

    def read(self, size: int | None = -1, /) -> bytes:
        length = self._length(size)
        if not length:
            return b""
        in_tail = self._at - (self._size_bytes - len(self._tail))
        if in_tail >= 0:
            content = self._tail[in_tail : in_tail + length]
        else:
            content = self._read_range(self._at, length)
        self._at += len(content)
        return content
