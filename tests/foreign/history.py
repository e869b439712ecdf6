"""Table metadata as another writer stores it: one JSON file, with or without pages of history."""

from __future__ import annotations

import gzip
import json
from random import Random

from tests.foreign.columns import Json
from tests.foreign.writer import Snapshot, Writer

#: So that commits on top flush, affiliate and compact, and write DVs.
_TINY = {
    "write.root.max-data-entries": ("0", "1", "3", "1000"),
    "write.root.max-delete-entries": ("0", "0", "1", "1000"),
    "write.manifest-dv.inline-max-bytes": ("0", "65536"),
    **dict.fromkeys(
        ("write.delete.mode", "write.update.mode", "write.merge.mode"),
        ("merge-on-read", "merge-on-read", "copy-on-write"),
    ),
    "write.flush.affinity-min-entries": ("1", "1", "2", "50"),
    "write.leaf.max-entries": ("1", "2", "5", "50000"),
    "write.commit.compact-min-leaves": ("2", "4", "16"),
    "write.commit.compact-removed-percent": ("10", "50", "99"),
}


def metadata(writer: Writer, rng: Random) -> str:
    """Store the table's metadata; return where."""
    snapshots = [_snapshot(each, writer) for each in writer.snapshots]
    # Main may have been at any that it comes from, and was at no other.
    own = _ancestors(writer)
    log = [
        {"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]}
        for each in snapshots
        if each["snapshot-id"] in own
    ]
    current = writer.snapshots[writer.head].id
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
        "refs": {"main": {"snapshot-id": current, "type": "branch"}} | _refs(writer),
        "properties": {
            name: rng.choice(values) for name, values in _TINY.items() if rng.random() < 0.7
        },
    }
    paged = rng.randrange(len(snapshots)) if rng.random() < 0.4 else 0
    if paged:
        # Those that refs are at stay, and the log has as many as there are.
        ids = {each["snapshot-id"] for each in document["refs"].values()}
        old = [each for each in snapshots[:paged] if each["snapshot-id"] not in ids]
        early = [
            each for each in log if each["timestamp-ms"] <= snapshots[paged - 1]["timestamp-ms"]
        ]
        if old:
            document["snapshot-pages"] = [_page(writer, old, early)]
            snapshots = [each for each in snapshots if each not in old]
            log = log[len(early) :]
    document["snapshots"] = snapshots
    document["snapshot-log"] = log
    content = json.dumps(document).encode()
    if rng.random() < 0.5:
        return writer.shop.store("metadata", "-a.gz.metadata.json", gzip.compress(content))
    return writer.shop.store("metadata", "-a.metadata.json", content)


def _ancestors(writer: Writer) -> set[int]:
    parents = {each.id: each.parent for each in writer.snapshots}
    at: int | None = writer.snapshots[writer.head].id
    found = set()
    while at in parents:
        found.add(at)
        at = parents[at]
    return found


def _refs(writer: Writer) -> Json:
    refs = {name: (id, "branch") for name, id in writer.heads.items() if name != "main"}
    refs |= {name: (id, "tag") for name, id in writer.tags.items()}
    return {name: {"snapshot-id": id, "type": type} for name, (id, type) in refs.items()}


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
        "schema-id": each.schema_id,
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
        **_log_times(log),
    }


def _log_times(log: list[Json]) -> Json:
    times = [each["timestamp-ms"] for each in log]
    if not times:
        return {}
    return {"first-log-timestamp-ms": min(times), "last-log-timestamp-ms": max(times)}
