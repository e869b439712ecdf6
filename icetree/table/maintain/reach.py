"""Which files snapshots need: the walk over trees that all of maintenance shares.

A snapshot needs what its rows are read from, and what tells by itself what its commit changed:
files that it removed are needed until it goes too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.spec.arrays import grouped
from icetree.spec.entry.entry import (
    FILES,
    MANIFESTS,
    POSITION,
    Content,
    Entries,
    Status,
    has_status,
    is_content,
    is_live,
)
from icetree.spec.location import stored_form
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.table.export.parts import Twins
from icetree.table.export.places import export_of
from icetree.table.progress import Progress
from icetree.table.state import State
from icetree.tree.manifest_dvs import added_positions, read_manifest_dvs
from icetree.tree.reading import Leaf, Reader, leaves_in

#: A file that is named somewhere; `content_type` is null for what is no entry, such as a root.
NAMED: Final = pa.schema([("location", pa.string()), ("content_type", pa.int32())])


def none_named() -> pa.Table:
    """Return the table of no files."""
    return NAMED.empty_table()


#: Where catalogs that are folders keep the number of the newest metadata.
VERSION_HINT: Final = "metadata/version-hint.text"

#: After so many trees what they name is brought together, so that memory stays bounded.
_GATHERED: Final = 200
#: Roots that are fetched side by side.
_FETCHED: Final = 64
#: So many names are looked for at once: each look costs as much as all that they may be among.
_LOOKED_FOR: Final = 200_000


@dataclass(slots=True)
class Reach:
    """What some snapshots need, gathered tree by tree; no leaf is read for it."""

    #: What roots name themselves, with the roots.
    named: pa.Table = field(default_factory=none_named)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    #: By leaf, the entries that a manifest DV had removed before each of the snapshots.
    unneeded: dict[str, BitMap] = field(default_factory=dict)
    #: Leaves that one of the snapshots added: their tombstones are its change.
    fresh: set[str] = field(default_factory=set)
    #: What tells the exports of the snapshots, and the twins of their leaves.
    exports: set[str] = field(default_factory=set)
    twins: Twins = field(default_factory=Twins)
    _parts: list[pa.Table] = field(default_factory=list)

    def gather(
        self,
        snapshots: Sequence[Snapshot],
        files: TableFiles,
        shape: Shape,
        *,
        what: str,
        tell: Progress,
    ) -> None:
        """Take in the trees of many snapshots; `tell` is told of them as `what`."""
        for start in range(0, len(snapshots), _FETCHED):
            some = snapshots[start : start + _FETCHED]
            tops = [each for each in some if each.root_manifest]
            deque(in_order(files.fetch_root, tops), maxlen=0)
            for each in some:
                self.add(each, files, shape)
            tell(what, start + len(some), len(snapshots))

    def add(self, snapshot: Snapshot, files: TableFiles, shape: Shape) -> None:
        """Take in the tree of a snapshot."""
        root, reader, file = (
            files.bare_root(snapshot, shape),
            files.reader(shape),
            snapshot.root_file,
        )
        self._parts += [_named(root), named(tops_of(snapshot, files.location))]
        if len(self._parts) >= _GATHERED:
            self.settle()
        self.exports.add(export_of(snapshot))
        # A root that holds all files of its table itself, as of small ones that change often.
        if not pc.any(is_content(root, *MANIFESTS, Content.MANIFEST_DV)).as_py():
            return
        gone = read_manifest_dvs(root, reader, root_file=file)
        just_now = added_positions(root, reader, root_file=file)
        self.fresh |= {
            leaf.location for leaf in leaves_in(root.filter(has_status(root, Status.ADDED)))
        }
        for leaf in leaves_in(root.filter(is_live(root))):
            self.twins.add(leaf.location, gone.get(leaf.location))
            unneeded = gone.get(leaf.location, BitMap()) - just_now.get(leaf.location, BitMap())
            before = self.unneeded.get(leaf.location)
            self.leaves.setdefault(leaf.location, leaf)
            self.unneeded[leaf.location] = unneeded if before is None else before & unneeded

    def of_leaf(self, location: str) -> Reach:
        """Return what is about one leaf alone."""
        return Reach(
            leaves={location: self.leaves[location]},
            unneeded={location: self.unneeded[location]},
            fresh=self.fresh & {location},
        )

    def settle(self) -> pa.Table:
        """Return what roots name, each once."""
        if self._parts:
            self.named = once([self.named, *self._parts])
            self._parts.clear()
        return self.named

    def covers(self, other: Reach) -> Callable[[str], bool]:
        """Return what tells of a leaf whether other snapshots need nothing of it that these do not."""

        def covered(leaf: str) -> bool:
            return (
                leaf in self.leaves
                and self.unneeded[leaf] <= other.unneeded[leaf]
                and (leaf in self.fresh or leaf not in other.fresh)
            )

        return covered

    def needs(self, leaf: str, entries: Entries) -> pa.Array:
        """Tell which of a leaf's entries, all of them, any of the snapshots needs."""
        removed = bitmap.mask(self.unneeded[leaf], entries.num_rows, file=leaf)
        if leaf in self.fresh:
            return pc.invert(removed)
        return pc.and_not(is_live(entries).combine_chunks(), removed)


