"""Clients' manifests, read before their commits are made: those of many together.

A commit of one data file is three small files, and what it costs to read these hardly depends on
what is in them. Of a group of commits all lists are fetched side by side and decoded as one, then
all manifests. Their new files are looked for side by side as well: with each try at the commits, since
who was told of a conflict deletes its own. Whatever cannot be read so is not there, and is read when its
commit is made, which then tells what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Final

from icetree.codec import legacy
from icetree.errors import IcetreeError, InvalidInput
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Entries, Status, has_status, only
from icetree.spec.location import absolute, is_relative, stored_form
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.tree.files import tracking_of
from icetree.tree.reading import Leaf, leaves_in

#: Larger files are read when it is their turn: all together would take too much memory.
_MOST_BYTES: Final = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What was read of some snapshots; for a table that has since changed its shape, nothing."""

    #: Where the table was, and what its entries meant.
    of: tuple[Any, ...]
    #: Lists by where they are stored, as bytes and decoded; and entries by manifest.
    lists: Mapping[str, tuple[bytes, Entries]] = field(default_factory=dict)
    entries: Mapping[Leaf, Entries] = field(default_factory=dict)
    #: Files of those entries that were there when they were last looked for, as they are stored.
    there: frozenset[str] = frozenset()

    def goes_for(self, metadata: TableMetadata) -> bool:
        """Tell whether what was read is what would be read for a table as it is."""
        return self.of == _meaning(metadata)

    def looked(self, metadata: TableMetadata, files: TableFiles) -> Ahead:
        """Return the same with the new files that exist now."""
        return replace(self, there=_there(self.entries.values(), metadata, files))


def read_ahead(snapshots: Sequence[Snapshot], metadata: TableMetadata, files: TableFiles) -> Ahead:
    """Read the lists of clients' snapshots, and the manifests that each brought with it."""
    shape, place = metadata.shape(), metadata.location
    names: list[tuple[str, int]] = []
    for each in snapshots:
        with suppress(InvalidInput):
            names.append((stored_form(each.manifest_list or "", place), each.snapshot_id))
    contents = _contents([name for name, _ in names], metadata, files)
    decoded: dict[str, Entries] = {}
    with suppress(IcetreeError):
        decoded = legacy.decode_manifest_lists(contents, shape=shape, table_location=place)
    own = [
        leaf
        for name, snapshot_id in names
        if name in decoded
        for leaf in leaves_in(decoded[name])
        if leaf.snapshot_id == snapshot_id and leaf.key_metadata is None
    ]
    return Ahead(
        of=_meaning(metadata),
        lists={name: (contents[name], each) for name, each in decoded.items()},
        entries=_entries(own, metadata, files),
    )


def _there(
    entries: Iterable[Entries], metadata: TableMetadata, files: TableFiles
) -> frozenset[str]:
    """Return which new files exist; what lies outside of the table is not looked for."""
    told = (
        name
        for each in entries
        for name in only(each, has_status(each, Status.ADDED))["location"].to_pylist()
    )
    names = [name for name in dict.fromkeys(told) if name is not None and is_relative(name)]

    def exists(name: str) -> bool:
        # What cannot be learnt now is asked for when its commit is made.
        with suppress(IcetreeError, OSError):
            return files.store.exists(absolute(name, metadata.location))
        return False

    return frozenset(compress(names, in_order(exists, names)))


def _entries(
    leaves: Sequence[Leaf], metadata: TableMetadata, files: TableFiles
) -> dict[Leaf, Entries]:
    contents = _contents([each.location for each in leaves], metadata, files)
    there = [each for each in dict.fromkeys(leaves) if each.location in contents]
    manifests = [(each.location, contents[each.location], tracking_of(each)) for each in there]
    with suppress(IcetreeError):
        found = legacy.decode_manifests(
            manifests, shape=metadata.shape(), table_location=metadata.location
        )
        return dict(zip(there, found, strict=True))
    return {}


def _contents(
    stored: Iterable[str], metadata: TableMetadata, files: TableFiles
) -> dict[str, bytes]:
    """Return the bytes of files within the table, side by side; of those that are there, and small."""
    names = [each for each in dict.fromkeys(stored) if is_relative(each)]

    def fetch(name: str) -> bytes | None:
        location = absolute(name, metadata.location)
        with suppress(IcetreeError, OSError):
            if files.store.size(location) <= _MOST_BYTES:
                return files.store.read(location)
        return None

    found = zip(names, in_order(fetch, names), strict=True)
    return {name: content for name, content in found if content is not None}


def _meaning(metadata: TableMetadata) -> tuple[Any, ...]:
    return metadata.location, metadata.shape().meaning
