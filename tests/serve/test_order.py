"""Updates are carried out in the order in which a client says them."""

from __future__ import annotations

from typing import Any

import pytest

from icetree.serve.commit import actions as told
from icetree.serve.commit.updates import translated
from tests.serve.committing import PYICEBERG
from tests.serve.test_requirements import new_lake, request, rows, send
from tests.table.changing import some


def test_what_is_said_after_a_snapshot_is_of_the_table_with_it() -> None:
    lake = new_lake()
    table = lake.table("db.t")
    table.append(some((1, "a")))
    old = table.metadata.current_snapshot_id
    body = request(table, 2)
    statistics = {"snapshot-id": 4711, "statistics-path": f"{table.location}/metadata/s.puffin",
                  "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}  # fmt: skip
    body["updates"] += [
        {"action": "remove-snapshots", "snapshot-ids": [old]},
        {"action": "set-statistics", "snapshot-id": 4711, "statistics": statistics},
        {"action": "remove-snapshot-ref", "ref-name": "none"},
    ]
    made = send(lake, body, **PYICEBERG)
    assert made.status == 200, made.body
    assert rows(lake) == [1, 2]
    after = lake.table("db.t").metadata
    assert [each.snapshot_id for each in after.snapshots] == [4711]
    assert [each.snapshot_id for each in after.statistics] == [4711]


def test_what_is_said_before_a_snapshot_is_of_the_table_without_it() -> None:
    lake = new_lake()
    table = lake.table("db.t")
    table.append(some((1, "a")))
    table.create_tag("kept")
    body = request(table, 2)
    moved = {"action": "set-snapshot-ref", "ref-name": "kept", "type": "tag", "snapshot-id": 4711}
    body["updates"] = [
        {"action": "remove-snapshot-ref", "ref-name": "kept"}, *body["updates"], moved,
    ]  # fmt: skip
    made = send(lake, body)
    assert made.status == 200, made.body
    assert lake.table("db.t").refs["kept"].snapshot_id == 4711


def test_many_updates_are_not_compared_with_each_other() -> None:
    class Ref(told.SetSnapshotRef, tag="set-snapshot-ref", frozen=True, kw_only=True):
        def __eq__(self, other: object) -> Any:
            pytest.fail("it is compared")

        __hash__ = None  # type: ignore[assignment]

    snapshot = {"snapshot-id": 1, "manifest-list": "x"}
    refs = [Ref(ref_name=f"r{number}", type="tag", snapshot_id=1) for number in range(10)]
    work = translated([told.AddSnapshot(snapshot=snapshot), *refs], new_lake().table("db.t").metadata)  # fmt: skip
    assert len(work.after) == 10
