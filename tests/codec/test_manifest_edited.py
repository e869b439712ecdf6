"""A manifest with columns changed: what else its writer put there is as it was."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec.manifest.edited import edited


def test_nothing_is_told_of_a_copied_manifest_but_what_was_told_of_it() -> None:
    """An Arrow schema is of the writer's own columns, by whatever key one has it out of the way."""
    rows = pa.table({"location": ["a"], "name": pa.array(["x"], pa.large_string())})
    sink = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata({"format-version": "4"}), sink)
    content = sink.getvalue().to_pybytes()
    assert {*pq.read_metadata(pa.BufferReader(content)).metadata} > {b"ARROW:schema"}
    made = edited(content, lambda _: {"location": pa.array(["b"])}, file="f")
    found = pq.ParquetFile(pa.BufferReader(made))
    assert found.metadata.metadata == {b"format-version": b"4"}
    assert found.read().to_pydict() == {"location": ["b"], "name": ["x"]}
