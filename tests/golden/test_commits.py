"""The worked examples of commits in the proposal, one test each, named after it."""

from __future__ import annotations

import pytest

from icetree.codec import manifest
from icetree.spec.entry.entry import DATA, DELETE, ROOT, Content, Entry, to_table
from icetree.tree.changes import Changes, Intent, removal
from icetree.tree.check.check import check
from icetree.tree.draft import Head, Stamp
from icetree.tree.grow.grow import grow, prepare
from icetree.tree.policy import Policy
from tests.golden.drawing import ROWS_PER_FILE, SHAPE, History, Snapshot

#: Every new file goes to a leaf of its own commit, as the proposal draws large operations.
LARGE = Policy(root_max_data_entries=0, root_max_delete_entries=0)


def data_file(name: str) -> Entry:
    return Entry(location=name, record_count=ROWS_PER_FILE, file_size_in_bytes=1000)


def data_dv(history: History, name: str, positions: list[int], data: str) -> Entry:
    history.rows[name] = tuple(positions)
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=name,
        file_format="puffin",
        file_size_in_bytes=1000,
        dv_offset=4,
        dv_size_in_bytes=50,
        record_count=len(positions),
        referenced_file=data,
    )


def commit(
    history: History,
    before: Snapshot,
    *added: Entry,
    remove: list[str] | None = None,
    policy: Policy,
) -> Snapshot:
    """Commit a change on a drawn snapshot, through bytes, and return the next snapshot."""
    history.snapshot_id += 1
    now = history.snapshot_id
    changes = Changes(
        intent=Intent.OVERWRITE_FILES,
        added=to_table(added, SHAPE),
        removed=removal(remove or []),
    )
    stamp = Stamp(snapshot_id=now, sequence_number=now, commit_id=f"c{now}")
    head = Head(root=before.root, next_row_id=history.next_row_id, summary={})
    prepared = prepare(changes, SHAPE, policy, commit_id=stamp.commit_id)
    draft = grow(head, prepared, stamp, SHAPE, policy, history.reader)
    made = {leaf.file.location: leaf.file.content for leaf in prepared.leaves}
    made |= {file.location: file.content for file in draft.files}
    kinds = {Content.DATA_MANIFEST: DATA, Content.DELETE_MANIFEST: DELETE}
    for entry in draft.root.select(["location", "content_type"]).to_pylist():
        if entry["location"] in made:
            kind = kinds[entry["content_type"]]
            content = made[entry["location"]]
            leaf = manifest.decode(content, kind, SHAPE, file=entry["location"])
            history.reader.leaves[entry["location"]] = leaf
    root = manifest.decode(draft.root_bytes, ROOT, SHAPE, file="root")
    facts = {"snapshot_id": now, "sequence_number": now, "next_row_id": draft.next_row_id}
    assert check(root, history.reader, SHAPE, **facts) == []
    history.next_row_id = draft.next_row_id
    return Snapshot(now, root, history.reader)


def leaf_named(history: History, name: str) -> list[str]:
    """Draw a leaf by the name it has in the drawing."""
    return history.draw_leaf(next(at for at, drawn in history.names.items() if drawn == name))


@pytest.fixture
def history() -> History:
    return History()


@pytest.fixture
def one_leaf(history: History) -> Snapshot:
    return history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"])


def test_appends_to_the_root_manifest(history: History, one_leaf: Snapshot) -> None:
    two = commit(history, one_leaf, data_file("D4"), policy=Policy())
    assert history.draw(two.root) == ["M1 EXISTING", "D4 ADDED"]
    three = commit(history, two, data_file("D5"), policy=Policy())
    assert history.draw(three.root) == ["M1 EXISTING", "D4 EXISTING", "D5 ADDED"]


def test_appends_to_the_root_manifest_using_new_data_manifests(
    history: History, one_leaf: Snapshot
) -> None:
    new = [data_file(name) for name in ("D4", "D5", "D6")]
    two = commit(history, one_leaf, *new, policy=LARGE)
    assert history.draw(two.root) == ["M1 EXISTING", "M2 ADDED"]
    assert leaf_named(history, "M2") == ["D4 ADDED", "D5 ADDED", "D6 ADDED"]


def test_removing_a_file_from_the_root_manifest(history: History) -> None:
    history.snapshot("D1 ADDED", "D2 ADDED")
    one = history.snapshot("D1 EXISTING", "D2 EXISTING")
    two = commit(history, one, remove=["D1"], policy=Policy())
    assert history.draw(two.root) == ["D1 DELETED", "D2 EXISTING"]
    three = commit(history, two, policy=Policy())
    assert history.draw(three.root) == ["D2 EXISTING"]


def test_removing_a_file_from_a_leaf_manifest(history: History, one_leaf: Snapshot) -> None:
    two = commit(history, one_leaf, remove=["D2"], policy=Policy())
    assert history.draw(two.root) == ["M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1"]
    assert history.draw_leaf("M1") == ["D1 ADDED", "D2 ADDED", "D3 ADDED"]


