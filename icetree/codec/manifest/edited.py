"""A manifest with some of its columns changed as they are stored, and all else as it was, to the null."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec.manifest.write import LEAF_ROW_GROUP


def edited(content: bytes, change: Callable[[pa.Table], Mapping[str, pa.Array]]) -> bytes:
    """Return a manifest with other values in columns, which `change` tells from the stored rows."""
    rows = pq.read_table(pa.BufferReader(content))
    told, schema = rows.schema.metadata or {}, rows.schema.remove_metadata()
    for name, values in change(rows).items():
        at = schema.get_field_index(name)
        rows = rows.set_column(at, schema.field(at), values)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        writer.add_key_value_metadata(told)
        writer.write_table(rows.replace_schema_metadata(), row_group_size=LEAF_ROW_GROUP)
    return bytes(sink.getvalue())
