"""The ref verbs of a table without their commit: what they would do, and what they would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from icetree.spec.apply.apply import apply
from icetree.spec.metadata.snapshot import MAIN
from icetree.table.commit.options import branch_of
from icetree.table.evolve.refs import References

if TYPE_CHECKING:
    from icetree.catalog.base import TableName
    from icetree.spec.metadata.metadata import TableMetadata
    from icetree.spec.metadata.update import Update
    from icetree.table.table import Table


class Rehearsal(References):
    """Takes a table's ref verbs and commits nothing; `metadata` is then as it would be.

    A snapshot that would be made has no id: then `picked` is the one whose changes it would have.
    """

    def __init__(self, table: Table) -> None:
        self.files = table.files
        self.picked: int | None = None
        self._metadata = table.metadata
        self._name = table.name

    @property
    @override
    def name(self) -> TableName:
        return self._name

    @property
    @override
    def metadata(self) -> TableMetadata:
        return self._metadata

    @override
    def _newer(self) -> None:
        """See nothing newer: what is rehearsed is about what the table was seen as."""

    @override
    def update_metadata(self, *updates: Update) -> Any:
        """Apply updates to what is held here."""
        at_ms = self._metadata.last_updated_ms
        self._metadata = apply(self._metadata, updates, at_ms=at_ms)

    @override
    def transaction(self, *, branch: str | None = MAIN, **how: Any) -> Any:
        """Return what takes a pick as a transaction does."""
        branch_of(branch, self.metadata, create=False)
        return _Picking(self)


class _Picking:
    """A transaction that comes to nothing: it notes which snapshot it is about."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def pick(self, snapshot_id: int) -> None:
        self._rehearsal.picked = snapshot_id

    def apply(self, *_: object) -> None:
        pass

    note = rely_on = commit = apply
