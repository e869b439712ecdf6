"""From a root to its picture: what to show is chosen in columns, only what is shown becomes objects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.picture.model import Arrow, Box, Kind, Limits, Picture, Row, RowArrow
from icetree.picture.rows import CONTENT_WORDS, Names, row_of, stats_columns
from icetree.picture.words import counted, number, size
from icetree.spec.entry.entry import MANIFESTS, POSITION, Content, Entries, Status
from icetree.spec.schema.shape import Shape
from icetree.tree.manifest_dvs import LIVE, added_positions, read_manifest_dvs
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.visible import visible_in

_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

_COLUMNS: Final = (
    "content_type",
    "location",
    "file_format",
    "status",
    "partition_spec_id",
    "record_count",
    "file_size_in_bytes",
    "referenced_file",
    "equality_ids",
)
_GROUP_COLUMNS: Final = [
    "added_files_count",
    "existing_files_count",
    "record_count",
    "file_size_in_bytes",
]
_KINDS: Final = {
    Content.DATA_MANIFEST: Kind.DATA_MANIFEST,
    Content.DELETE_MANIFEST: Kind.DELETE_MANIFEST,
}
_DEFAULT_LIMITS: Final = Limits()


def picture(
    root: Entries,
    reader: Reader,
    shape: Shape,
    *,
    caption: str = "",
    limits: Limits = _DEFAULT_LIMITS,
    root_file: str = "root",
    list_of: int | None = None,
) -> Picture:
    """Return the picture of a snapshot's tree; `list_of` is its id where its root is a manifest list.

    Such a list has no statuses: what of it is new is told by the snapshot that made it.
    Reads only the leaves that get a box of their own: those that changed, then the first ones.
    """
    top = _Top.of(root)
    boxed = top.boxed_leaves(limits.leaves)
    leaves = leaves_in(root.take(boxed))
    vectors = top.vectors_on(root, boxed)
    names = Names(root, vectors)
    near = root.take(np.concatenate([boxed, vectors]))
    removed = read_manifest_dvs(near, reader, root_file=root_file)
    added = added_positions(near, reader, root_file=root_file)

    boxes = [
        _leaf_box(
            *(leaf, f"leaf{at}", removed.get(leaf.location), reader, shape, names, limits),
            is_past=top.status[boxed[at]] != Status.ADDED
            if list_of is None
            else leaf.snapshot_id != list_of,
        )
        for at, leaf in enumerate(leaves)
    ]
    keys = {leaf.location: box.key for leaf, box in zip(leaves, boxes, strict=True)}
    vector_boxes, arrows = [], []
    for leaf in leaves:
        if leaf.location in removed:
            box = _vector_box(leaf, removed[leaf.location], added, names, limits)
            vector_boxes.append(box)
            label = f"applies to {names.of(leaf.location)}"
            arrows.append(Arrow(source=box.key, target=keys[leaf.location], label=label))
        if leaf.referenced_file in keys:
            arrows.append(
                Arrow(
                    source=keys[leaf.location],
                    target=keys[leaf.referenced_file],
                    label=f"applies to {names.of(leaf.referenced_file)}",
                )
            )
    root_box, row_arrows = _root_box(root, top, boxed, vectors, shape, names, limits)
    if list_of is not None:
        root_box = replace(root_box, name="Manifest List")
    return visible_in(
        Picture(
            caption=caption,
            root=root_box,
            leaves=(*boxes, *_groups(root, top, boxed)),
            vectors=tuple(vector_boxes),
            arrows=tuple(arrows),
            row_arrows=row_arrows,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Top:
    """The root's rows by what they are, as row numbers."""

    content: _Numbers
    status: _Numbers
    #: Live leaves.
    leaves: _Numbers
    #: Live manifest DVs.
    vectors: _Numbers
    #: For each leaf, which of the manifest DVs is on it; -1 for none.
    on: _Numbers

    @classmethod
    def of(cls, root: Entries) -> _Top:
        content, status = root["content_type"].to_numpy(), root["status"].to_numpy()
        live = status != Status.DELETED
        leaves = np.flatnonzero(np.isin(content, MANIFESTS) & live)
        vectors = np.flatnonzero((content == Content.MANIFEST_DV) & live)
        on = pc.index_in(
            root["location"].take(leaves),
            value_set=root["referenced_file"].take(vectors).combine_chunks(),
        )
        return cls(
            content=content,
            status=status,
            leaves=leaves,
            vectors=vectors,
            on=pc.fill_null(on, -1).to_numpy().astype(np.int64),
        )

    def boxed_leaves(self, most: int) -> _Numbers:
        """Return the leaves to be shown: those with a new manifest DV first, then new ones."""
        has_vector = self.on >= 0
        vector_status = np.full(len(self.leaves), int(Status.EXISTING))
        vector_status[has_vector] = self.status[self.vectors[self.on[has_vector]]]
        rank = np.where(has_vector, 2, 3)
        rank[self.status[self.leaves] == Status.ADDED] = 1
        rank[has_vector & (vector_status == Status.ADDED)] = 0
        return self.leaves[pick(self.content[self.leaves], rank, most)]

    def vectors_on(self, root: Entries, leaves: _Numbers) -> _Numbers:
        """Return the manifest DVs on these leaves, those that this snapshot replaced too."""
        every = np.flatnonzero(self.content == Content.MANIFEST_DV)
        named = root["location"].take(leaves).combine_chunks()
        on = pc.is_in(root["referenced_file"].take(every), value_set=named)
        found: _Numbers = every[on.to_numpy()]
        return found


