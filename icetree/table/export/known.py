"""Manifests that are there already: those that lists of exports name, of whichever snapshot.

Names follow from content, so that a list of any relative will do: the nearest has the most in common.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from icetree.codec.legacy.encode_list import Listed, read_listed
from icetree.errors import CorruptTable, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.retention import line_of
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.export.places import export_of, is_list, manifest_list_at, part_of

#: Twins by the parts that they are of, all others by their locations.
Known: TypeAlias = Mapping[str, Sequence[Listed]]


def known_of(listed: Iterable[Listed], place: str) -> dict[str, list[Listed]]:
    """Return the manifests of a list, given the folder of its export, in full."""
    found: dict[str, list[Listed]] = {}
    for each in listed:
        part = part_of(each.location.removeprefix(place))
        found.setdefault(each.location if part is None else str(part), []).append(each)
    return found


def known_in(at: str, files: TableFiles, place: str) -> dict[str, list[Listed]] | None:
    """Return the manifests that a list at a location names; None where it is not there, or broken."""
    try:
        return known_of(read_listed(files.store.read(at), file=at), place)
    except (NotFound, CorruptTable):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is there of a table's exports, as one look at their folder tells; and what was made since."""

    files: TableFiles
    #: The folder, in full.
    place: str
    sizes: dict[str, int]

    @classmethod
    def seen(cls, files: TableFiles, place: str) -> Present:
        """Look what is there."""
        sizes = {each.location: each.size_bytes for each in files.store.list(place)}
        return cls(files=files, place=place, sizes=sizes)

    def missing(self, listed: Iterable[Listed]) -> list[Listed]:
        """Return the manifests of exports that are not there, or not as they are told of.

        Those of before an upgrade are the tree's own, wherever they lie.
        """
        return [each for each in listed if not self._is_there(each)]

    def add(self, listed: Iterable[Listed]) -> None:
        """Take in manifests that are there by now."""
        self.sizes.update((each.location, each.size_bytes) for each in listed)

    def _is_there(self, listed: Listed) -> bool:
        at = listed.location
        if not at.startswith(self.place):
            return True
        if self.sizes.get(at) != listed.size_bytes:
            # A listing may lag behind.
            with suppress(NotFound):
                self.sizes[at] = self.files.store.size(at)
        return self.sizes.get(at) == listed.size_bytes


def known_to_relatives(
    metadata: TableMetadata,
    files: TableFiles,
    snapshot: Snapshot,
    folder: str,
    there: Collection[str] = frozenset(),
) -> dict[str, list[Listed]]:
    """Return the manifests that the nearest exported ancestor has; without one, a descendant's.

    `there` are exports that are known to be there, by what tells them.
    """
    place = absolute(folder, metadata.location)
    for at in _lists_of_relatives(metadata, files, snapshot, folder, there):
        found = known_in(at, files, place)
        if found is not None:
            return found
    return {}


def _lists_of_relatives(
    metadata: TableMetadata,
    files: TableFiles,
    snapshot: Snapshot,
    folder: str,
    there: Collection[str],
) -> Iterator[str]:
    """Yield where exports of relatives lie, the nearest first: the parent's, there or not."""

    def places(line: Iterable[Snapshot]) -> list[str]:
        return [absolute(manifest_list_at(folder, each), metadata.location) for each in line]

    ancestors = [*line_of(metadata.by_id, snapshot.parent_snapshot_id)]
    yield from places(each for each in ancestors if export_of(each) in there)
    before, after = places(ancestors), places(_descendants(metadata, snapshot))
    yield from before[:1]
    if snapshot.parent_snapshot_id is None and not after:
        return
    # Asking for many that are not there takes longer than to see what is.
    place = absolute(folder, metadata.location)
    found = {each.location: each.modified_at_ms for each in files.store.list(place)}
    yield from (at for at in (*before[1:], *after) if at in found)
    # Relatives that are left may be in pages of history: the last export is of one of them, as a rule.
    lists = [at for at in found if is_list(at.removeprefix(place))]
    yield from sorted(lists, key=found.__getitem__)[-1:]


def _descendants(metadata: TableMetadata, snapshot: Snapshot) -> Iterator[Snapshot]:
    """Yield what came after a snapshot on the way to branches and tags, the next first."""
    for head in _heads(metadata):
        line = [*line_of(metadata.by_id, head)]
        # A snapshot of the pages of history is no part of a line, but the parent of its end may be.
        parents = [each.parent_snapshot_id for each in line]
        if snapshot.snapshot_id in parents:
            yield from reversed(line[: parents.index(snapshot.snapshot_id) + 1])


def _heads(metadata: TableMetadata) -> Collection[int]:
    heads = [metadata.current_snapshot_id, *(each.snapshot_id for each in metadata.refs.values())]
    return dict.fromkeys(each for each in heads if each is not None)


def heads_of(metadata: TableMetadata) -> list[Snapshot]:
    """Return what branches and tags point to, the current snapshot first."""
    return [metadata.snapshot(id) for id in _heads(metadata)]
