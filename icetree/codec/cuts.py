"""Binary arrays cut out of bytes that lie side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def cut(content: np.ndarray[Any, Any], width: int) -> pa.BinaryArray:
    """Return bytes cut into parts of one width."""
    size = len(content) // width if width else 0
    return _binary(np.arange(size + 1, dtype=np.int64) * width, content)


def cut_by(widths: np.ndarray[Any, Any], content: np.ndarray[Any, Any]) -> pa.BinaryArray:
    """Return bytes cut into parts of these widths."""
    return _binary(np.concatenate([[0], np.cumsum(widths)]), content)


def masked(found: pa.BinaryArray, like: pa.Array) -> pa.BinaryArray:
    """Return parts where another array has values, null elsewhere."""
    if not like.null_count:
        return found
    return pc.if_else(pc.is_valid(like), found, pa.scalar(None, pa.binary()))


def _binary(offsets: np.ndarray[Any, Any], content: np.ndarray[Any, Any]) -> pa.BinaryArray:
    buffers = [
        None,
        pa.py_buffer(offsets.astype(np.int32)),
        pa.py_buffer(np.ascontiguousarray(content)),
    ]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
