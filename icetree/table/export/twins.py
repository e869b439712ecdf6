"""Avro twins of what a v4 tree holds: manifests for each leaf, and for the root's own files.

A leaf has a twin for each part of it, made once, and used again while the same of it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec.encryption.stream import seal
from icetree.codec.legacy.encode_list import COUNTS, Listed
from icetree.codec.legacy.encode_manifest import Layout, encode_manifest
from icetree.codec.legacy.tuples import Summary
from icetree.codec.single_value_bytes import encode_bounds
from icetree.errors import CorruptTable
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    FILES,
    MANIFESTS,
    POSITION,
    Content,
    Entries,
    Status,
    concat,
    empty,
    is_content,
    is_data_dv,
    is_data_file,
    is_live,
    is_of_spec,
    only,
    with_columns,
)
from icetree.spec.location import absolute
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import has_nans
from icetree.table.export.parts import Part, parts_of
from icetree.table.export.places import apart, own_manifest_at, told_by, twin_at
from icetree.tree.leaf import NewFile
from icetree.tree.live import is_live_in
from icetree.tree.manifest_dvs import added_positions, read_manifest_dvs
from icetree.tree.reading import Leaf, Reader, at_positions, leaves_in

_DATA: Final = "data"
_DELETES: Final = "deletes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest of an export, and the file to be stored for it; None where it is there."""

    listed: Listed
    file: NewFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A snapshot's tree, and how it is to be told in an older version."""

    snapshot: Snapshot
    root: Entries
    reader: Reader
    shape: Shape
    #: By spec id.
    layouts: Mapping[int, Layout]
    folder: str
    table_location: str
    format_version: int
    #: How long the keys of manifests are; None where they are plain.
    key_bytes: int | None = None
    #: Tells entries without data DVs, for a version that has none; None for one that has.
    without_dvs: Callable[[Entries], Entries] | None = None
    #: By spec id and content: what names say of layouts, worked out once.
    _told: dict[tuple[int, str], str] = field(default_factory=dict)

    def manifests(self, known: Mapping[str, Sequence[Listed]]) -> Iterator[Manifest]:
        """Yield the manifests that hold what the tree does; those of leaves may be `known`."""
        file = self.snapshot.root_file
        removed = read_manifest_dvs(self.root, self.reader, root_file=file)
        just_now = added_positions(self.root, self.reader, root_file=file)
        rows = _places_of_leaves(self.root)
        went: list[Entries] = []
        for leaf in leaves_in(only(self.root, is_live(self.root))):
            gone = removed.get(leaf.location)
            if not gone and self._is_kept(leaf, known):
                yield Manifest(listed=self._as_it_is(leaf, rows, known))
                continue
            parts = {
                part: self._there(part, known)
                for part in parts_of(leaf.location, leaf.record_count, gone)
            }
            missing = [part for part, there in parts.items() if not there]
            wanted = just_now.get(leaf.location, BitMap())
            entries = self._read(leaf, missing, wanted)
            went.append(self._went(entries, wanted))
            for part, there in parts.items():
                yield from (Manifest(listed=each) for each in there)
                if not there:
                    yield from self._twins(leaf, part, entries, gone)
        yield from self._own(went)

    # --- leaves ----------------------------------------------------------------------------

    def _there(self, part: Part, known: Mapping[str, Sequence[Listed]]) -> Sequence[Listed]:
        """Return the twins of a part, if they are the ones that would be made."""
        there = known.get(str(part), ())
        return there if all(self._is_current(each, part) for each in there) else ()

    def _is_current(self, listed: Listed, part: Part) -> bool:
        if listed.spec_id not in self.layouts:
            return False
        content = _DATA if listed.holds_data else _DELETES
        names = (
            self._twin_at(part, listed.spec_id, content, numbered=each) for each in (True, False)
        )
        return listed.location in {absolute(name, self.table_location) for name in names}

    def _twin_at(self, part: Part, spec_id: int, content: str, *, numbered: bool) -> str:
        told = self._told.get((spec_id, content))
        if told is None:
            told = self._told[spec_id, content] = told_by(self._layout(spec_id), content)
        return twin_at(self.folder, part, spec_id, told, numbered=numbered)

    def _read(self, leaf: Leaf, parts: Sequence[Part], positions: BitMap) -> Entries:
        """Return the entries of parts of a leaf, and those at positions: others may be there too."""
        wanted = BitMap(positions)
        for part in parts:
            wanted.add_range(part.start, part.end)
        if not wanted:
            return empty().append_column(POSITION, pa.array([], pa.int64()))
        found = self.reader.leaf(leaf, keep=at_positions(wanted))
        if found.num_rows and found[POSITION][-1].as_py() >= leaf.record_count:
            # They would be in no part.
            rule = f"more entries than the root says: {leaf.record_count}"
            raise CorruptTable(leaf.location, rule)
        return found

    def _twins(
        self, leaf: Leaf, part: Part, entries: Entries, gone: BitMap | None
    ) -> Iterator[Manifest]:
        """Yield the twins of a part, given entries of its leaf with all of its own among them."""
        places = entries[POSITION]
        inside = pc.and_(pc.greater_equal(places, part.start), pc.less(places, part.end))
        some = only(entries, inside)
        if part.gone:
            # What came with the leaf is no news of the snapshot that took from it.
            some = only(some, is_live_in(leaf, some, gone))
            some = with_columns(some, status=int(Status.EXISTING))
        for content, spec_id, numbered, alike in self._groups(some):
            at = self._twin_at(part, spec_id, content, numbered=numbered)
            yield self._made(alike, spec_id, at, (leaf.snapshot_id, leaf.sequence_number))

    def _went(self, entries: Entries, positions: BitMap) -> Entries:
        """Return what this snapshot removed from a leaf, as what it is: DELETED by it."""
        wanted = pa.array(positions, pa.int64())
        went = only(entries, pc.is_in(entries[POSITION], value_set=wanted))
        went = only(went, is_live(went)).drop_columns([POSITION])
        return with_columns(went, status=int(Status.DELETED), snapshot_id=self.snapshot.snapshot_id)

    def _as_it_is(
        self, leaf: Leaf, places: Mapping[str, int], known: Mapping[str, Sequence[Listed]]
    ) -> Listed:
        """Return a manifest of before the upgrade, which is Avro and stays itself."""
        location = absolute(leaf.location, self.table_location)
        first_row_id = leaf.first_row_id if self.format_version >= 3 else None
        for there in known.get(location, ()):
            if there.first_row_id == first_row_id and there.snapshot_id == leaf.snapshot_id:
                return there
        row = self.root.slice(places[leaf.location], 1)
        counts = {name: row[name][0].as_py() or 0 for name in COUNTS}
        return Listed(
            location=location,
            size_bytes=leaf.size_bytes,
            spec_id=leaf.partition_spec_id,
            holds_data=leaf.content_type == Content.DATA_MANIFEST,
            sequence_number=leaf.sequence_number or 0,
            min_sequence_number=row["min_sequence_number"][0].as_py() or 0,
            snapshot_id=leaf.snapshot_id or 0,
            counts=counts,
            partitions=_summaries(row, leaf.partition_spec_id, self.shape),
            key_metadata=row["key_metadata"][0].as_py(),
            first_row_id=first_row_id,
        )

    def _is_kept(self, leaf: Leaf, known: Mapping[str, Sequence[Listed]]) -> bool:
        """Tell whether a leaf is Avro already, and says nothing that the version cannot."""
        if leaf.file_format != "avro":
            return False
        if self.without_dvs is None or leaf.content_type != Content.DELETE_MANIFEST:
            return True
        if absolute(leaf.location, self.table_location) in known:
            return True
        if any(
            self._there(part, known) for part in parts_of(leaf.location, leaf.record_count, None)
        ):
            return False
        columns = ("status", "content_type", "file_format", "location")
        entries = self.reader.leaf(leaf, columns=columns)
        return not pc.any(is_data_dv(only(entries, is_live(entries)))).as_py()

    # --- the root --------------------------------------------------------------------------

    def _own(self, went: Sequence[Entries]) -> Iterator[Manifest]:
        """Yield manifests of the files that the root tracks, and of those that just went."""
        own = only(self.root, is_content(self.root, *FILES))
        writer = (self.snapshot.snapshot_id, self.snapshot.sequence_number)
        groups = self._groups(concat([own, *went]))
        for ordinal, (_, spec_id, _, some) in enumerate(groups):
            at = own_manifest_at(self.folder, self.snapshot, ordinal)
            yield self._made(some, spec_id, at, writer)

    # --- both ------------------------------------------------------------------------------

    def _groups(self, entries: Entries) -> Iterator[tuple[str, int, bool, Entries]]:
        """Yield (content, spec, whether they have row ids, entries): what one manifest may hold."""
        entries = entries if self.without_dvs is None else self.without_dvs(entries)
        is_data = is_data_file(entries)
        for content, of_it in ((_DATA, is_data), (_DELETES, pc.invert(is_data))):
            alike = only(entries, of_it)
            for spec_id in sorted(pc.unique(alike["partition_spec_id"]).to_pylist()):
                some = only(alike, is_of_spec(alike, spec_id))
                has_id = pc.is_valid(some["first_row_id"])
                for numbered, mask in ((False, pc.invert(has_id)), (True, has_id)):
                    part = only(some, mask)
                    if part.num_rows:
                        yield content, spec_id, numbered, part

    def _layout(self, spec_id: int) -> Layout:
        try:
            return self.layouts[spec_id]
        except KeyError:
            rule = f"an entry names partition spec {spec_id}, which the table does not have"
            raise CorruptTable(self.snapshot.root_file, rule) from None

    def _made(
        self, entries: Entries, spec_id: int, at: str, writer: tuple[int | None, int | None]
    ) -> Manifest:
        found = encode_manifest(entries, self._layout(spec_id))
        content, key = seal(found.content, self.key_bytes)
        at = at if key is None else apart(at)
        snapshot_id, sequence_number = writer
        listed = Listed(
            location=absolute(at, self.table_location),
            size_bytes=len(content),
            spec_id=spec_id,
            holds_data=found.holds_data,
            sequence_number=sequence_number or 0,
            min_sequence_number=found.min_sequence_number,
            snapshot_id=snapshot_id or 0,
            counts=found.counts,
            partitions=found.partitions,
            first_row_id=found.first_row_id if self.format_version >= 3 else None,
            key_metadata=key,
        )
        return Manifest(listed=listed, file=NewFile(location=at, content=content))


