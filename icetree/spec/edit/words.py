"""A table's layout in the words that made it: what `partition_by` and `order_by` take."""

from __future__ import annotations

from icetree.spec.edit.terms import term_text
from icetree.spec.metadata.metadata import TableMetadata


def partition_words(metadata: TableMetadata, spec_id: int | None = None) -> tuple[str, ...]:
    """Return the terms of a spec, or else of new files: `day(ts)`, `bucket(16, id)`."""
    shape = metadata.shape()
    names = {id: column.name for id, column in shape.columns.items()}
    return tuple(
        term_text(each.transform, *(names.get(id, str(id)) for id in each.source_ids))
        for each in shape.spec(metadata.default_spec_id if spec_id is None else spec_id)
        if each.transform != "void"
    )


def sort_words(metadata: TableMetadata) -> tuple[str, ...]:
    """Return the keys that rows of new files are sorted by: `ts desc`, `id nulls last`."""
    names = {id: column.name for id, column in metadata.shape().columns.items()}
    found = []
    for key in metadata.sort_keys:
        term = term_text(key.transform, *(names.get(id, str(id)) for id in key.source_ids))
        # Nulls are first going up and last going down, unless it is said.
        usual = key.nulls_first != key.descending
        nulls = "" if usual else f" nulls {'first' if key.nulls_first else 'last'}"
        found.append(f"{term}{' desc' if key.descending else ''}{nulls}")
    return tuple(found)
