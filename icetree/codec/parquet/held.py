"""Parts of a file that are in memory before Arrow asks for them: whoever looks first spares nobody a read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from icetree.codec.seeking import Seeking

#: Ranges so near to each other are read as one, up to so many bytes, as Arrow would.
_HOLE_BYTES: Final = 8 * 1024
_RANGE_BYTES: Final = 32 * 1024**2


class Held(Seeking):
    """A source, of which some parts are held; to be read by one at a time."""

    def __init__(self, source: pa.NativeFile) -> None:
        super().__init__(source.size())
        self._source = source
        self._parts: list[tuple[int, memoryview]] = []
        #: Where Arrow reads from.
        self.file: pa.NativeFile = source
        #: Whether all of it is in memory anyhow.
        self.is_whole: bool = isinstance(source, pa.BufferReader)
        if self.is_whole:
            source.seek(0)
            self._parts = [(0, _view(source.read_buffer()))]
        else:
            self.file = pa.PythonFile(self, mode="r")

    def hold(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Read parts, told by offset and length, in place of those that were held."""
        if self.is_whole:
            return
        self._parts = []
        for start, end in _joined(ranges):
            self._source.seek(start)
            self._parts.append((start, _view(self._source.read_buffer(end - start))))

    def let_go(self) -> None:
        """Hold nothing more."""
        if not self.is_whole:
            self._parts = []

    def part(self, offset: int, length: int) -> memoryview | None:
        """Return a part that is held; None for one that is not."""
        for start, content in self._parts:
            if start <= offset and offset + length <= start + len(content):
                return content[offset - start : offset - start + length]
        return None

    # --- as a file -------------------------------------------------------------------------------

    def read(self, size: int | None = -1, /) -> memoryview:
        length = self._length(size)
        content = self.part(self._at, length)
        if content is None:
            self._source.seek(self._at)
            content = _view(self._source.read_buffer(length))
        self._at += len(content)
        return content


def _view(content: pa.Buffer) -> memoryview:
    # Arrow's bytes have signs.
    return memoryview(content).cast("B")


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges by start and end, near ones as one."""
    found: list[tuple[int, int]] = []
    for start, length in sorted(ranges):
        end = start + length
        if found:
            first, last = found[-1]
            if start <= last + _HOLE_BYTES and max(last, end) - first <= _RANGE_BYTES:
                found[-1] = first, max(last, end)
                continue
        found.append((start, end))
    return found
