"""Roots of snapshots, decoded once for all that is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Entries
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape

#: Decoded roots that are kept; those beyond are decoded again.
_KEPT_BYTES: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class Roots:
    """Reads roots of a table, and keeps as many as there is room for."""

    files: TableFiles
    shape: Shape
    _kept: dict[int, Entries] = field(default_factory=dict)
    _left_bytes: int = field(default_factory=lambda: _KEPT_BYTES)

    def of(self, snapshot: Snapshot) -> Entries:
        """Return a snapshot's root; NotFound or CorruptTable where it cannot be told."""
        known = self._kept.get(snapshot.snapshot_id)
        if known is not None:
            return known
        root = self.files.root(snapshot, self.shape)
        if root.nbytes <= self._left_bytes:
            self._left_bytes -= root.nbytes
            self._kept[snapshot.snapshot_id] = root
        return root
