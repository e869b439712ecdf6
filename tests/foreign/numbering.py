"""Row ids that a commit hands out: some are told, some are left to the order of the root."""

from __future__ import annotations

from random import Random

from tests.foreign.columns import Json
from tests.foreign.model import DATA, File
from tests.foreign.tree import ADDED, DATA_LEAF, DELETED, Leaf

Rows = list[tuple[Json, "File | Leaf | None"]]


def number(rows: Rows, in_root: list[File], first: int, rng: Random) -> tuple[int, set[int]]:
    """Number the new files; return the next row id, and who (by `id`) does not say its first.

    Those that are silent come first, in the order of the root, as readers will count them.
    """
    new = [(row, about) for row, about in rows if _takes_ids(row, about, in_root)]
    silent = {id(about) for _, about in new if rng.random() < 0.4}
    for _, about in new:
        if id(about) not in silent:
            continue
        if isinstance(about, Leaf):
            _number_leaf(about, first)
            first += sum(file.record_count for file, status in about.entries if status != DELETED)
        elif about is not None:
            about.first_row_id = first
            first += about.record_count
    for row, about in new:
        if id(about) in silent:
            continue
        if isinstance(about, Leaf):
            first += _number_leaf(about, first)
        elif about is not None:
            about.first_row_id = row["tracking_info"]["first_row_id"] = first
            first += about.record_count
    return first, silent


def _takes_ids(row: Json, about: File | Leaf | None, in_root: list[File]) -> bool:
    if isinstance(about, Leaf):
        return row.get("leaf") == ADDED and about.content == DATA_LEAF
    return about is not None and about.content == DATA and about in in_root


def _number_leaf(leaf: Leaf, first: int) -> int:
    """Number the new files of a leaf from its first row id; return how many rows they have."""
    leaf.first_row_id, taken = first, 0
    for file, status in leaf.entries:
        if status == ADDED:
            file.first_row_id = first + taken
            taken += file.record_count
    return taken