def _places_of_leaves(root: Entries) -> dict[str, int]:
    """Return where in the root the entry of each leaf is."""
    places = np.flatnonzero(is_content(root, *MANIFESTS).to_numpy())
    names = root["location"].take(pa.array(places)).to_pylist()
    return dict(zip(names, places.tolist(), strict=True))


def _summaries(row: Entries, spec_id: int, shape: Shape) -> tuple[Summary, ...] | None:
    """Return what a leaf's stats say of its partitions; None unless they say it of each field.

    A reader takes a field without bounds for one that has no values.
    """
    found = []
    for expression in shape.spec(spec_id):
        field, type = expression.stats_field, shape.types.get(expression.stats_field)
        names = {stat: stats.column(field, stat) for stat in ("lower", "upper", "nulls", "nans")}
        if type is None or not {names["lower"], names["upper"]} <= {*row.schema.names}:
            return None
        bounds = [row[names[stat]].combine_chunks() for stat in ("lower", "upper")]
        if any(each.null_count for each in bounds):
            return None
        nulls, nans = (
            row[names[stat]][0].as_py() if names[stat] in row.schema.names else None
            for stat in ("nulls", "nans")
        )
        lower, upper = (encode_bounds(each, type)[0].as_py() for each in bounds)
        has_nan = has_nans(type) and nans != 0
        found.append(
            Summary(contains_null=nulls != 0, contains_nan=has_nan, lower=lower, upper=upper)
        )
    return tuple(found)
