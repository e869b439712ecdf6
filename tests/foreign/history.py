"""Table metadata as another writer stores it: one JSON file, with or without pages of history."""

from __future__ import annotations

import gzip
import json
from random import Random

from tests.foreign.columns import Field, Json
from tests.foreign.dress import aside
from tests.foreign.layout import LAST_WITH_STATS
from tests.foreign.spelled import marked, spelled
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
#: How much stats our commits write.
_METRICS = ("none", "counts", "truncate(2)", "truncate(16)", "full")


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
    chance = aside(rng, "metadata")
    if writer.shop.strange:
        _vary(document, writer, chance)
    if paged:
        # Those that refs are at stay, and the log has as many as there are.
        ids = {each["snapshot-id"] for each in document.get("refs", {}).values()} | {current}
        old = [each for each in snapshots[:paged] if each["snapshot-id"] not in ids]
        early = [
            each for each in log if each["timestamp-ms"] <= snapshots[paged - 1]["timestamp-ms"]
        ]
        if old:
            document["snapshot-pages"] = _pages(writer, old, early, chance)
            snapshots = [each for each in snapshots if each not in old]
            log = log[len(early) :]
    document["snapshots"] = snapshots
    document["snapshot-log"] = log
    content = _bytes(document, writer, chance)
    if rng.random() < 0.5:
        return writer.shop.store("metadata", "-a.gz.metadata.json", gzip.compress(content))
    return writer.shop.store("metadata", "-a.metadata.json", content)


def _bytes(document: Json, writer: Writer, chance: Random) -> bytes:
    if not writer.shop.strange:
        return json.dumps(document).encode()
    return spelled(marked(document, chance), chance)


def _vary(document: Json, writer: Writer, chance: Random) -> None:
    """Say what may be said otherwise, leave out what may be left out, and say more."""
    _vary_sources(document, chance)
    _vary_numbers(document, writer, chance)
    _vary_schemas(document, writer, chance)
    _vary_refs(document, chance)
    if chance.random() < 0.2:
        document["sort-orders"] = document["sort-orders"][1:]
    if chance.random() < 0.2:
        document["location"] += "/"
    if chance.random() < 0.3:
        document["properties"]["write.metadata.metrics.default"] = chance.choice(_METRICS)
    if writer.shop.mapped:
        document["properties"]["schema.name-mapping.default"] = _name_mapping(writer, chance)


def _vary_sources(document: Json, chance: Random) -> None:
    for each in document["expressions"]:
        _name_sources(each["expr"], chance)
        if chance.random() < 0.2:
            # As an example of the proposal has it.
            each["expr"]["partition-field-id"] = each.pop("partition-field-id")
    for order in document["sort-orders"]:
        for each in order["fields"]:
            _name_sources(each, chance)


def _vary_numbers(document: Json, writer: Writer, chance: Random) -> None:
    """Have given more numbers than are used, and an expression that no spec names."""
    if chance.random() < 0.3:
        document["last-partition-id"] += 3
    if chance.random() < 0.3 and document["last-column-id"] < LAST_WITH_STATS:
        document["last-column-id"] += 2
        document["last-partition-id"] += 1
        unused = {"source-id": writer.layout.column("id").id, "transform": "void", "name": "idle"}
        told = {"expr-id": document["last-column-id"], "expr": unused}
        document["expressions"].append(told | {"partition-field-id": document["last-partition-id"]})


def _vary_schemas(document: Json, writer: Writer, chance: Random) -> None:
    for schema in document["schemas"]:
        if chance.random() < 0.3:
            schema["identifier-field-ids"] = [writer.layout.column("id").id]
        for each in schema["fields"]:
            if chance.random() < 0.1:
                each["doc"] = "what it is: \u2028 é"


def _vary_refs(document: Json, chance: Random) -> None:
    refs = document["refs"]
    for each in refs.values():
        if chance.random() < 0.2:
            each |= {"max-ref-age-ms": 1 << 50, "min-snapshots-to-keep": None}
    if chance.random() < 0.2:
        del refs["main"]
    if not refs and chance.random() < 0.5:
        del document["refs"]


def _name_sources(told: Json, chance: Random) -> None:
    """Name a column alone, in a list of one, or both."""
    if "source-id" in told and chance.random() < 0.3:
        told["source-ids"] = [told["source-id"]]
        if chance.random() < 0.5:
            del told["source-id"]


def _name_mapping(writer: Writer, chance: Random) -> str:
    """Return which columns of files without ids are which, by the names of the first schema."""
    return json.dumps(
        [
            *(_mapped(each, chance) for each in writer.layout.schemas[0].columns),
            {"names": ["of_no_id", "made_by"]},
            {"field-id": writer.layout.free[0], "names": []},
        ]
    )


def _mapped(field: Field, chance: Random) -> Json:
    names = [field.name, f"{field.name} of old"]
    found: Json = {"field-id": field.id, "names": chance.sample(names, 2)}
    parts = [_mapped(part, chance) for part in field.parts()]
    return found | ({"fields": parts} if parts else {})


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


def _pages(writer: Writer, snapshots: list[Json], log: list[Json], chance: Random) -> list[Json]:
    at = chance.choice((0, 0, len(snapshots) // 2))
    parts = [(snapshots[:at], log[:at]), (snapshots[at:], log[at:])]
    return [_page(writer, *part, chance) for part in parts if part[0]]


def _page(writer: Writer, snapshots: list[Json], log: list[Json], chance: Random) -> Json:
    content = _bytes({"snapshots": snapshots, "snapshot-log": log}, writer, chance)
    if writer.shop.strange and chance.random() < 0.5:
        content = gzip.compress(content)
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
