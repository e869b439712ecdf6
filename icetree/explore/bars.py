"""Leaves and files as bars on an axis: each by itself while they are few, then neighbours together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.explore.axis import Axis, Places, Ranges, ranges
from icetree.picture.rows import partition_words, stats_columns
from icetree.spec.entry.entry import MANIFESTS, Content, Entries, Status
from icetree.spec.location import absolute
from icetree.spec.schema.shape import Shape

#: What is told of an entry that is a bar by itself.
_TOLD: Final = (
    *("content_type", "location", "status", "snapshot_id", "sequence_number", "record_count"),
    *("partition_spec_id", "referenced_file"),
)

_LOCATIONS: Final = ("location", "referenced_file")

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is counted of each entry: a leaf counts by what it holds, a file for one."""

    #: Files that it held when it was written, and how many of them have gone since.
    files: Numbers
    removed: Numbers
    rows: Numbers
    size_bytes: Numbers

    @classmethod
    def of(cls, entries: Entries, removed: dict[str, BitMap], gone_too: Flags | None) -> Facts:
        """Count entries, given what manifest DVs remove from leaves, and which files are gone."""
        is_leaf = np.isin(_numbers(entries, "content_type"), MANIFESTS)
        held = _numbers(entries, "added_files_count") + _numbers(entries, "existing_files_count")
        gone = np.zeros(entries.num_rows, np.int64)
        if removed:
            named = pa.array(list(removed), pa.string())
            counts = np.array([len(each) for each in removed.values()], np.int64)
            at = pc.index_in(entries["location"], value_set=named).combine_chunks()
            known = at.is_valid().to_numpy(zero_copy_only=False)
            gone[known] = counts[at.drop_null().to_numpy()]
        is_deleted = _numbers(entries, "status") == Status.DELETED
        if gone_too is not None:
            is_deleted = is_deleted | gone_too
        rows = _numbers(entries, "added_rows_count") + _numbers(entries, "existing_rows_count")
        return cls(
            files=np.where(is_leaf, held, 1),
            removed=np.where(is_leaf, gone, is_deleted.astype(np.int64)),
            rows=np.where(is_leaf, rows, _numbers(entries, "record_count")),
            size_bytes=_numbers(entries, "file_size_in_bytes"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Bars in the order of the axis, as plain values; and what an axis of texts shows as ticks."""

    bars: list[dict[str, Any]]
    ticks: tuple[tuple[float, str], ...]
    #: Which of the entries each bar is of.
    groups: list[Numbers]


def draw(
    entries: Entries,
    axis: Axis | None,
    shape: Shape,
    *,
    table_location: str,
    removed: dict[str, BitMap],
    most: int,
    alone: Flags | None = None,
    gone: Flags | None = None,
    kept: Flags | None = None,
) -> Drawn:
    """Return at most about so many bars; those of `alone` are never part of a group.

    `gone` are files that a manifest DV removes. With `kept`, each bar says how many of its objects and files a filter leaves.
    """
    size = entries.num_rows
    nowhere = np.full(size, np.nan)
    place = Ranges(first=nowhere, last=nowhere) if axis is None else ranges(entries, axis)
    facts = Facts.of(entries, removed, gone)
    by_kind = _numbers(entries, "content_type")
    order = np.lexsort((place.last, place.first, by_kind))
    groups = _grouped(order, by_kind, np.zeros(size, np.bool_) if alone is None else alone, most)
    ends = np.array([_ends(each, place) for each in groups], np.int64).reshape(-1, 2)
    wanted = {*_TOLD, *stats_columns(shape), *(axis.columns if axis is not None else ())}
    few = entries.select([name for name in entries.column_names if name in wanted])
    told = few.take(pa.array(ends.reshape(-1))).to_pylist()
    for each in told:
        for name in _LOCATIONS:
            each[name] = None if each[name] is None else absolute(each[name], table_location)
    bars = [
        _bar(each, told[2 * at], told[2 * at + 1], axis, shape, place, facts, kept)
        for at, each in enumerate(groups)
    ]
    return Drawn(bars=bars, ticks=place.ticks, groups=groups)


def shares(positions: BitMap | None, entries: int, cells: int) -> list[int]:
    """Return how many positions lie in each of so many equal parts of a leaf."""
    if not positions:
        return []
    at = bitmap.to_array(positions).to_numpy().astype(np.int64)
    found: list[int] = np.bincount(at * cells // max(entries, 1), minlength=cells).tolist()
    return found[:cells]


def depth(first: Places, last: Places, bins: int = 200) -> list[list[float]]:
    """Return how many ranges lie over each of some places, from end to end of all of them."""
    known = ~(np.isnan(first) | np.isnan(last))
    first, last = np.sort(first[known]), np.sort(last[known])
    if not len(first):
        return []
    at = np.linspace(first[0], last[-1], bins)
    over = np.searchsorted(first, at, side="right") - np.searchsorted(last, at, side="left")
    return [[float(x), int(y)] for x, y in zip(at, over, strict=True)]


def _grouped(order: Numbers, kind: Numbers, alone: Flags, most: int) -> list[Numbers]:
    if len(order) <= most:
        return [order[at : at + 1] for at in range(len(order))]
    single = order[alone[order]][:most]
    rest = order[~np.isin(order, single)]
    groups = [single[at : at + 1] for at in range(len(single))]
    # Of each kind as its share is, and at least one.
    for each in np.unique(kind[rest]).tolist():
        mine = rest[kind[rest] == each]
        parts = max(1, (most - len(single)) * len(mine) // max(len(rest), 1))
        groups += [part for part in np.array_split(mine, min(parts, len(mine))) if len(part)]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return sorted(groups, key=lambda group: int(rank[group[0]]))


def _ends(rows: Numbers, place: Ranges) -> tuple[int, int]:
    """Return which entries of a group tell of its first place, and of its last."""
    first, last = place.first[rows], place.last[rows]
    if np.isnan(first).all() or np.isnan(last).all():
        return int(rows[0]), int(rows[-1])
    return int(rows[np.nanargmin(first)]), int(rows[np.nanargmax(last)])


def _bar(
    rows: Numbers,
    begin: dict[str, Any],
    end: dict[str, Any],
    axis: Axis | None,
    shape: Shape,
    place: Ranges,
    facts: Facts,
    kept: Flags | None,
) -> dict[str, Any]:
    first, last = place.first[rows], place.last[rows]
    known = ~(np.isnan(first) | np.isnan(last))
    content = Content(begin["content_type"])
    told = {
        "content": int(content),
        "objects": len(rows),
        "first": float(np.nanmin(first)) if known.any() else None,
        "last": float(np.nanmax(last)) if known.any() else None,
        "files": int(facts.files[rows].sum()),
        "removed": int(facts.removed[rows].sum()),
        "rows": int(facts.rows[rows].sum()),
        "file_size_in_bytes": int(facts.size_bytes[rows].sum()),
        "words": "",
    }
    if axis is not None:
        names = [
            axis.words(each.get(name), shape)
            for each, name in zip((begin, end), axis.columns, strict=True)
        ]
        told["words"] = names[0] if names[0] == names[1] else " … ".join(names)
    if len(rows) == 1:
        told |= {
            "file_path": begin["location"],
            "status": Status(begin["status"]).name,
            "snapshot_id": None if begin["snapshot_id"] is None else str(begin["snapshot_id"]),
            "sequence_number": begin["sequence_number"],
            "partition": partition_words(begin, shape),
            "affiliated_with": begin["referenced_file"],
            "entries": begin["record_count"] if content in MANIFESTS else None,
        }
    if kept is not None:
        told["kept"] = int(kept[rows].sum())
    return told


def _numbers(entries: Entries, name: str) -> Numbers:
    found: Numbers = pc.fill_null(entries[name], 0).to_numpy().astype(np.int64)
    return found
