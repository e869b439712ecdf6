"""Leaves and manifest DVs that lie: each says whether it found what to break."""

from __future__ import annotations

import pyarrow as pa

from tests.foreign import blobs
from tests.foreign.columns import Json
from tests.foreign.dress import Dress
from tests.foreign.forgery import Forgery, add, is_on, set_in, status_of, track
from tests.foreign.tree import (
    ADDED,
    DATA_LEAF,
    DELETE_LEAF,
    DELETED,
    EXISTING,
    MANIFEST_DV,
    Leaf,
)


def leaf_of_other_size(f: Forgery) -> bool:
    row = f.live(3, 4)
    return row is not None and set_in(row, "record_count", row["record_count"] + 1)


def leaf_counted_wrongly(f: Forgery) -> bool:
    row = f.live(3, 4)
    if row is None:
        return False
    told = row["manifest_stats"]
    row["manifest_stats"] = told | {"added_files_count": told["added_files_count"] + 1}
    return True


def leaf_without_counts(f: Forgery) -> bool:
    return set_in(f.live(3, 4), "manifest_stats", None)


def leaf_of_the_other_kind(f: Forgery) -> bool:
    row = f.live(3)
    return set_in(row, "content_type", 4)


def leaf_of_two_ages(f: Forgery) -> bool:
    row = f.live(3, 4)
    return track(row, "file_sequence_number", -1)


def leaf_with_narrow_bounds(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF)
    if found is None:
        return False
    id = f.writer.layout.column("id").id
    found[1]["content_stats"] = {id: {"lower_bound": -9, "upper_bound": -8}}
    return True


def leaf_with_a_leaf_in_it(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF)
    if found is None:
        return False
    entries = f.entries(found[0])
    entries[0]["content_type"] = 3
    entries[0]["manifest_stats"] = found[1]["manifest_stats"]
    f.rewrite(*found, entries)
    return True


def leaf_with_newer_entries(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF, DELETE_LEAF)
    if found is None:
        return False
    entries = f.entries(found[0])
    entries[0]["tracking_info"]["sequence_number"] = f.writer.sequence_number + 9
    f.rewrite(*found, entries)
    return True


def leaf_without_status(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF, DELETE_LEAF)
    if found is None:
        return False
    f.rewrite(*found, f.entries(found[0]), without=frozenset({0}))
    return True


def leaf_that_calls_itself_another(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF, DELETE_LEAF)
    if found is None:
        return False
    f.rewrite(*found, f.entries(found[0]), key_values={"content": "root"})
    return True


def leaf_of_version_five(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF, DELETE_LEAF)
    if found is None:
        return False
    f.rewrite(*found, f.entries(found[0]), key_values={"format-version": "5"})
    return True


def leaf_that_forgot_an_entry(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF)
    if found is None or len(found[0].entries) < 2:
        return False
    f.rewrite(*found, f.entries(found[0])[1:])
    return True


def numbers_as_text(f: Forgery) -> bool:
    f.dress = Dress(retyped={103: pa.string()})
    return True


def no_record_counts(f: Forgery) -> bool:
    f.dress = Dress(without=frozenset({103}))
    return True


def root_that_is_a_leaf(f: Forgery) -> bool:
    f.kind = "data"
    return True


def two_manifest_dvs(f: Forgery) -> bool:
    row = f.live(MANIFEST_DV)
    return row is not None and add(f, row)


def manifest_dv_of_nothing(f: Forgery) -> bool:
    return set_in(f.live(MANIFEST_DV), "referenced_file", "metadata/nowhere.parquet")


def manifest_dv_past_the_end(f: Forgery) -> bool:
    row = f.where(_is_inline)
    return row is not None and _redraw(row, {0, 9999})


def manifest_dv_of_other_cardinality(f: Forgery) -> bool:
    row = f.live(MANIFEST_DV)
    return row is not None and set_in(row, "record_count", row["record_count"] + 1)


def manifest_dv_that_is_no_bitmap(f: Forgery) -> bool:
    row = f.where(_is_inline)
    if row is None:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"inline_content": b"no bitmap"}
    return True


