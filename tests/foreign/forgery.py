"""Ways to break a legal tree: each takes the newest root, and says whether it found what to break."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

from tests.foreign import blobs, parquet
from tests.foreign.history import metadata
from tests.foreign.layout import Json
from tests.foreign.model import DATA
from tests.foreign.tree import (
    ADDED,
    DATA_LEAF,
    DELETE_LEAF,
    DELETED,
    EXISTING,
    MANIFEST_DV,
    Leaf,
    file_entry,
)
from tests.foreign.world import World
from tests.foreign.writer import Writer


@dataclass(slots=True)
class Forgery:
    """The newest root of a table, to be changed before it is written anew."""

    world: World
    rng: Random
    rows: list[Json]
    dress: parquet.Dress = parquet.PLAIN
    kind: str = "root"

    @property
    def writer(self) -> Writer:
        return self.world.writer

    def where(self, holds: Callable[[Json], bool]) -> Json | None:
        """Return one of the rows for which something holds."""
        found = [row for row in self.rows if holds(row)]
        return self.rng.choice(found) if found else None

    def live(self, *contents: int) -> Json | None:
        return self.where(lambda row: row["content_type"] in contents and _status(row) != DELETED)

    def leaf(self, *contents: int) -> tuple[Leaf, Json] | None:
        """Return a live columnar leaf with its row."""
        by_name = {self.short(leaf.location): leaf for leaf in self.writer.tree.leaves}
        row = self.where(
            lambda row: (
                row["content_type"] in contents
                and _status(row) != DELETED
                and row["file_format"] == "parquet"
                and bool(by_name[self.short(row["location"])].live())
            )
        )
        return None if row is None else (by_name[self.short(row["location"])], row)

    def short(self, name: str | None) -> str:
        """Return a name as it is within the table."""
        return str(name).removeprefix(self.writer.names.table + "/")

    def rewrite(self, leaf: Leaf, row: Json, entries: list[Json], **dress: Any) -> None:
        """Store a leaf anew with other entries, and let its row name it."""
        kind = "data" if leaf.content == DATA_LEAF else "delete"
        content = parquet.manifest(entries, kind, self.writer.layout, parquet.Dress(**dress))
        place = self.writer.shop.store("metadata", "-forged.parquet", content)
        for other in self.rows:
            if self.short(other.get("referenced_file")) == self.short(row["location"]):
                other["referenced_file"] = self.writer.names(place)
        row["location"] = self.writer.names(place)
        row["file_size_in_bytes"] = len(content)

    def entries(self, leaf: Leaf) -> list[Json]:
        return [file_entry(file, status, self.writer.names) for file, status in leaf.entries]

    def finish(self) -> World:
        """Return the table with the root as it is now."""
        writer = self.writer
        content = parquet.manifest(self.rows, self.kind, writer.layout, self.dress)
        place = writer.shop.store("metadata", "-forged-root.parquet", content)
        writer.snapshots[-1] = replace(writer.snapshots[-1], root=place)
        at = metadata(writer, self.rng)
        return replace(self.world, metadata_location=at)


Forge = Callable[[Forgery], bool]


def begin(world: World) -> Forgery:
    """Start on a copy of a table: it is left as it was."""
    rng, stored, writer = Random(world.seed), dict(world.stored), world.writer
    shop = replace(writer.shop, stored=stored, rng=rng)
    copied = replace(writer, shop=shop, snapshots=list(writer.snapshots))
    world = replace(world, writer=copied, stored=stored)
    return Forgery(world=world, rng=rng, rows=deepcopy(writer.rows))


def _status(row: Json) -> int:
    return int(row["tracking_info"]["status"])


def _set(row: Json | None, name: str, value: Any) -> bool:
    if row is None:
        return False
    row[name] = value
    return True


def _track(row: Json | None, name: str, value: Any) -> bool:
    if row is None:
        return False
    row["tracking_info"][name] = value
    return True


# --- single entries ------------------------------------------------------------------------------


def unknown_status(f: Forgery) -> bool:
    return _track(f.live(0, 3, 4), "status", 7)


def unknown_content(f: Forgery) -> bool:
    return _set(f.live(0), "content_type", 9)


def unknown_format(f: Forgery) -> bool:
    return _set(f.live(0), "file_format", "csv")


def existing_without_age(f: Forgery) -> bool:
    row = f.where(lambda row: _status(row) == EXISTING)
    return _track(row, "sequence_number", None)


def existing_without_snapshot(f: Forgery) -> bool:
    return _track(f.where(lambda row: _status(row) == EXISTING), "snapshot_id", None)


def newer_than_its_snapshot(f: Forgery) -> bool:
    return _track(f.live(0, 1, 2), "sequence_number", f.writer.sequence_number + 5)


def no_location(f: Forgery) -> bool:
    return _set(f.live(0, 1, 2, 3, 4), "location", None)


def no_size(f: Forgery) -> bool:
    return _set(f.live(0, 1, 2, 3, 4), "file_size_in_bytes", None)


def wrong_size(f: Forgery) -> bool:
    row = f.live(0, 2, 3, 4)
    return row is not None and _set(row, "file_size_in_bytes", row["file_size_in_bytes"] + 1)


def negative_rows(f: Forgery) -> bool:
    return _set(f.live(0), "record_count", -1)


def too_many_rows(f: Forgery) -> bool:
    row = f.live(0)
    return row is not None and _set(row, "record_count", row["record_count"] + 1)


def equality_ids_of_a_data_file(f: Forgery) -> bool:
    return _set(f.live(0), "equality_ids", [1])


def no_equality_ids(f: Forgery) -> bool:
    return _set(f.live(2), "equality_ids", None)


def falling_offsets(f: Forgery) -> bool:
    return _set(f.live(0), "split_offsets", [9, 4])


def unknown_spec(f: Forgery) -> bool:
    return _set(f.live(0), "partition_spec_id", 77)


def missing_file(f: Forgery) -> bool:
    return _set(f.live(0, 3, 4), "location", "data/nowhere.parquet")


def crossed_bounds(f: Forgery) -> bool:
    row = f.live(0)
    id = f.writer.layout.column("id").id
    if row is None:
        return False
    row["content_stats"] = {**row["content_stats"], id: {"lower_bound": 9, "upper_bound": 1}}
    return True


def bounds_that_leave_rows_out(f: Forgery) -> bool:
    row = f.live(0)
    id = f.writer.layout.column("id").id
    if row is None:
        return False
    row["content_stats"] = {**row["content_stats"], id: {"lower_bound": -9, "upper_bound": -8}}
    return True


def partition_that_spans(f: Forgery) -> bool:
    specs = f.writer.layout.specs
    row = f.where(lambda row: row["content_type"] == 0 and bool(specs[row["partition_spec_id"]]))
    if row is None or _status(row) == DELETED:
        return False
    gone = {part.field.id for part in specs[row["partition_spec_id"]]}
    row["content_stats"] = {id: s for id, s in row["content_stats"].items() if id not in gone}
    return True


# --- the tree as a whole -------------------------------------------------------------------------


def file_twice(f: Forgery) -> bool:
    row = f.live(0, 2)
    return row is not None and _add(f, row)


def _add(f: Forgery, row: Json, **tracking: Any) -> bool:
    copy = deepcopy(row)
    copy["tracking_info"] |= tracking
    f.rows.append(copy)
    return True


def file_in_root_and_leaf(f: Forgery) -> bool:
    found = f.leaf(DATA_LEAF)
    if found is None:
        return False
    file = found[0].live()[0]
    return _add(f, file_entry(file, EXISTING, f.writer.names))


def file_lost(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == 0 and _status(row) == EXISTING)
    return row is not None and not f.rows.remove(row)


def leaf_lost(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] in (3, 4) and _status(row) == EXISTING)
    found = None if row is None else _leaf_of(f, row)
    if row is None or found is None or not found.live():
        return False
    f.rows = [each for each in f.rows if each is not row and not _is_on(f, each, found)]
    return True


def leaf_deleted(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] in (3, 4) and _status(row) == EXISTING)
    found = None if row is None else _leaf_of(f, row)
    if row is None or found is None or not found.live():
        return False
    row["tracking_info"] |= {"status": DELETED, "snapshot_id": f.writer.snapshots[-1].id}
    f.rows = [each for each in f.rows if not _is_on(f, each, found)]
    return True


def _leaf_of(f: Forgery, row: Json) -> Leaf | None:
    for leaf in f.writer.tree.leaves:
        if f.short(row["location"]) == f.short(leaf.location):
            return leaf
    return None


def _is_on(f: Forgery, row: Json, leaf: Leaf) -> bool:
    is_on = f.short(row.get("referenced_file")) == f.short(leaf.location)
    return bool(row["content_type"] == MANIFEST_DV and is_on)


def file_from_nowhere(f: Forgery) -> bool:
    file = f.writer.shop.new_data(0)
    snapshot = f.writer.snapshots[-1]
    file.snapshot_id, file.sequence_number = snapshot.id, snapshot.sequence_number
    file.file_sequence_number = file.sequence_number
    file.first_row_id = f.writer.next_row_id + 100
    return _add(f, file_entry(file, EXISTING, f.writer.names))


def old_tombstone(f: Forgery) -> bool:
    file = f.writer.shop.new_data(0)
    file.snapshot_id = f.writer.snapshots[0].id + 1
    file.sequence_number = file.file_sequence_number = 1
    file.first_row_id = 0
    return _add(f, file_entry(file, DELETED, f.writer.names))


def tombstone_of_what_never_was(f: Forgery) -> bool:
    file = f.writer.shop.new_data(0)
    file.snapshot_id = f.writer.snapshots[-1].id
    file.sequence_number = file.file_sequence_number = 1
    file.first_row_id = 0
    return _add(f, file_entry(file, DELETED, f.writer.names))


def added_again(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == 0 and _status(row) == EXISTING)
    if row is None:
        return False
    row["tracking_info"] |= {"status": ADDED, "snapshot_id": f.writer.snapshots[-1].id}
    return True


def other_row_ids(f: Forgery) -> bool:
    row = f.where(lambda row: row["content_type"] == 0 and _status(row) == EXISTING)
    return _track(row, "first_row_id", f.writer.next_row_id + 50)


def shared_row_ids(f: Forgery) -> bool:
    rows = [row for row in f.rows if row["content_type"] == 0 and _status(row) == EXISTING]
    if len(rows) < 2:
        return False
    return _track(rows[0], "first_row_id", rows[1]["tracking_info"]["first_row_id"])


def other_age(f: Forgery) -> bool:
    row = f.where(
        lambda row: (
            row["content_type"] == 0
            and _status(row) == EXISTING
            and row["tracking_info"]["sequence_number"] > 1
        )
    )
    return _track(row, "sequence_number", 1)


# --- data DVs ------------------------------------------------------------------------------------


def two_vectors_on_a_file(f: Forgery) -> bool:
    row = f.live(1)
    return row is not None and _add(f, row)


def vector_of_no_file(f: Forgery) -> bool:
    return _set(f.live(1), "referenced_file", "data/nowhere.parquet")


def vector_older_than_its_file(f: Forgery) -> bool:
    row = f.live(1)
    if row is None:
        return False
    name = f.short(row["referenced_file"])
    file = next(e for e in f.writer.tree.live() if e.content == DATA and e.location.endswith(name))
    return (file.sequence_number or 0) > 1 and _track(row, "sequence_number", 0)


def vector_of_other_cardinality(f: Forgery) -> bool:
    row = f.live(1)
    return row is not None and _set(row, "record_count", row["record_count"] + 1)


def vector_elsewhere_in_its_file(f: Forgery) -> bool:
    row = f.live(1)
    if row is None:
        return False
    row["deletion_vector"] = row["deletion_vector"] | {"offset": 5}
    return True


# --- leaves and manifest DVs ---------------------------------------------------------------------


def leaf_of_other_size(f: Forgery) -> bool:
    row = f.live(3, 4)
    return row is not None and _set(row, "record_count", row["record_count"] + 1)


def leaf_counted_wrongly(f: Forgery) -> bool:
    row = f.live(3, 4)
    if row is None:
        return False
    told = row["manifest_stats"]
    row["manifest_stats"] = told | {"added_files_count": told["added_files_count"] + 1}
    return True


def leaf_without_counts(f: Forgery) -> bool:
    return _set(f.live(3, 4), "manifest_stats", None)


def leaf_of_the_other_kind(f: Forgery) -> bool:
    row = f.live(3)
    return _set(row, "content_type", 4)


def leaf_of_two_ages(f: Forgery) -> bool:
    row = f.live(3, 4)
    return _track(row, "file_sequence_number", -1)


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
    f.dress = parquet.Dress(retyped={103: pa.string()})
    return True


def no_record_counts(f: Forgery) -> bool:
    f.dress = parquet.Dress(without=frozenset({103}))
    return True


def root_that_is_a_leaf(f: Forgery) -> bool:
    f.kind = "data"
    return True


def two_manifest_dvs(f: Forgery) -> bool:
    row = f.live(MANIFEST_DV)
    return row is not None and _add(f, row)


def manifest_dv_of_nothing(f: Forgery) -> bool:
    return _set(f.live(MANIFEST_DV), "referenced_file", "metadata/nowhere.parquet")


def manifest_dv_past_the_end(f: Forgery) -> bool:
    row = f.where(_is_inline)
    return row is not None and _redraw(row, {0, 9999})


def manifest_dv_of_other_cardinality(f: Forgery) -> bool:
    row = f.live(MANIFEST_DV)
    return row is not None and _set(row, "record_count", row["record_count"] + 1)


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
    row = f.where(lambda row: row["content_type"] == MANIFEST_DV and _status(row) == EXISTING)
    if row is None:
        return False
    leaf = next((each for each in f.writer.tree.leaves if _is_on(f, row, each)), None)
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
    _add(f, row, status=DELETED, snapshot_id=now)
    row["tracking_info"] |= {"status": ADDED, "snapshot_id": now}
    return _redraw(row, {leaf.position(leaf.live()[0])})


def _kept_manifest_dv(f: Forgery) -> tuple[Json, Leaf] | None:
    """Return an EXISTING manifest DV on a leaf that has entries left."""
    for row in f.rows:
        if not _is_inline(row) or _status(row) != EXISTING:
            continue
        leaf = next((each for each in f.writer.tree.leaves if _is_on(f, row, each)), None)
        if leaf is not None and leaf.live():
            return row, leaf
    return None


def _is_inline(row: Json) -> bool:
    return (
        row["content_type"] == MANIFEST_DV
        and _status(row) != DELETED
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
            and _status(row) != DELETED
            and row["referenced_file"] is not None
        )
    )
    return _set(row, "referenced_file", "metadata/nowhere.parquet")


FORGERIES: tuple[Forge, ...] = tuple(
    each
    for name, each in list(globals().items())
    if callable(each)
    and getattr(each, "__module__", "") == __name__
    and not name.startswith("_")
    and name not in ("Forgery", "begin", "Forge")
)
