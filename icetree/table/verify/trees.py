"""Is every snapshot's tree sound: all invariants, over roots and leaves that share what they can."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import pyarrow.compute as pc

from icetree.errors import CorruptTable, NotFound
from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Entries,
    Status,
    concat,
    has_status,
    is_content,
    is_live,
    only,
)
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.verify.files import Referenced
from icetree.table.verify.findings import Gathering, Kind, Severity
from icetree.table.verify.leaf_footers import untrue
from icetree.table.verify.replaced import is_replacement, unbalanced
from icetree.table.verify.roots import Roots
from icetree.table.verify.row_texts import sparse_texts
from icetree.tree.check import check
from icetree.tree.check.change import told_of, untold
from icetree.tree.check.check import OfLeaf
from icetree.tree.diff.diff import Diff, diff
from icetree.tree.files import FileReader
from icetree.tree.live import live_parts
from icetree.tree.reading import Keep, Leaf, leaves_in
from icetree.tree.recount import with_counts
from icetree.tree.summary import totals

_KINDS: Final = {
    check.Kind.TREE: Kind.TREE,
    check.Kind.DANGLING_DATA_DV: Kind.DANGLING_DATA_DV,
    check.Kind.ROW_IDS: Kind.ROW_LINEAGE,
}

#: Decoded leaves that are kept for the next snapshot.
_KEPT_BYTES: Final = 512 * 1024 * 1024


class SharedReader:
    """Reads each leaf once, however many snapshots share it; what is missing is corrupt."""

    def __init__(self, inner: FileReader) -> None:
        self._inner = inner
        self._held: OrderedDict[Leaf, Entries] = OrderedDict()
        self._failed: dict[Leaf, CorruptTable] = {}
        self._untrue: dict[Leaf, tuple[str, ...]] = {}
        self._size_bytes = 0
        #: Locations of the leaves that were read.
        self.read: set[str] = set()
        #: Locations of leaves and Puffin files that are not there.
        self.missing: set[str] = set()

    def leaf(
        self,
        leaf: Leaf,
        *,
        columns: Collection[str] | None = None,
        keep: Keep | None = None,
    ) -> Entries:
        """Return the leaf's entries, all of them."""
        del columns, keep  # whole leaves serve every later question
        if leaf in self._failed:
            raise self._failed[leaf]
        if leaf in self._held:
            self._held.move_to_end(leaf)
            return self._held[leaf]
        self.read.add(leaf.location)
        try:
            entries = self._inner.leaf(leaf)
            if leaf not in self._untrue:
                told = self._inner.told(leaf)
                names = self._inner.shape.names
                self._untrue[leaf] = () if told is None else tuple(untrue(told, entries, names))
        except CorruptTable as error:
            self._failed[leaf] = error
            raise
        except NotFound:
            self._failed[leaf] = self._lost(leaf.location)
            raise self._failed[leaf] from None
        self._held[leaf] = entries
        self._size_bytes += entries.nbytes
        while self._size_bytes > _KEPT_BYTES and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._size_bytes -= dropped.nbytes
        return entries

    def failure(self, leaf: Leaf) -> CorruptTable | None:
        """Return why a leaf cannot be read; None when it can."""
        try:
            self.leaf(leaf)
        except CorruptTable as error:
            return error
        return None

    def untrue(self, leaf: Leaf) -> tuple[str, ...]:
        """Return what is wrong with what the footer of a leaf that was read says of its entries."""
        return self._untrue[leaf]

    def blob(
        self, location: str, *, offset: int, size_bytes: int, key: bytes | None = None
    ) -> bytes:
        """Return a range of a file."""
        try:
            return self._inner.blob(location, offset=offset, size_bytes=size_bytes, key=key)
        except NotFound:
            raise self._lost(location) from None

    def _lost(self, location: str) -> CorruptTable:
        self.missing.add(location)
        return CorruptTable(location, "is missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """Checks one snapshot after the other, newest first."""

    metadata: TableMetadata
    roots: Roots
    found: Gathering
    reader: SharedReader
    #: Leaves, Puffin files, data and delete files that some snapshot needs.
    referenced: Referenced = field(default_factory=Referenced)
    #: By the parent they wait for: snapshots with their root, their live files and their changes.
    children: dict[int, list[tuple[int, str, Entries, Diff]]] = field(default_factory=dict)
    #: What was found of leaves, each beside what a root says of it.
    looked: dict[tuple[Leaf, bytes, bool], tuple[str, ...]] = field(default_factory=dict)

    def check(self, snapshot: Snapshot) -> tuple[Entries, Entries] | None:
        """Check a snapshot's tree; return its root and live files, None where these cannot be told."""
        file, id = snapshot.root_file, snapshot.snapshot_id
        try:
            root = self.roots.of(snapshot)
        except NotFound:
            self.found.add(Kind.MISSING_FILE, file, "this root is missing", snapshot_id=id)
            return None
        except CorruptTable as error:
            self.found.add(Kind.UNREADABLE, error.file, error.rule, snapshot_id=id)
            return None
        here = root.filter(is_live(root))
        tops = is_content(here, *MANIFESTS, Content.MANIFEST_DV)
        self.referenced.add(only(here, tops), id)
        if self._has_bad_leaf(here, id):
            return None
        if snapshot.root_manifest is None:
            root = with_counts(root, self.reader)

        @cache
        def files() -> Entries:
            return concat(live_parts(root, self.reader, root_file=file))

        is_sound = self._check_tree(root, snapshot, file, files)
        try:
            live = files()
        except CorruptTable as error:
            self.found.add(Kind.TREE, error.file, error.rule, snapshot_id=id)
            return None
        self.referenced.add(live, id)
        if is_sound:
            self._check_changes(snapshot, root, live)
        for rule in _wrong_totals(live, snapshot):
            self.found.add(Kind.SUMMARY, file, rule, snapshot_id=id, severity=Severity.WARNING)
        return root, live

    def _has_bad_leaf(self, root: Entries, id: int) -> bool:
        """Read every leaf, and report each that cannot be, not only the first, or whose footer lies."""
        bad = []
        for leaf in leaves_in(root):
            error = self.reader.failure(leaf)
            if error is not None:
                bad.append(error)
                continue
            for rule in self.reader.untrue(leaf):
                self.found.add(Kind.STATS, leaf.location, rule, snapshot_id=id)
        for error in bad:
            is_missing = error.file in self.reader.missing
            kind = Kind.MISSING_FILE if is_missing else Kind.UNREADABLE
            self.found.add(kind, error.file, error.rule, snapshot_id=id)
        return bool(bad)

    def _check_tree(
        self, root: Entries, snapshot: Snapshot, file: str, files: Callable[[], Entries]
    ) -> bool:
        """Report every broken rule of a tree; tell whether there was none."""
        id = snapshot.snapshot_id
        end = None
        if snapshot.first_row_id is not None and snapshot.added_rows is not None:
            end = snapshot.first_row_id + snapshot.added_rows
        broken = check.check(
            root,
            self.reader,
            self.roots.shape,
            root_file=file,
            # A manifest list does not tell which leaves its snapshot only moved.
            snapshot_id=None if snapshot.root_manifest is None else id,
            sequence_number=snapshot.sequence_number or None,
            next_row_id=end,
            of_leaf=self._looker(root, id),
            files=files,
        )
        for each in broken:
            is_missing = each.file in self.reader.missing
            kind = Kind.MISSING_FILE if is_missing else _KINDS[each.kind]
            self.found.add(kind, each.file, each.rule, snapshot_id=id)
        if snapshot.root_manifest is not None and not broken:
            for rule in _not_its_own(root, id):
                self.found.add(Kind.TREE, file, rule, snapshot_id=id)
        return not broken

    def _looker(self, root: Entries, id: int) -> OfLeaf:
        """Return what looks at a leaf of a root, unless an equal root was there before."""
        tops = only(root, pc.and_(is_live(root), is_content(root, *MANIFESTS)))
        # Bounds are loose while a manifest DV removes from the leaf, which nothing here is held against.
        names = [name for name in tops.column_names if not name.endswith(":tight")]
        texts = sparse_texts(tops.select(names)).to_pylist()
        told = dict(zip(tops["location"].to_pylist(), texts, strict=True))

        def look(leaf: Leaf, find: Callable[[], Iterable[str]]) -> Iterable[str]:
            key = (leaf, told[leaf.location], leaf.snapshot_id == id)
            if key not in self.looked:
                self.looked[key] = tuple(find())
            return self.looked[key]

        return look

    def _check_changes(self, snapshot: Snapshot, root: Entries, live: Entries) -> None:
        """Hold what snapshots say they changed against the trees before and after them."""
        own = told_of(live)
        for child, file, after, changed in self.children.pop(snapshot.snapshot_id, ()):
            for rule in untold(own, after, changed):
                self.found.add(Kind.TREE, file, rule, snapshot_id=child)
        if snapshot.root_manifest is None:
            return  # what v1 to v3 say of their changes was never a promise
        id, file = snapshot.snapshot_id, snapshot.root_file
        try:
            changed = diff(root, self.reader, root_file=file)
        except CorruptTable as error:
            self.found.add(Kind.TREE, error.file, error.rule, snapshot_id=id)
            return
        for rule in unbalanced(live, changed) if is_replacement(snapshot) else ():
            self.found.add(Kind.TREE, file, rule, snapshot_id=id)
        if (parent := snapshot.parent_snapshot_id) is not None:
            self.children.setdefault(parent, []).append((id, file, own, changed))
        else:
            for rule in untold(own.slice(0, 0), own, changed):
                self.found.add(Kind.TREE, file, rule, snapshot_id=id)


def _not_its_own(root: Entries, snapshot_id: int) -> Iterator[str]:
    """Yield entries that say they came or went in this snapshot, but name another."""
    for status in (Status.ADDED, Status.DELETED):
        other = pc.and_(has_status(root, status), pc.not_equal(root["snapshot_id"], snapshot_id))
        for name in root["location"].filter(pc.fill_null(other, True))[:1]:
            yield f"{name} is {status.name}, but not by this snapshot"


def _wrong_totals(live: Entries, snapshot: Snapshot) -> Iterator[str]:
    summary = snapshot.summary or {}
    for key, real in totals(live).items():
        told = summary.get(key)
        if told is not None and told != str(real):
            yield f"{key} in the summary is {told}, but it is {real}"
