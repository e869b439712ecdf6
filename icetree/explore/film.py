"""One frame of a table's history: a snapshot's root and leaves, and what its commit did to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.errors import InvalidInput
from icetree.explore.axis import Axis, axis_of
from icetree.explore.bars import draw, shares
from icetree.explore.history import line_upto, told
from icetree.picture.rows import stats_columns
from icetree.picture.tree import pick
from icetree.picture.words import counted
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import (
    FILES,
    MANIFESTS,
    Content,
    Entries,
    Status,
    is_content,
    is_live,
    only,
)
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.table.table import Table
from icetree.tree.manifest_dvs import added_positions, read_manifest_dvs
from icetree.tree.recount import with_counts

#: Entries of the root, and leaves, that a frame shows by themselves.
_CELLS: Final = 240
_LEAVES: Final = 48
#: A leaf's entries are shown in so many cells at most.
_PARTS: Final = 48
_TOLD_OF_CELLS: Final = (
    *("file_path", "content", "status", "partition", "words", "first", "rows"),
    *("file_size_in_bytes", "sequence_number", "affiliated_with"),
)
#: Frames in one answer.
MOST: Final = 64


def film(table: Table, *, at: str | None = None, limit: str | None = None) -> list[dict[str, Any]]:
    """Return the frame of a snapshot after those of so many, in all, that led to it.

    Whatever is committed or expired meanwhile, a snapshot's frame is its own.
    """
    size, last = min(whole(limit, "limit", MOST), MOST), table.snapshot(at)
    line = [] if last is None else line_upto(table, last.snapshot_id, size + 1)
    frames = []
    before = _leaves_before(table, line, len(line) > size)
    for each in line[-size:] if size else []:
        frames.append(frame(table, each, before))
        before = leaves_at(table, each)
    return frames


def frame(table: Table, snapshot: Snapshot, before: frozenset[str]) -> dict[str, Any]:
    """Return one frame, given the leaves that the parent had; reads the root, and no leaf.

    Status says nothing of leaves: one that was made of entries which are old is itself not ADDED.
    """
    shape = table.metadata.shape()
    axis = axis_of(shape, None)
    root = read_root(table, snapshot, shape, _columns(shape, axis))
    reader = table.files.reader(shape)
    removed = read_manifest_dvs(root, reader, root_file=snapshot.root_file)
    fresh = {}
    if snapshot.root_manifest is not None:
        fresh = added_positions(root, reader, root_file=snapshot.root_file)
    content, status = root["content_type"].to_numpy(), root["status"].to_numpy()
    leaves = own_leaves(root)
    is_new = pc.invert(pc.is_in(leaves["location"], value_set=pa.array(before, pa.string())))
    is_fresh = pc.is_in(leaves["location"], value_set=pa.array(list(fresh), pa.string()))
    alone = one_chunk(pc.or_(is_new, is_fresh)).to_numpy(zero_copy_only=False)
    drawn = draw(
        *(leaves, axis, shape),
        table_location=table.location,
        removed=removed,
        most=_LEAVES,
        alone=alone,
    )
    for bar, numbers in zip(drawn.bars, drawn.groups, strict=True):
        if len(numbers) > 1:
            # Leaves that share a card, as `pruned` numbers them.
            bar["numbers"] = numbers.tolist()
        leaf = leaves["location"][int(numbers[0])].as_py() if len(numbers) == 1 else ""
        bar["is_new"] = bool(leaf) and leaf not in before
        _with_cells(bar, removed.get(leaf), fresh.get(leaf))
    now = leaves_at(table, snapshot)
    tally = _Tally.of(content, status, fresh, new=len(now - before), folded=len(before - now))
    return {
        **told(snapshot),
        "is_tree": snapshot.root_manifest is not None,
        "root": {
            "entries": root.num_rows,
            "file_size_in_bytes": table.files.root_size_bytes(snapshot),
            "counts": _counts(content, status),
            "cells": _cells(root, shape, table.location),
            "leaves": leaves.num_rows,
            "vectors": int(
                np.count_nonzero((content == Content.MANIFEST_DV) & (status != Status.DELETED))
            ),
        },
        "leaves": drawn.bars,
        "axis": None if axis is None else {"name": axis.name, "kind": axis.kind},
        "did": tally.sentences(),
    }


def read_root(
    table: Table, snapshot: Snapshot | None, shape: Shape, columns: frozenset[str] | None = None
) -> Entries:
    """Return a snapshot's root with every leaf counted; of stats perhaps only those wanted."""
    root = table.files.root(snapshot, shape, keep=True, stats_columns=columns)
    return with_counts(root, table.files.reader(shape))