def pick(kind: npt.NDArray[Any], rank: npt.NDArray[Any], most: int) -> _Numbers:
    """Return at most so many row numbers, in order: of each kind alike, the least rank first."""
    queues = []
    for each in np.unique(kind):
        at = np.flatnonzero(kind == each)
        queues.append(at[np.argsort(rank[at], kind="stable")][:most])
    taken: list[int] = []
    for turn in range(most):
        taken += [int(queue[turn]) for queue in queues if turn < len(queue)]
        if len(taken) >= most:
            break
    return np.sort(np.array(taken[:most], np.int64))


def _rank(status: _Numbers, removed: _Flags) -> _Numbers:
    """Return what is most telling first: what went, then what came, then the rest."""
    rank = np.where(status == Status.ADDED, 1, 2)
    rank[removed | (status == Status.DELETED)] = 0
    return rank


# --- boxes ---------------------------------------------------------------------------------


def _leaf_box(
    leaf: Leaf,
    key: str,
    removed: BitMap | None,
    reader: Reader,
    shape: Shape,
    names: Names,
    limits: Limits,
    *,
    is_past: bool,
) -> Box:
    columns = {*_COLUMNS, POSITION, *stats_columns(shape)}
    entries = reader.leaf(leaf, columns=columns)
    gone = bitmap.mask(removed or BitMap(), entries.num_rows, file=leaf.location).to_numpy(
        zero_copy_only=False
    )
    content, status = entries["content_type"].to_numpy(), entries["status"].to_numpy()
    shown = pick(content, _rank(status, gone), limits.leaf_rows)
    rows = tuple(
        replace(
            row_of(found, shape, names),
            position=found[POSITION],
            is_removed=bool(gone[at]),
            is_past=bool(is_past),
        )
        for at, found in zip(shown, entries.take(shown).to_pylist(), strict=True)
    )
    live = int(np.count_nonzero(~gone & (status != Status.DELETED)))
    noun = "file" if leaf.content_type == Content.DATA_MANIFEST else "delete"
    facts = [
        counted(live, noun)
        if live == entries.num_rows
        else f"{number(live)} of {counted(entries.num_rows, noun)}"
    ]
    if leaf.content_type == Content.DATA_MANIFEST:
        alive = pa.array(~gone & (status != Status.DELETED))
        facts.append(counted(pc.sum(entries["record_count"].filter(alive)).as_py() or 0, "row"))
    elif leaf.referenced_file is None:
        facts.append("unaffiliated")
    facts.append(size(leaf.size_bytes))
    return Box(
        key=key,
        kind=_KINDS[Content(leaf.content_type)],
        name=names.of(leaf.location),
        facts=" · ".join(facts),
        rows=rows,
        more=_more(content, shown),
    )


def _vector_box(
    leaf: Leaf, removed: BitMap, added: dict[str, BitMap], names: Names, limits: Limits
) -> Box:
    new = added.get(leaf.location, BitMap())
    runs = [
        *_runs(new, Status.ADDED, limits.runs),
        *_runs(removed - new, Status.EXISTING, limits.runs),
    ]
    telling = sorted(runs[: limits.runs])
    rows = tuple(
        Row(name=str(first) if first == last else f"{first}-{last}", status=Status(status))
        for first, last, status in telling
    )
    left = len(removed) - sum(last - first + 1 for first, last, _ in telling)
    return Box(
        key=names.vector(leaf.location).lower(),
        kind=Kind.MANIFEST_DV,
        name=names.vector(leaf.location),
        facts=f"removes {counted(len(removed), 'entry', 'entries')}",
        rows=rows,
        more=(f"… {number(left)} more",) if left else (),
    )


