"""A snapshot's changes, made ready to be committed a second time."""

from __future__ import annotations

import pytest

from icetree.errors import InvalidInput
from icetree.spec.entry.entry import Content
from icetree.spec.metadata.snapshot import Snapshot
from icetree.tree.changes import Intent, Operation
from icetree.tree.diff.diff import Diff, diff
from icetree.tree.grow.cherry_pick import REPLACE_PARTITIONS, picked_changes
from tests.golden.drawing import History


def staged(**summary: str) -> Snapshot:
    return Snapshot(snapshot_id=9, timestamp_ms=1, root_manifest="r", summary=summary)


def replaced() -> Diff:
    history = History()
    history.snapshot("M1 ADDED", "D3 ADDED", M1=["D1 ADDED", "D2 ADDED"])
    last = history.snapshot(
        "M1 EXISTING", "D3 DELETED", "MDV1 ADDED [1] diff [1] -> M1", "D4 ADDED"
    )
    return diff(last.root, last.reader)


def test_an_append_is_picked_with_its_files_as_new() -> None:
    history = History()
    history.snapshot("D1 ADDED")
    last = history.snapshot("D1 EXISTING", "M1 ADDED", "D4 ADDED", M1=["D2 ADDED", "D3 ADDED"])
    changes = picked_changes(staged(operation="append"), diff(last.root, last.reader))
    assert (changes.intent, changes.operation) == (Intent.APPEND, Operation.APPEND)
    assert sorted(changes.added["location"].to_pylist()) == ["D2", "D3", "D4"]
    for name in ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"):
        assert changes.added[name].null_count == 3
    assert {"leaf", "position"}.isdisjoint(changes.added.column_names)


def test_a_replacement_of_partitions_is_picked_with_what_it_removed() -> None:
    summary = {"operation": "overwrite", REPLACE_PARTITIONS: "true"}
    changes = picked_changes(staged(**summary), replaced())
    assert changes.intent is Intent.REPLACE_PARTITIONS
    assert changes.added["location"].to_pylist() == ["D4"]
    assert sorted(changes.removed["key"].to_pylist()) == ["D2", "D3"]
    assert set(changes.removed["content_type"].to_pylist()) == {int(Content.DATA)}
    assert changes.removed["leaf"].null_count == 2


@pytest.mark.parametrize("operation", ["overwrite", "delete", "replace", "append"])
def test_nothing_else_is_picked(operation: str) -> None:
    with pytest.raises(InvalidInput, match=f"snapshot 9 .{operation}. cannot be cherry-picked"):
        picked_changes(staged(operation=operation), replaced())
