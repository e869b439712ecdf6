"""What a manifest's own footer says of its row groups, all that readers ever go by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from icetree.codec.manifest.read import UNREADABLE, read_flat
from icetree.codec.manifest.row_groups import row_group_stats, same_throughout
from icetree.codec.manifest.stored import open_manifest
from icetree.errors import CorruptTable
from icetree.spec.schema.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What spares readers row groups, or columns: none of it need be true."""

    #: A row for each row group, with its number of entries as `record_count`.
    bounds: pa.Table
    #: The value of each column that has one alone.
    same: dict[str, pa.Scalar]


def told(source: bytes | pa.NativeFile, kind: str, shape: Shape, *, file: str) -> Told | None:
    """Return what a footer says of several row groups; None of one, which is always read."""
    if isinstance(source, bytes):
        source = pa.BufferReader(source)
    try:
        manifest = open_manifest(source, kind, shape, file=file, columns=None)
        if manifest.parquet.num_row_groups < 2:
            return None
        manifest = replace(manifest, looks_at_once=True)
        for at in range(manifest.parquet.num_row_groups):
            # Has this row group as many entries as it says? All of them together do.
            read_flat(manifest, [at], ["record_count"])
        return Told(bounds=row_group_stats(manifest), same=same_throughout(manifest))
    except UNREADABLE as error:
        raise CorruptTable(file, f"not a readable Parquet manifest: {error}") from error