def test_removing_more_files_from_the_same_leaf_grows_its_manifest_dv(
    history: History, one_leaf: Snapshot
) -> None:
    two = commit(history, one_leaf, remove=["D2"], policy=Policy())
    assert history.draw(two.root) == ["M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1"]
    three = commit(history, two, remove=["D3"], policy=Policy())
    assert history.draw(three.root) == ["M1 EXISTING", "MDV2 ADDED [1, 2] diff [2] -> M1"]
    four = commit(history, three, remove=["D1"], policy=Policy())
    assert history.draw(four.root) == ["M1 EXISTING", "MDV3 ADDED [0, 1, 2] diff [0] -> M1"]
    five = commit(history, four, policy=Policy())
    assert history.draw(five.root) == []


def test_overwrite_files_in_root_manifest(history: History) -> None:
    one = history.snapshot("D1 ADDED")
    two = commit(history, one, data_file("D2"), remove=["D1"], policy=Policy())
    assert history.draw(two.root) == ["D1 DELETED", "D2 ADDED"]
    three = commit(history, two, data_file("D3"), remove=["D2"], policy=Policy())
    assert history.draw(three.root) == ["D2 DELETED", "D3 ADDED"]


def test_overwrite_files_in_leaf_manifest(history: History, one_leaf: Snapshot) -> None:
    two = commit(history, one_leaf, data_file("D4"), remove=["D2"], policy=Policy())
    assert history.draw(two.root) == ["M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1", "D4 ADDED"]


def test_root_manifest_only_row_delta(history: History) -> None:
    one = history.snapshot("D1 ADDED")
    vector = data_dv(history, "DV1", [5, 12], "D1")
    two = commit(history, one, vector, data_file("D2"), policy=Policy())
    assert history.draw(two.root) == ["D1 EXISTING", "D2 ADDED", "DV1 ADDED [5, 12] -> D1"]


def test_a_complex_row_delta_with_modified_delete_vectors(history: History) -> None:
    one = history.snapshot(
        "DM1 ADDED",
        "DVM1 ADDED",
        DM1=["D1 ADDED", "D2 ADDED"],
        DVM1=["DV1 ADDED [1] -> D1", "DV2 ADDED [2] -> D2"],
    )
    vector = data_dv(history, "DV4", [1, 3], "D1")
    two = commit(history, one, vector, data_file("D3"), policy=LARGE)
    assert history.draw(two.root) == [
        "DM1 EXISTING",
        "DVM1 EXISTING",
        "MDV1 ADDED [0] diff [0] -> DVM1",
        "M1 ADDED",
        "DVM2 ADDED",
    ]
    assert leaf_named(history, "DVM2") == ["DV4 ADDED [1, 3] -> D1"]
    assert leaf_named(history, "M1") == ["D3 ADDED"]


def test_removing_a_data_file_takes_its_vector_along_through_two_manifest_dvs(
    history: History,
) -> None:
    one = history.snapshot(
        "M1 ADDED",
        "DVM1 ADDED -> M1",
        M1=["D1 ADDED", "D2 ADDED"],
        DVM1=["DV1 ADDED [1] -> D1", "DV2 ADDED [2] -> D2"],
    )
    two = commit(history, one, remove=["D2"], policy=Policy())
    assert history.draw(two.root) == [
        "M1 EXISTING",
        "DVM1 EXISTING -> M1",
        "MDV1 ADDED [1] diff [1] -> M1",
        "MDV2 ADDED [1] diff [1] -> DVM1",
    ]


def test_manifest_compaction_during_an_append(history: History) -> None:
    history.snapshot(
        "M1 ADDED",
        "M2 ADDED",
        M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"],
        M2=["D4 ADDED", "D5 ADDED", "D6 ADDED"],
    )
    one = history.snapshot(
        "M1 EXISTING", "M2 EXISTING", "MDV1 EXISTING [0] -> M1", "MDV2 EXISTING [1] -> M2"
    )
    two = commit(history, one, data_file("D7"), policy=Policy())
    assert history.draw(two.root) == ["M3 EXISTING", "D7 ADDED"]
    assert leaf_named(history, "M3") == ["D2 EXISTING", "D3 EXISTING", "D4 EXISTING", "D6 EXISTING"]


def test_delete_manifests_follow_the_data_manifest_they_are_affiliated_with(
    history: History,
) -> None:
    history.snapshot(
        "M1 ADDED",
        "DVM1 ADDED -> M1",
        M1=["D1 ADDED", "D2 ADDED", "D3 ADDED"],
        DVM1=["DV3 ADDED [1] -> D3"],
    )
    one = history.snapshot("M1 EXISTING", "DVM1 EXISTING -> M1", "MDV1 EXISTING [0] -> M1")
    two = commit(history, one, data_file("D4"), policy=Policy())
    assert history.draw(two.root) == ["M2 EXISTING", "DVM1 EXISTING -> M2", "D4 ADDED"]
