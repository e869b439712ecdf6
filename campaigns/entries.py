"""Entries of files that are never written: what campaigns commit where only metadata counts."""

from __future__ import annotations

from icetree.spec.entry import Content, Entry


def place_of(name: str) -> str:
    """Return where a data file would be."""
    return f"data/{name}.parquet"


def data_file(name: str) -> Entry:
    """Return a data file of ten rows."""
    return Entry(location=place_of(name), record_count=10, file_size_in_bytes=1_000)


def vector(name: str, *, of: str) -> Entry:
    """Return a DV that marks a row of a data file."""
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"data/{name}.puffin",
        file_format="puffin",
        file_size_in_bytes=100,
        dv_offset=4,
        dv_size_in_bytes=40,
        record_count=1,
        referenced_file=place_of(of),
    )
