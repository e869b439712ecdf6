"""Which files snapshots need: the walk over trees that all of maintenance shares.

A snapshot needs what its rows are read from, and what tells by itself what its commit changed:
files that it removed are needed until it goes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.files.table_files import TableFiles
from icetree.spec.entry import (
    FILES,
    POSITION,
    Content,
    Entries,
    Status,
    has_status,
    is_content,
    is_live,
)
from icetree.spec.shape import Shape
from icetree.spec.snapshot import Snapshot
from icetree.tree.manifest_dvs import added_positions, read_manifest_dvs
from icetree.tree.reading import Leaf, Reader, leaves_in

#: A file that is named somewhere; `content_type` is null for what is no entry, such as a root.
NAMED: Final = pa.schema([("location", pa.string()), ("content_type", pa.int32())])


def none_named() -> pa.Table:
    """Return the table of no files."""
    return NAMED.empty_table()


#: After so many trees what they name is brought together, so that memory stays bounded.
_GATHERED: Final = 200


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
    _parts: list[pa.Table] = field(default_factory=list)

    def add(self, snapshot: Snapshot, files: TableFiles, shape: Shape) -> None:
        """Take in the tree of a snapshot."""
        root, reader, file = (
            files.bare_root(snapshot, shape),
            files.reader(shape),
            snapshot.root_file,
        )
        tops = [each for each in (snapshot.root_manifest, snapshot.manifest_list) if each]
        self._parts += [_named(root), named(tops)]
        if len(self._parts) >= _GATHERED:
            self.settle()
        gone = read_manifest_dvs(root, reader, root_file=file)
        just_now = added_positions(root, reader, root_file=file)
        self.fresh |= {
            leaf.location for leaf in leaves_in(root.filter(has_status(root, Status.ADDED)))
        }
        for leaf in leaves_in(root.filter(is_live(root))):
            unneeded = gone.get(leaf.location, BitMap()) - just_now.get(leaf.location, BitMap())
            before = self.unneeded.get(leaf.location)
            self.leaves.setdefault(leaf.location, leaf)
            self.unneeded[leaf.location] = unneeded if before is None else before & unneeded

    def settle(self) -> pa.Table:
        """Return what roots name, each once."""
        if self._parts:
            self.named = once([self.named, *self._parts])
            self._parts.clear()
        return self.named

    def needs(self, leaf: str, entries: Entries) -> pa.Array:
        """Tell which of a leaf's entries, all of them, any of the snapshots needs."""
        removed = bitmap.mask(self.unneeded[leaf], entries.num_rows, file=leaf)
        if leaf in self.fresh:
            return pc.invert(removed)
        return pc.and_not(is_live(entries).combine_chunks(), removed)


def named(locations: Iterable[str], content: Content | None = None) -> pa.Table:
    """Return files by name."""
    names = pa.array([*locations], pa.string())
    return pa.table([names, pa.repeat(pa.scalar(content, pa.int32()), len(names))], schema=NAMED)


def once(parts: Iterable[pa.Table]) -> pa.Table:
    """Return every file once."""
    found = (
        pa.concat_tables([none_named(), *parts])
        .group_by("location")
        .aggregate([("content_type", "max")])
    )
    return pa.table([found["location"], found["content_type_max"]], schema=NAMED)


def only_in(gone: Reach, kept: Reach, reader: Reader) -> pa.Table:
    """Return the files that the first snapshots need, and none of the second.

    Leaves of the first are read where an entry may be such; those of the second one after the
    other, so that memory follows what goes and not what the table holds.
    """
    found = once([gone.settle(), *_entries_only_in(gone, kept, reader)])
    return less_needed(found, kept, reader)


def less_needed(
    found: pa.Table, kept: Reach, reader: Reader, *, known: Reach | None = None
) -> pa.Table:
    """Return the files that snapshots do not need; leaves that are `known` are left unread."""
    found = less(found, kept.settle())
    for leaf in kept.leaves.values():
        if known is not None and leaf.location in known.leaves:
            continue
        # Only leaves name files; once there are none among what is left, the rest is sure.
        if not pc.any(pc.fill_null(is_content(found, *FILES), False)).as_py():
            break
        entries = _read(leaf, reader)
        found = less(found, _named(entries.filter(kept.needs(leaf.location, entries))))
    return found


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


def _read(leaf: Leaf, reader: Reader) -> Entries:
    return reader.leaf(leaf, columns={"location", "content_type", "status", POSITION})


def _named(entries: Entries) -> pa.Table:
    found = entries.select(NAMED.names)
    return found.filter(pc.is_valid(found["location"])).cast(NAMED)


def less(found: pa.Table, needed: pa.Table) -> pa.Table:
    """Return the files that are not needed."""
    known = pc.is_in(found["location"], value_set=needed["location"].combine_chunks())
    return found.filter(pc.invert(known))