def leaves_at(table: Table, snapshot: Snapshot) -> frozenset[str]:
    """Return the live leaves of a snapshot, by location."""
    shape = table.metadata.shape()
    wanted = _columns(shape, axis_of(shape, None))
    root = table.files.root(snapshot, shape, keep=True, stats_columns=wanted)
    live = only(root, pc.and_(is_content(root, *MANIFESTS), is_live(root)))
    return frozenset(live["location"].to_pylist())


def _columns(shape: Shape, axis: Axis | None) -> frozenset[str]:
    """Return the stats that frames show."""
    return frozenset({*stats_columns(shape), *(axis.columns if axis is not None else ())})


def _leaves_before(table: Table, line: list[Snapshot], has_parent: bool) -> frozenset[str]:
    """Return the leaves of what was before the frames; where that has expired, those of the first."""
    is_first = not line or (line[0].parent_snapshot_id is None and not has_parent)
    return frozenset() if is_first else leaves_at(table, line[0])


def whole(given: str | None, what: str, default: int) -> int:
    """Return a parameter that is a whole number of 0 or more."""
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 16):
        raise InvalidInput(f"{what}={given[:20]!r}: give a whole number of 0 or more")
    return int(given)


def _with_cells(bar: dict[str, Any], removed: BitMap | None, fresh: BitMap | None) -> None:
    """Add which parts of a leaf its manifest DV has put out, and which of them just now."""
    entries = bar.get("entries")
    if entries is None:
        bar["cells"] = min(bar["files"], _PARTS)
        return
    bar["cells"] = cells = min(entries, _PARTS)
    bar["out"] = shares(removed, entries, cells)
    bar["out_now"] = shares(fresh, entries, cells)


def own_leaves(root: Entries) -> Entries:
    """Return the leaves that a frame shows of a root, in the root's order."""
    return only(root, pc.and_(is_content(root, *MANIFESTS), is_live(root)))


def own_files(root: Entries) -> Entries:
    """Return the files of its own that a frame shows of a root: what changed first."""
    own = only(root, pa.array(np.isin(root["content_type"].to_numpy(), FILES)))
    rank = np.where(own["status"].to_numpy() == Status.EXISTING, 1, 0)
    return own.take(pa.array(pick(own["content_type"].to_numpy(), rank, _CELLS)))


def _cells(root: Entries, shape: Shape, table_location: str) -> list[dict[str, Any]]:
    """Return files that the root itself tracks, in their order on the axis."""
    axis = axis_of(shape, None)
    files = own_files(root)
    drawn = draw(files, axis, shape, table_location=table_location, removed={}, most=_CELLS)
    return [{name: each[name] for name in _TOLD_OF_CELLS} for each in drawn.bars]


def _counts(content: Any, status: Any) -> list[dict[str, Any]]:
    return [
        {"content": int(kind), "status": each.name, "objects": objects}
        for kind in Content
        for each in Status
        if (objects := int(np.count_nonzero((content == kind) & (status == each))))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """What a commit did to the tree, counted."""

    came: int
    went: int
    new_leaves: int
    folded: int
    put_out: int
    leaves_put_out: int

    @classmethod
    def of(
        cls, content: Any, status: Any, fresh: dict[str, BitMap], *, new: int, folded: int
    ) -> _Tally:
        is_file = np.isin(content, FILES)
        return cls(
            came=int(np.count_nonzero(is_file & (status == Status.ADDED))),
            went=int(np.count_nonzero(is_file & (status == Status.DELETED))),
            new_leaves=new,
            folded=folded,
            put_out=sum(map(len, fresh.values())),
            leaves_put_out=sum(1 for each in fresh.values() if each),
        )

    def sentences(self) -> list[str]:
        """Return it in words, a sentence for each kind of thing that was done."""
        found = []
        if self.came:
            found.append(f"{counted(self.came, 'entry', 'entries')} came to the root")
        if self.new_leaves and self.folded:
            old, new = (
                counted(self.folded, "leaf", "leaves"),
                counted(self.new_leaves, "leaf", "leaves"),
            )
            found.append(f"{old} folded into {new}")
        elif self.new_leaves:
            found.append(
                f"the root was flushed to {counted(self.new_leaves, 'new leaf', 'new leaves')}"
            )
        elif self.folded:
            found.append(f"{counted(self.folded, 'leaf', 'leaves')} went")
        if self.put_out:
            entries = counted(self.put_out, "entry", "entries")
            found.append(f"{entries} of {counted(self.leaves_put_out, 'leaf', 'leaves')} went out")
        if self.went:
            found.append(f"{counted(self.went, 'entry', 'entries')} of the root went")
        return found or ["nothing in the tree changed"]
