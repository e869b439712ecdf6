"""Files that are read from wherever one seeks to."""

from __future__ import annotations

import io
import os


class Seeking(io.RawIOBase):
    """A file of known length and a place in it; what is read there, is for each kind to say."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
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

    def _length(self, size: int | None) -> int:
        """Return how many bytes a read of so many has, all that is left where none are said."""
        left = max(0, self._size_bytes - self._at)
        return left if size is None or size < 0 else min(size, left)