def manifest_dv_in_two_places(f: Forgery) -> bool:
    row = f.where(_is_inline)
    if row is None:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"offset": 4, "size_in_bytes": 9}
    row |= {"location": "metadata/some.puffin", "file_size_in_bytes": 99}
    return True


def manifest_dv_lost(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == MANIFEST_DV and status_of(row) == EXISTING)
    if row is None:
        return False
    leaf = next((each for each in f.writer.tree.leaves if is_on(f, row, each)), None)
    if leaf is None or all(leaf.entries[at][1] == DELETED for at in leaf.removed):
        return False
    return not f.rows.remove(row)


def manifest_dv_that_takes_more_than_it_tells(f: Forgery) -> bool:
    """An EXISTING one removes an entry that no change tells of."""
    found = _kept_manifest_dv(f)
    if found is None:
        return False
    row, leaf = found
    return _redraw(row, {*leaf.removed, leaf.position(leaf.live()[0])})


def manifest_dv_that_gives_back(f: Forgery) -> bool:
    """An ADDED one does not remove what the one it takes the place of did."""
    found = _kept_manifest_dv(f)
    if found is None:
        return False
    row, leaf = found
    now = f.writer.snapshots[-1].id
    add(f, row, status=DELETED, snapshot_id=now)
    row["tracking_info"] |= {"status": ADDED, "snapshot_id": now}
    return _redraw(row, {leaf.position(leaf.live()[0])})


def manifest_dv_that_does_not_tell_what_it_adds(f: Forgery) -> bool:
    """An ADDED one takes the place of another, and neither says what changed."""
    found = _kept_manifest_dv(f)
    if found is None:
        return False
    row, leaf = found
    now = f.writer.snapshots[-1].id
    row["tracking_info"] |= {"status": ADDED, "snapshot_id": now}
    return _redraw(row, {*leaf.removed, leaf.position(leaf.live()[0])})


def manifest_dv_that_tells_more_than_it_adds(f: Forgery) -> bool:
    """What was gone before is told as gone now."""
    found = _kept_manifest_dv(f)
    if found is None:
        return False
    row, leaf = found
    live = {at for at in leaf.removed if leaf.entries[at][1] != DELETED}
    now = {"status": ADDED, "snapshot_id": f.writer.snapshots[-1].id}
    row["tracking_info"] |= now
    gone = {*leaf.removed, leaf.position(leaf.live()[0])}
    row["deletion_vector"] = row["deletion_vector"] | {"added_positions": blobs.bitmap(gone)}
    return bool(live) and _redraw(row, gone)


def manifest_dv_that_adds_what_it_has_not(f: Forgery) -> bool:
    row = f.where(lambda row: _is_inline(row) and status_of(row) == ADDED)
    if row is None:
        return False
    told = blobs.bitmap({*range(99)})
    row["deletion_vector"] = row["deletion_vector"] | {"added_positions": told}
    return True


def manifest_dv_without_an_end(f: Forgery) -> bool:
    row = f.where(lambda r: r["content_type"] == MANIFEST_DV and not _is_inline(r))
    if row is None or status_of(row) == DELETED:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"size_in_bytes": None}
    return True


def _kept_manifest_dv(f: Forgery) -> tuple[Json, Leaf] | None:
    """Return an EXISTING manifest DV on a leaf that has entries left."""
    for row in f.rows:
        if not _is_inline(row) or status_of(row) != EXISTING:
            continue
        leaf = next((each for each in f.writer.tree.leaves if is_on(f, row, each)), None)
        if leaf is not None and leaf.live():
            return row, leaf
    return None


def _is_inline(row: Json) -> bool:
    return (
        row["content_type"] == MANIFEST_DV
        and status_of(row) != DELETED
        and row["deletion_vector"]["inline_content"] is not None
    )


def _redraw(row: Json, positions: set[int]) -> bool:
    content = blobs.bitmap(positions)
    row["deletion_vector"] = row["deletion_vector"] | {"inline_content": content}
    row["record_count"] = len(positions)
    return True


def strange_affiliation(f: Forgery) -> bool:
    row = f.where(
        lambda row: (
            row["content_type"] == DELETE_LEAF
            and status_of(row) != DELETED
            and row["referenced_file"] is not None
        )
    )
    return set_in(row, "referenced_file", "metadata/nowhere.parquet")
