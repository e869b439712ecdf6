"""A manifest with some of its columns changed as they are stored, and all else as it was, to the null."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec.parquet.footer import HIDDEN_KEY
from icetree.codec.parquet.parquet import open_parquet


def edited(
    content: bytes, change: Callable[[pa.Table], Mapping[str, pa.Array]], *, file: str
) -> bytes:
    """Return a manifest with other values in columns, which `change` tells from stored rows.

    An Arrow schema beside the columns is left out: it tells how its writer had them, and nobody needs it.
    """
    found = open_parquet(pa.BufferReader(content), file=file, page_checksum_verification=True)
    stored = found.parquet.schema_arrow
    schema, sink = stored.remove_metadata(), pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, schema, compression="zstd", store_schema=False,
        store_decimal_as_integer=True, write_page_checksum=True,
    ) as writer:  # fmt: skip
        told = stored.metadata or {}
        writer.add_key_value_metadata({key: told[key] for key in told if key != HIDDEN_KEY})
        for rows in found.read_groups():
            new = rows.replace_schema_metadata()
            for name, values in change(rows).items():
                at = schema.get_field_index(name)
                new = new.set_column(at, schema.field(at), values)
            writer.write_table(new)
    return bytes(sink.getvalue())
