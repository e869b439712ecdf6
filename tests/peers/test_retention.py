"""What snapshots, branches and tags go: Iceberg Java says the same of any history."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from icetree.codec import metadata as metadata_codec
from icetree.spec.metadata.retention import expired, rules_of
from tests.java import IcebergJava

_MINUTE_MS = 60_000
#: How long ago the oldest snapshot may have been made.
_MINUTES = 40
_HISTORIES = 150


def _drawn(chance: random.Random, now_ms: int, folder: Path) -> dict[str, Any]:
    """Return metadata with snapshots in any lines, some of them staged or rolled back."""
    count = chance.randint(1, 12)
    ages = sorted((chance.sample(range(1, _MINUTES), count)), reverse=True)
    snapshots: list[dict[str, Any]] = []
    for number, age in enumerate(ages, start=1):
        one = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": now_ms - age * _MINUTE_MS,
            "manifest-list": f"{folder}/{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        if number > 1 and chance.random() < 0.9:
            # Of a parent that is not the newest, it is a line of its own; some parents are gone.
            one["parent-snapshot-id"] = chance.choice(
                [number - 1, number - 1, chance.randrange(number)]
            )
        snapshots.append(one)
    refs: dict[str, Any] = {"main": _branch(chance, count)}
    for at in range(chance.randrange(4)):
        if chance.random() < 0.5:
            refs[f"tag{at}"] = {"type": "tag", "snapshot-id": chance.randint(1, count)}
        else:
            refs[f"branch{at}"] = _branch(chance, count)
    for name in [*refs][1:]:
        if chance.random() < 0.3:
            refs[name]["max-ref-age-ms"] = _age(chance)
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(folder),
        "last-sequence-number": count,
        "last-updated-ms": now_ms,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": refs["main"]["snapshot-id"],
        "refs": refs,
        "snapshots": snapshots,
        "snapshot-log": [{"snapshot-id": refs["main"]["snapshot-id"], "timestamp-ms": now_ms}],
        "metadata-log": [],
        "statistics": [],
    }


def _branch(chance: random.Random, count: int) -> dict[str, Any]:
    branch: dict[str, Any] = {"type": "branch", "snapshot-id": chance.randint(1, count)}
    if chance.random() < 0.3:
        branch["min-snapshots-to-keep"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        branch["max-snapshot-age-ms"] = _age(chance)
    return branch


def _age(chance: random.Random) -> int:
    """Return an age that no snapshot has at any moment of the test."""
    return chance.randrange(_MINUTES) * _MINUTE_MS + _MINUTE_MS // 2


def test_java_keeps_the_same_snapshots_of_any_history(java: IcebergJava, tmp_path: Path) -> None:
    chance, went = random.Random(1), 0
    for number in range(_HISTORIES):
        now_ms = int(time.time() * 1000)
        place = tmp_path / f"{number}.metadata.json"
        place.write_text(json.dumps(_drawn(chance, now_ms, tmp_path)))
        older_than_ms, least = now_ms - _age(chance), chance.randint(1, 4)
        theirs = java.table(str(place)).expireSnapshots()
        theirs = theirs.expireOlderThan(older_than_ms).retainLast(least).apply()
        ours = metadata_codec.decode(place.read_bytes(), file=place.name)
        rules = rules_of({}, at_ms=now_ms, older_than_ms=older_than_ms, keep_last=least)
        found = expired(ours, ours.snapshots, rules, at_ms=now_ms).snapshot_ids
        assert found == {each.snapshotId() for each in theirs}, place.read_text()
        went += len(found)
    assert went > _HISTORIES
