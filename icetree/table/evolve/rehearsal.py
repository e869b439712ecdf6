"""The ref verbs of a table without their commit: what `--yes` would do, and what it would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from icetree.spec.apply import apply
from icetree.table.evolve.refs import References

if TYPE_CHECKING:
    from icetree.spec.metadata import TableMetadata
    from icetree.spec.update import Update
    from icetree.table.table import Table


class Rehearsal(References):
    """Takes a table's ref verbs and commits nothing; `metadata` is then as it would be."""

    def __init__(self, table: Table) -> None:
        self.files = table.files
        self._metadata = table.metadata

    @property
    @override
    def metadata(self) -> TableMetadata:
        return self._metadata

    @override
    def update_metadata(self, *updates: Update) -> Any:
        """Apply updates to what is held here."""
        at_ms = self._metadata.last_updated_ms
        self._metadata = apply(self._metadata, updates, at_ms=at_ms)
