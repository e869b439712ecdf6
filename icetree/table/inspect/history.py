"""Inspection of what table metadata itself tells: snapshots, history, refs, the metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icetree.spec.edit.refs import ancestors
from icetree.spec.location import absolute
from icetree.spec.metadata.snapshot import LogEntry, Snapshot

if TYPE_CHECKING:
    from icetree.table.table import Table

_TIME: Final = pa.timestamp("ms")

SNAPSHOTS: Final = pa.schema(
    [
        pa.field("committed_at", _TIME, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
        pa.field("root_manifest", pa.string()),
        pa.field("sequence_number", pa.int64()),
        pa.field("schema_id", pa.int32()),
        pa.field("first_row_id", pa.int64()),
        pa.field("added_rows", pa.int64()),
    ]
)
HISTORY: Final = pa.schema(
    [
        pa.field("made_current_at", _TIME, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)
REFS: Final = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)
METADATA_LOG: Final = pa.schema(
    [
        pa.field("timestamp", _TIME, nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)
EXPRESSIONS: Final = pa.schema(
    [
        pa.field("expr_id", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("transform", pa.string(), nullable=False),
        pa.field("source_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("source_names", pa.list_(pa.string()), nullable=False),
        pa.field("type", pa.string()),
        pa.field("partition_field_id", pa.int32()),
        pa.field("spec_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("is_default", pa.bool_(), nullable=False),
    ]
)


def snapshots_table(table: Table) -> pa.Table:
    """Return every snapshot the table still has, oldest first."""
    found = sorted(table.history(), key=lambda each: (each.sequence_number, each.timestamp_ms))
    return pa.Table.from_pylist([_snapshot(each, table.location) for each in found], SNAPSHOTS)


def _snapshot(snapshot: Snapshot, location: str) -> dict[str, Any]:
    summary = snapshot.summary
    root, manifests = snapshot.root_manifest, snapshot.manifest_list
    return {
        "committed_at": snapshot.timestamp_ms,
        "snapshot_id": snapshot.snapshot_id,
        "parent_id": snapshot.parent_snapshot_id,
        "operation": snapshot.operation,
        "manifest_list": None if manifests is None else absolute(manifests, location),
        "summary": summary and {name: summary[name] for name in summary if name != "operation"},
        "root_manifest": None if root is None else absolute(root, location),
        "sequence_number": snapshot.sequence_number,
        "schema_id": snapshot.schema_id,
        "first_row_id": snapshot.first_row_id,
        "added_rows": snapshot.added_rows,
    }


def history_table(table: Table) -> pa.Table:
    """Return which snapshot was made the current one when, oldest first."""
    known = {each.snapshot_id: each for each in table.history()}
    current = table.metadata.current_snapshot_id
    line = () if current is None else ancestors(table.metadata, current, table.files.page)
    mine = {each.snapshot_id for each in line}
    rows = [
        {
            "made_current_at": each.timestamp_ms,
            "snapshot_id": each.snapshot_id,
            "parent_id": known[each.snapshot_id].parent_snapshot_id
            if each.snapshot_id in known
            else None,
            "is_current_ancestor": each.snapshot_id in mine,
        }
        for each in _log(table)
    ]
    return pa.Table.from_pylist(rows, HISTORY)


def _log(table: Table) -> Iterator[LogEntry]:
    """Yield the whole snapshot log, oldest first."""
    pages = sorted(table.metadata.snapshot_pages, key=lambda page: page.first_log_timestamp_ms or 0)
    for page in pages:
        if page.log_count:
            yield from table.files.page(page).snapshot_log
    yield from table.metadata.snapshot_log


def refs_table(table: Table) -> pa.Table:
    """Return the branches and tags."""
    rows = [
        {
            "name": name,
            "type": ref.type.upper(),
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for name, ref in sorted(table.refs.items())
    ]
    return pa.Table.from_pylist(rows, REFS)


def metadata_log_table(table: Table) -> pa.Table:
    """Return the metadata files that were the table's, with what was current then."""
    metadata = table.metadata
    known = {each.snapshot_id: each for each in table.history()}
    log = list(_log(table))
    files = [
        *((each.timestamp_ms, each.metadata_file) for each in metadata.metadata_log),
        (metadata.last_updated_ms, table.state.metadata_location),
    ]
    rows = []
    for at_ms, file in files:
        entry = next((each for each in reversed(log) if each.timestamp_ms <= at_ms), None)
        found = None if entry is None else known.get(entry.snapshot_id)
        rows.append(
            {
                "timestamp": at_ms,
                "file": absolute(file, table.location),
                "latest_snapshot_id": None if entry is None else entry.snapshot_id,
                "latest_schema_id": None if found is None else found.schema_id,
                "latest_sequence_number": None if found is None else found.sequence_number,
            }
        )
    return pa.Table.from_pylist(rows, METADATA_LOG)


def expressions_table(table: Table) -> pa.Table:
    """Return the partition expressions; before v4, those that an upgrade would give."""
    shape = table.metadata.shape()
    rows = [
        {
            "expr_id": id,
            "name": each.name,
            "transform": each.transform,
            "source_ids": list(each.source_ids),
            "source_names": [shape.names.get(source, str(source)) for source in each.source_ids],
            "type": str(shape.types[id]) if id in shape.types else None,
            "partition_field_id": each.partition_field_id,
            "spec_ids": sorted(spec for spec, ids in shape.specs.items() if id in ids),
            "is_default": id in shape.specs.get(shape.default_spec_id, ()),
        }
        for id, each in sorted(shape.expressions.items())
    ]
    return pa.Table.from_pylist(rows, EXPRESSIONS)
