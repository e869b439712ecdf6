"""New leaves in the place of old ones: made once, and put into whatever head there is by then.

Leaves take long to make where a tree is large, and others go on committing. So they are made beside
the commit, and taking them over is a matter of the root: what others removed from an old leaf since
is removed from the new ones too, and what cannot be taken over any more is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CommitConflict
from icetree.spec.entry.entry import Entries, Status, concat, with_columns
from icetree.spec.schema.shape import Shape
from icetree.tree.draft import Stamp
from icetree.tree.leaf import NewFile, NewLeaf, make_leaf
from icetree.tree.leaves.arrange import Arrangement, Held, Run, heirs
from icetree.tree.leaves.exchange import exchanged
from icetree.tree.leaves.flush import existing_entry
from icetree.tree.leaves.mark import without
from icetree.tree.policy import Policy
from icetree.tree.reading import Leaf, Reader, leaves_in

#: Entries that are held in memory at once while leaves are made.
AT_ONCE: Final = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """Leaves that were made, and the old ones whose place they take."""

    arrangement: Arrangement
    #: The entry of each new leaf.
    entries: tuple[Entries, ...] = field(repr=False)

    @property
    def locations(self) -> list[str]:
        """The new leaves."""
        return [each.location for each in self.arrangement.new]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """A root with new leaves in the place of old ones."""

    root: Entries
    manifest_dvs: dict[str, BitMap]
    files: tuple[NewFile, ...]
    #: How many entries new leaves hold.
    processed: int


def make_leaves(
    arrangement: Arrangement,
    reader: Reader,
    shape: Shape,
    *,
    run: Run = map,
    key_bytes: int | None = None,
) -> Iterator[NewLeaf]:
    """Yield the new leaves, in order; `key_bytes` is as for `make_leaf`.

    As many are made at once as hold so many entries that they fit in memory; each old leaf is read
    once for every such part that has entries of it.
    """
    for part in arrangement.parts(AT_ONCE):
        starts, entries = part.starts(), _gathered(part, reader, run)
        for place, start, end in zip(part.new, starts[:-1], starts[1:], strict=True):
            yield make_leaf(
                entries.slice(int(start), int(end - start)),
                place.content,
                place.location,
                shape,
                status=Status.EXISTING,
                referenced_file=place.referenced_file,
                key_bytes=key_bytes,
            )


def as_made(arrangement: Arrangement, entries: Sequence[Entries]) -> Rewritten:
    """Return what was made of an arrangement: its leaves under the names that they got.

    Who makes leaves elsewhere, where an attempt may be repeated, gives each attempt names of its own.
    """
    names = {
        place.location: entry["location"][0].as_py()
        for place, entry in zip(arrangement.new, entries, strict=True)
    }
    new = tuple(
        replace(
            place,
            location=names[place.location],
            referenced_file=names.get(place.referenced_file or "", place.referenced_file),
        )
        for place in arrangement.new
    )
    return Rewritten(
        arrangement=replace(arrangement, new=new),
        entries=tuple(
            with_columns(entry, referenced_file=place.referenced_file)
            for place, entry in zip(new, entries, strict=True)
        ),
    )


def _gathered(part: Arrangement, reader: Reader, run: Run) -> Entries:
    """Return entries in their new order, with all of their columns."""
    by_leaf = np.argsort(part.leaf, kind="stable")
    begins = np.searchsorted(part.leaf[by_leaf], np.arange(1, len(part.old)))
    wanted = [
        (held.leaf, part.position[rows])
        for held, rows in zip(part.old, np.split(by_leaf, begins), strict=True)
    ]
    parts = run(lambda each: reader.leaf(each[0]).take(pa.array(each[1])), wanted)
    back = np.empty(len(by_leaf), np.int64)
    back[by_leaf] = np.arange(len(by_leaf))
    return with_columns(concat(parts).take(pa.array(back)), status=int(Status.EXISTING))


def take_over(
    rewritten: Rewritten,
    root: Entries,
    manifest_dvs: Mapping[str, BitMap],
    stamp: Stamp,
    shape: Shape,
    policy: Policy,
) -> TakenOver:
    """Return the live entries of a head with the new leaves in the place of the old ones.

    Leaves belong together where entries went from one to the other. They are left out together
    where an old leaf is not there any more, or has entries again that it had lost.
    """
    arrangement = rewritten.arrangement
    if not arrangement.old:  # the commit is there to leave out what is gone
        return TakenOver(root=root, manifest_dvs={**manifest_dvs}, files=(), processed=0)
    now = {leaf.location: _bare(leaf) for leaf in leaves_in(root)}
    lost = [not _is_there(each, now, manifest_dvs) for each in arrangement.old]
    old_heap, new_heap = _heaps(arrangement)
    left_out = {heap for heap, gone in zip(old_heap, lost, strict=True) if gone}
    taken = [at for at, heap in enumerate(new_heap) if heap not in left_out]
    replaced = [at for at, heap in enumerate(old_heap) if heap not in left_out]
    if not replaced:
        raise CommitConflict(
            "other commits rewrote the leaves that were rewritten here: try again later"
        )
    there = (now.keys() - {arrangement.old[at].leaf.location for at in replaced}) | {
        arrangement.new[at].location for at in taken
    }
    gone = _removed_since(arrangement, replaced, manifest_dvs)
    marks, files = without(gone, stamp, shape, policy)
    same = heirs(len(arrangement.old), arrangement.leaf, arrangement.goes_to)
    root = exchanged(
        root,
        {
            arrangement.old[at].leaf.location: (
                arrangement.new[same[at]].location if same[at] >= 0 else None
            )
            for at in replaced
        },
        [_affiliated(existing_entry(rewritten.entries[at], stamp), there) for at in taken],
    )
    before = {arrangement.old[at].leaf.location for at in replaced}
    counts = np.diff(arrangement.starts())
    return TakenOver(
        root=concat([root, marks]) if marks.num_rows else root,
        manifest_dvs={k: v for k, v in manifest_dvs.items() if k not in before} | gone,
        files=tuple(files),
        processed=int(counts[taken].sum()),
    )


def _bare(leaf: Leaf) -> Leaf:
    """Return a leaf without what it is affiliated with, which is no matter of its own."""
    return replace(leaf, referenced_file=None)


def _is_there(held: Held, now: Mapping[str, Leaf], manifest_dvs: Mapping[str, BitMap]) -> bool:
    """Tell whether a leaf is as it was found, less what has gone from it since."""
    location = held.leaf.location
    gone = manifest_dvs.get(location, BitMap())
    return now.get(location) == _bare(held.leaf) and held.removed <= gone


def _affiliated(leaf: Entries, there: set[str]) -> Entries:
    """Return the entry of a delete manifest, of no data manifest where that is not there."""
    owner = leaf["referenced_file"][0].as_py()
    return leaf if owner is None or owner in there else with_columns(leaf, referenced_file=None)


def _removed_since(
    arrangement: Arrangement, replaced: list[int], manifest_dvs: Mapping[str, BitMap]
) -> dict[str, BitMap]:
    """Return where entries stand in new leaves that have gone from old ones since."""
    starts = arrangement.starts()
    found: dict[str, BitMap] = {}
    for number in replaced:
        held = arrangement.old[number]
        since = manifest_dvs.get(held.leaf.location, BitMap()) - held.removed
        if not since:
            continue
        rows = np.flatnonzero(arrangement.leaf == number)
        rows = rows[np.isin(arrangement.position[rows], bitmap.to_array(since).to_numpy())]
        for new in np.unique(arrangement.goes_to[rows]).tolist():
            here = rows[arrangement.goes_to[rows] == new] - starts[new]
            location = arrangement.new[new].location
            found[location] = found.get(location, BitMap()) | bitmap.of(pa.array(here))
    return found


def _heaps(arrangement: Arrangement) -> tuple[list[int], list[int]]:
    """Return which old and which new leaves belong together, as numbers of heaps."""
    olds = len(arrangement.old)
    parent = list(range(olds + len(arrangement.new)))

    def top(at: int) -> int:
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    pairs = np.unique(np.stack([arrangement.leaf, arrangement.goes_to]), axis=1)
    for old, new in pairs.T.tolist():
        parent[top(old)] = top(olds + new)
    places = {each.location: olds + at for at, each in enumerate(arrangement.new)}
    for at, each in enumerate(arrangement.new):
        if each.referenced_file in places:
            parent[top(olds + at)] = top(places[each.referenced_file])
    every = [top(at) for at in range(len(parent))]
    return every[:olds], every[olds:]
