"""Footers of Parquet files that others wrote.

What counts is the Parquet schema. An Arrow schema that a writer embedded dresses the same columns
as large strings, views or dictionaries, some of which Arrow itself cannot read back; nothing in
pyarrow tells it to look past that, except that it is not there.
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

#: The key under which Arrow looks for the schema that a writer embedded.
ARROW_SCHEMA: Final = b"ARROW:schema"
#: As long, so that all else in the footer stays where it is.
_OTHER_KEY: Final = b"ARROW:hidden"

_MAGIC: Final = b"PAR1"
_TAIL: Final = struct.Struct("<I4s")


def plain_footer(source: pa.NativeFile) -> pq.FileMetaData:
    """Return the footer of a file that could be opened, without what Arrow wrote for itself."""
    end = source.size() - _TAIL.size
    (size, _) = _TAIL.unpack(source.read_at(_TAIL.size, end))
    footer = source.read_at(size, end - size).replace(ARROW_SCHEMA, _OTHER_KEY)
    alone = _MAGIC + footer + _TAIL.pack(size, _MAGIC)
    return pq.read_metadata(pa.BufferReader(alone))
