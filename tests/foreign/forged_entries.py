"""Entries that break a rule by themselves: each says whether it found what to break."""

from __future__ import annotations

from tests.foreign.forgery import Forgery, set_in, status_of, track
from tests.foreign.tree import (
    DELETED,
    EXISTING,
)


def unknown_status(f: Forgery) -> bool:
    return track(f.live(0, 3, 4), "status", 7)


def unknown_content(f: Forgery) -> bool:
    return set_in(f.live(0), "content_type", 9)


def unknown_format(f: Forgery) -> bool:
    return set_in(f.live(0), "file_format", "csv")


def existing_without_age(f: Forgery) -> bool:
    row = f.where(lambda row: status_of(row) == EXISTING)
    return track(row, "sequence_number", None)


def existing_without_snapshot(f: Forgery) -> bool:
    return track(f.where(lambda row: status_of(row) == EXISTING), "snapshot_id", None)


def newer_than_its_snapshot(f: Forgery) -> bool:
    return track(f.live(0, 1, 2), "sequence_number", f.writer.sequence_number + 5)


def no_location(f: Forgery) -> bool:
    return set_in(f.live(0, 1, 2, 3, 4), "location", None)


def no_size(f: Forgery) -> bool:
    return set_in(f.live(0, 1, 2, 3, 4), "file_size_in_bytes", None)


def wrong_size(f: Forgery) -> bool:
    row = f.live(0, 2, 3, 4)
    return row is not None and set_in(row, "file_size_in_bytes", row["file_size_in_bytes"] + 1)


def negative_rows(f: Forgery) -> bool:
    return set_in(f.live(0), "record_count", -1)


def too_many_rows(f: Forgery) -> bool:
    row = f.live(0)
    return row is not None and set_in(row, "record_count", row["record_count"] + 1)


def equality_ids_of_a_data_file(f: Forgery) -> bool:
    return set_in(f.live(0), "equality_ids", [1])


def no_equality_ids(f: Forgery) -> bool:
    return set_in(f.live(2), "equality_ids", None)


def falling_offsets(f: Forgery) -> bool:
    return set_in(f.live(0), "split_offsets", [9, 4])


def unknown_spec(f: Forgery) -> bool:
    return set_in(f.live(0), "partition_spec_id", 77)


def missing_file(f: Forgery) -> bool:
    return set_in(f.live(0, 3, 4), "location", "data/nowhere.parquet")


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
    if row is None or status_of(row) == DELETED:
        return False
    gone = {part.stats_id for part in specs[row["partition_spec_id"]]}
    row["content_stats"] = {id: s for id, s in row["content_stats"].items() if id not in gone}
    return True
