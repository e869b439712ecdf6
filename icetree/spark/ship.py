"""What goes from the driver to the executors and back, as bytes."""

from __future__ import annotations

import pyarrow as pa

from icetree.codec import metadata as metadata_codec
from icetree.spec.metadata.metadata import TableMetadata


def shipped(table: pa.Table) -> bytes:
    """Return an Arrow table as bytes."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return bytes(out.getvalue())


def unshipped(sent: bytes) -> pa.Table:
    """Return the Arrow table that the bytes stand for."""
    with pa.ipc.open_stream(sent) as stream:
        return stream.read_all()


def shipped_metadata(metadata: TableMetadata) -> bytes:
    """Return what executors need of the table: all but its history, which may be long."""
    return metadata_codec.encode(without_history(metadata), compress=False)


def without_history(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata of the table as if it had no snapshot."""
    from msgspec.structs import replace as changed

    return changed(
        metadata,
        current_snapshot_id=None,
        refs={},
        snapshots=(),
        snapshot_log=(),
        snapshot_pages=(),
        metadata_log=(),
        statistics=(),
        partition_statistics=(),
    )
