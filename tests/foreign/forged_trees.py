"""Roots whose entries do not go together: each says whether it found what to break."""

from __future__ import annotations

from tests.foreign.columns import Json
from tests.foreign.forgery import Forgery, add, is_on, set_in, status_of, track
from tests.foreign.model import DATA
from tests.foreign.tree import (
    ADDED,
    DATA_LEAF,
    DELETED,
    EXISTING,
    Leaf,
    file_entry,
)


def file_twice(f: Forgery) -> bool:
    row = f.live(0, 2)
    return row is not None and add(f, row)


def file_in_root_and_leaf(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF)
    if found is None:
        return False
    file = found[0].live()[0]
    return add(f, file_entry(file, EXISTING, f.writer.names))


def file_lost(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == 0 and status_of(row) == EXISTING)
    return row is not None and not f.rows.remove(row)


def leaf_lost(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] in (3, 4) and status_of(row) == EXISTING)
    found = None if row is None else _leaf_of(f, row)
    if row is None or found is None or not found.live():
        return False
    f.rows = [each for each in f.rows if each is not row and not is_on(f, each, found)]
    return True


def leaf_deleted(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] in (3, 4) and status_of(row) == EXISTING)
    found = None if row is None else _leaf_of(f, row)
    if row is None or found is None or not found.live():
        return False
    row["tracking_info"] |= {"status": DELETED, "snapshot_id": f.writer.snapshots[-1].id}
    f.rows = [each for each in f.rows if not is_on(f, each, found)]
    return True


def _leaf_of(f: Forgery, row: Json) -> Leaf | None:
    for leaf in f.writer.tree.leaves:
        if f.short(row["location"]) == f.short(leaf.location):
            return leaf
    return None


def file_from_nowhere(f: Forgery) -> bool:
    file = f.writer.shop.new_data(0)
    snapshot = f.writer.snapshots[-1]
    file.snapshot_id, file.sequence_number = snapshot.id, snapshot.sequence_number
    file.file_sequence_number = file.sequence_number
    file.first_row_id = f.writer.next_row_id + 100
    return add(f, file_entry(file, EXISTING, f.writer.names))


def old_tombstone(f: Forgery) -> bool:
    file = f.writer.shop.new_data(0)
    file.snapshot_id = f.writer.snapshots[0].id + 1
    file.sequence_number = file.file_sequence_number = 1
    file.first_row_id = 0
    return add(f, file_entry(file, DELETED, f.writer.names))


def tombstone_of_what_never_was(f: Forgery) -> bool:
    file = f.writer.shop.new_data(0)
    file.snapshot_id = f.writer.snapshots[-1].id
    file.sequence_number = file.file_sequence_number = 1
    file.first_row_id = 0
    return add(f, file_entry(file, DELETED, f.writer.names))


def added_again(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == 0 and status_of(row) == EXISTING)
    if row is None:
        return False
    row["tracking_info"] |= {"status": ADDED, "snapshot_id": f.writer.snapshots[-1].id}
    return True


def other_row_ids(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == 0 and status_of(row) == EXISTING)
    return track(row, "first_row_id", f.writer.next_row_id + 50)


def shared_row_ids(f: Forgery) -> bool:
    rows = [row for row in f.rows if row["content_type"] == 0 and status_of(row) == EXISTING]
    if len(rows) < 2:
        return False
    return track(rows[0], "first_row_id", rows[1]["tracking_info"]["first_row_id"])


def other_age(f: Forgery) -> bool:
    row = f.where(
        lambda row: (
            row["content_type"] == 0
            and status_of(row) == EXISTING
            and row["tracking_info"]["sequence_number"] > 1
        )
    )
    return track(row, "sequence_number", 1)


def two_vectors_on_a_file(f: Forgery) -> bool:
    row = f.live(1)
    return row is not None and add(f, row)


def vector_of_no_file(f: Forgery) -> bool:
    return set_in(f.live(1), "referenced_file", "data/nowhere.parquet")


def vector_older_than_its_file(f: Forgery) -> bool:
    row = f.live(1)
    if row is None:
        return False
    name = f.short(row["referenced_file"])
    file = next(e for e in f.writer.tree.live() if e.content == DATA and e.location.endswith(name))
    return (file.sequence_number or 0) > 1 and track(row, "sequence_number", 0)


def vector_of_other_cardinality(f: Forgery) -> bool:
    row = f.live(1)
    return row is not None and set_in(row, "record_count", row["record_count"] + 1)


def vector_without_a_place_in_its_file(f: Forgery) -> bool:
    row = f.live(1)
    if row is None:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"offset": None}
    return True


def vector_before_its_file(f: Forgery) -> bool:
    row = f.live(1)
    if row is None:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"offset": -4}
    return True


def file_further_up(f: Forgery) -> bool:
    row = f.live(0)
    return row is not None and set_in(row, "location", "data/../" + f.short(row["location"]))


def vector_elsewhere_in_its_file(f: Forgery) -> bool:
    row = f.live(1)
    if row is None:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"offset": 5}
    return True