def named(locations: Iterable[str] | pa.Array, content: Content | None = None) -> pa.Table:
    """Return files by name."""
    names: Any = locations
    if not isinstance(locations, pa.Array):
        names = pa.array([*locations], pa.string())
    return pa.table([names, pa.repeat(pa.scalar(content, pa.int32()), len(names))], schema=NAMED)


def tops_of(snapshot: Snapshot, location: str) -> list[str]:
    """Return the files at the top of a snapshot's tree, by the one name that each has in a table."""
    tops = (snapshot.root_manifest, snapshot.manifest_list)
    return [stored_form(each, location) for each in tops if each]


def named_by(state: State, *, but: Collection[int] = ()) -> pa.Table:
    """Return the files that a table's metadata names beside its trees, and the metadata itself.

    Statistics of some snapshots may be left out by their ids.
    """
    metadata = state.metadata
    names = [state.metadata_location, VERSION_HINT]
    names += [each.metadata_file for each in metadata.metadata_log]
    names += [each.location for each in metadata.snapshot_pages]
    names += [
        each.statistics_path for each in metadata.all_statistics if each.snapshot_id not in but
    ]
    return named(stored_form(each, metadata.location) for each in names)


def once(parts: Iterable[pa.Table]) -> pa.Table:
    """Return every file once."""
    every = pa.concat_tables([none_named(), *parts])
    found = grouped(every, "location").aggregate([("content_type", "max")])
    return pa.table([found["location"], found["content_type_max"]], schema=NAMED)


def only_in(
    gone: Reach, kept: Reach, reader: Reader, *, beside: pa.Table | None = None
) -> pa.Table:
    """Return the files that the first snapshots need or have `beside` their trees, and none of the second.

    Leaves of the first are read where an entry may be such; those of the second one after the
    other, so that memory follows what goes and not what the table holds.
    """
    more = () if beside is None else (beside,)
    found = once([gone.settle(), *_entries_only_in(gone, kept, reader), *more])
    return less_needed(found, kept, reader)


def less_needed(
    found: pa.Table, kept: Reach, reader: Reader, *, known: Reach | None = None
) -> pa.Table:
    """Return the files that snapshots do not need; what `known` ones need of a leaf is out already."""
    found = less(found, kept.settle())
    others = frozenset() if known is None else frozenset(filter(known.covers(kept), kept.leaves))
    below = needed_below(kept, reader, but=others)
    # Only leaves name files; where there are none among what is left, the rest is sure.
    while pc.any(pc.fill_null(is_content(found, *FILES), False)).as_py():
        needed = next(below, None)
        if needed is None:
            break
        found = less(found, needed)
    return found


def needed_below(
    reach: Reach, reader: Reader, *, but: Collection[str] = frozenset()
) -> Iterator[pa.Table]:
    """Yield the files that leaves name and the snapshots need, many at a time.

    Of leaves so many are held as it takes to name those; some may be left out by name.
    """
    parts: list[pa.Table] = []
    for location, leaf in reach.leaves.items():
        if location in but:
            continue
        entries = _read(leaf, reader)
        parts.append(_named(entries.filter(reach.needs(location, entries))))
        if sum(each.num_rows for each in parts) >= _LOOKED_FOR:
            yield pa.concat_tables(parts)
            parts.clear()
    if parts:
        yield pa.concat_tables(parts)


def _entries_only_in(gone: Reach, kept: Reach, reader: Reader) -> Iterator[pa.Table]:
    for location, leaf in gone.leaves.items():
        stays = location in kept.leaves
        is_alike = stays and not (
            kept.unneeded[location] - gone.unneeded[location]
            or (location in gone.fresh and location not in kept.fresh)
        )
        if is_alike:
            continue
        entries = _read(leaf, reader)
        wanted = gone.needs(location, entries)
        if stays:
            wanted = pc.and_not(wanted, kept.needs(location, entries))
        yield _named(entries.filter(wanted))


def names_in(leaf: Leaf, reader: Reader) -> pa.Table:
    """Return every file that a leaf names, whoever needs it."""
    return _named(_read(leaf, reader))


def _read(leaf: Leaf, reader: Reader) -> Entries:
    return reader.leaf(leaf, columns={"location", "content_type", "status", POSITION})


def _named(entries: Entries) -> pa.Table:
    found = entries.select(NAMED.names)
    return found.filter(pc.is_valid(found["location"])).cast(NAMED)


def less(found: pa.Table, needed: pa.Table) -> pa.Table:
    """Return the files that are not needed."""
    return found.filter(pc.invert(_is_among(found, needed)))


def both(found: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files that are also among others."""
    return found.filter(_is_among(found, others))


def _is_among(found: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(found["location"], value_set=others["location"].combine_chunks())