def _runs(positions: BitMap, status: Status, most: int) -> list[tuple[int, int, int]]:
    """Return (first, last, status) of the first runs of positions."""
    if not positions:
        return []
    at = bitmap.to_array(positions).to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], np.diff(at) != 1]))
    ends = np.append(starts[1:] - 1, len(at) - 1)
    few = zip(at[starts[:most]].tolist(), at[ends[:most]].tolist(), strict=True)
    return [(first, last, int(status)) for first, last in few]


def _root_box(
    root: Entries,
    top: _Top,
    boxed: _Numbers,
    vectors: _Numbers,
    shape: Shape,
    names: Names,
    limits: Limits,
) -> tuple[Box, tuple[RowArrow, ...]]:
    rank = _rank(top.status, np.zeros(len(top.status), np.bool_))
    always = np.concatenate([boxed, vectors]).astype(np.int64)
    free = np.ones(len(rank), np.bool_)
    free[always] = False
    others = np.flatnonzero(free)
    room = max(limits.root_rows - len(always), 1)
    shown = np.sort(np.concatenate([always, others[pick(top.content[others], rank[others], room)]]))
    wanted = [name for name in (*_COLUMNS, *stats_columns(shape)) if name in root.column_names]
    found = root.select(wanted).take(shown).to_pylist()
    live = top.status != Status.DELETED
    facts = [counted(len(live), "entry", "entries")]
    for status in (Status.ADDED, Status.DELETED):
        changed = int(np.count_nonzero(top.status == status))
        if changed:
            facts.append(f"{number(changed)} {status.name}")
    box = Box(
        key="root",
        kind=Kind.ROOT,
        name="Root Manifest",
        facts=" · ".join(facts),
        rows=tuple(row_of(each, shape, names) for each in found),
        more=_more(top.content, shown),
    )
    return box, _row_arrows(found)


def _row_arrows(rows: list[dict[str, Any]]) -> tuple[RowArrow, ...]:
    """Return which data DV applies to which data file, where both are rows of the root."""
    files = {
        row["location"]: at for at, row in enumerate(rows) if row["content_type"] == Content.DATA
    }
    return tuple(
        RowArrow(source=at, target=files[row["referenced_file"]])
        for at, row in enumerate(rows)
        if row["content_type"] == Content.POSITION_DELETES
        and row["status"] in LIVE
        and row["referenced_file"] in files
    )


def _more(content: _Numbers, shown: _Numbers) -> tuple[str, ...]:
    """Return a line for each kind of entry that is not all shown."""
    every, seen = (
        np.bincount(part, minlength=len(Content)).tolist() for part in (content, content[shown])
    )
    left = {kind: every[kind] - seen[kind] for kind in Content}
    return tuple(
        f"… {number(count)} more {CONTENT_WORDS[kind][0 if count == 1 else 1]}"
        for kind, count in left.items()
        if count
    )


def _groups(root: Entries, top: _Top, boxed: _Numbers) -> list[Box]:
    """Return a box for all data manifests, and one for all delete manifests, that have none."""
    is_left = ~np.isin(top.leaves, boxed)
    found = []
    for content, kind in _KINDS.items():
        rows = np.flatnonzero(is_left & (top.content[top.leaves] == content))
        if not len(rows):
            continue
        leaves = root.select(_GROUP_COLUMNS).take(top.leaves[rows])
        on = top.on[rows]
        on = on[on >= 0]
        gone = pc.sum(root["record_count"].take(top.vectors[on])).as_py() or 0
        # Old manifest lists may leave the counts out.
        held = pc.add(leaves["added_files_count"], leaves["existing_files_count"])
        files = (pc.sum(pc.coalesce(held, leaves["record_count"])).as_py() or 0) - gone
        noun = "file" if content == Content.DATA_MANIFEST else "delete"
        is_rest = len(rows) < np.count_nonzero(top.content[top.leaves] == content)
        facts = [counted(files, noun), size(pc.sum(leaves["file_size_in_bytes"]).as_py() or 0)]
        lines = [counted(len(on), "manifest DV") + f", {counted(gone, 'entry', 'entries')} removed"]
        found.append(
            Box(
                key=f"more{int(content)}",
                kind=kind,
                name=_group_name(len(rows), kind, is_rest=bool(is_rest)),
                facts=" · ".join(facts),
                rows=tuple(_status_rows(top.status[top.leaves[rows]])),
                more=tuple(lines) if len(on) else (),
                is_group=True,
            )
        )
    return found


def _group_name(count: int, kind: Kind, *, is_rest: bool) -> str:
    rest = "more " if is_rest else ""
    return f"{number(count)} {rest}{kind.value.lower()}{'s' if count > 1 else ''}"


def _status_rows(status: _Numbers) -> list[Row]:
    return [
        Row(name=counted(int(np.count_nonzero(status == each)), "manifest"), status=each)
        for each in LIVE
        if np.any(status == each)
    ]
