"""The rows gone from a file as bytes in which Spark's generated code looks a row up.

Rows are taken in pieces of 2^10. First comes an int for each piece, the offset of its bits among the
bytes, then bits as longs, those of a piece without marks once for all of them. So a file with few
marks far apart takes few bytes, and no row needs a branch. All numbers have their big end first.

Whoever looks up a row past `last` looks up that one, which has no mark: no row is outside of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as f

from icetree.rows.read.deletes import Rows
from icetree.spark.read.internals import Internals

#: Of more rows than this, offsets alone would be too many.
MOST_ROWS: Final = 1 << 34

_PIECE_BITS: Final = 10
_WORDS: Final = (1 << _PIECE_BITS) // 64


def marks_of(rows: Rows) -> tuple[int, bytes]:
    """Return `last` and the bytes for rows that are gone, ascending."""
    last = int(rows[-1]) + 1 if len(rows) else 0
    pieces = (last >> _PIECE_BITS) + 1
    used, inverse = np.unique(rows >> _PIECE_BITS, return_inverse=True)
    # The first bits are those of all pieces without marks.
    words = np.zeros((len(used) + 1) * _WORDS, np.uint64)
    at = (inverse + 1) * _WORDS + ((rows >> 6) & (_WORDS - 1))
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    if len(starts):
        bits = np.left_shift(np.uint64(1), (rows & 63).astype(np.uint64))
        words[at[starts]] = np.bitwise_or.reduceat(bits, starts)
    offsets = np.full(pieces, pieces * 4, np.int64)
    offsets[used] += (np.arange(len(used)) + 1) * _WORDS * 8
    return last, offsets.astype(">i4").tobytes() + words.astype(">u8").tobytes()


def is_marked(java: Internals, marks: str, last: str, position: str) -> Column:
    """Return whether a row is gone; `marks`, `last` and `position` are SQL."""
    key = (marks, last, position)
    if key not in java.made:
        java.made[key] = _is_marked(java, *key)
    return java.made[key]


def _is_marked(java: Internals, marks: str, last: str, position: str) -> Column:
    row = f"least({position}, {last})"
    piece = f.expr(f"CAST(shiftright({row}, {_PIECE_BITS}) * 4 AS INT)")
    within = f.expr(f"CAST((shiftright({row}, 6) & {_WORDS - 1}) * 8 AS INT)")
    offset = java.number_at(f.expr(marks), piece)
    word = java.number_at(f.expr(marks), offset + within, long=True)
    return f.getbit(word, f.expr(f"CAST({row} & 63 AS INT)")) == 1
