"""Table metadata as another writer stores it: one JSON file, with or without pages of history."""

from __future__ import annotations

import gzip
import json
from random import Random

from tests.foreign.layout import Json
from tests.foreign.writer import Snapshot, Writer

#: So that commits on top flush, affiliate and compact.
_TINY = {
    "write.root.max-data-entries": ("0", "1", "3", "1000"),
    "write.root.max-delete-entries": ("0", "1", "2", "1000"),
    "write.manifest-dv.inline-max-bytes": ("0", "65536"),
}


def metadata(writer: Writer, rng: Random) -> str:
    """Store the table's metadata; return where."""
    snapshots = [_snapshot(each, writer) for each in writer.snapshots]
    log = [{"timestamp-ms": e["timestamp-ms"], "snapshot-id": e["snapshot-id"]} for e in snapshots]
    current = snapshots[-1]["snapshot-id"]
    document: Json = {
        "format-version": 4,
        "table-uuid": "8a7c1f0e-3b5d-4f6a-9c2e-1d0b9a8f7e6d",
        "location": writer.names.table,
        "last-sequence-number": writer.sequence_number,
        "last-updated-ms": writer.clock_ms,
        **writer.layout.metadata_json(),
        "sort-orders": [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": [_by_id(writer)]}],
        "default-sort-order-id": 0,
        "next-row-id": writer.next_row_id,
        "current-snapshot-id": current,
        "refs": {"main": {"snapshot-id": current, "type": "branch"}},
        "properties": {
            name: rng.choice(values) for name, values in _TINY.items() if rng.random() < 0.7
        },
    }
    paged = rng.randrange(len(snapshots)) if rng.random() < 0.4 else 0
    if paged:
        document["snapshot-pages"] = [_page(writer, snapshots[:paged], log[:paged])]
    document["snapshots"] = snapshots[paged:]
    document["snapshot-log"] = log[paged:]
    content = json.dumps(document).encode()
    if rng.random() < 0.5:
        return writer.shop.store("metadata", "-a.gz.metadata.json", gzip.compress(content))
    return writer.shop.store("metadata", "-a.metadata.json", content)


def _by_id(writer: Writer) -> Json:
    return {
        "transform": "identity",
        "source-id": writer.layout.column("id").id,
        "direction": "asc",
        "null-order": "nulls-first",
    }


def _snapshot(each: Snapshot, writer: Writer) -> Json:
    found: Json = {
        "snapshot-id": each.id,
        "sequence-number": each.sequence_number,
        "timestamp-ms": each.at_ms,
        "root-manifest": writer.names(each.root),
        "summary": {"operation": each.operation},
        "schema-id": 0,
        "first-row-id": each.first_row_id,
        "added-rows": each.added_rows,
    }
    return found if each.parent is None else found | {"parent-snapshot-id": each.parent}


def _page(writer: Writer, snapshots: list[Json], log: list[Json]) -> Json:
    content = json.dumps({"snapshots": snapshots, "snapshot-log": log}).encode()
    numbers = [each["sequence-number"] for each in snapshots]
    times = [each["timestamp-ms"] for each in snapshots]
    place = writer.shop.store("metadata", ".page.json", content)
    return {
        "location": writer.names(place),
        "size-in-bytes": len(content),
        "count": len(snapshots),
        "first-sequence-number": min(numbers),
        "last-sequence-number": max(numbers),
        "first-timestamp-ms": min(times),
        "last-timestamp-ms": max(times),
        "log-count": len(log),
        "first-log-timestamp-ms": min(times),
        "last-log-timestamp-ms": max(times),
    }
