"""What commits wrote, told by the table's metadata folder."""

from __future__ import annotations

from dataclasses import dataclass, field

from icetree.explore.cost import Cost
from icetree.table.table import Table

_VERSION = ".metadata.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Metadata files that came since the last look."""

    cost: Cost
    #: How many of them are versions of the table's metadata: one a commit.
    commits: int


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Knows the files it has seen."""

    _seen: set[str] = field(default_factory=set)

    def look(self, table: Table) -> Written:
        """Return what is new."""
        store, folder = table.files.store, f"{table.location}/metadata"
        new = [file for file in store.list(folder) if file.location not in self._seen]
        self._seen.update(file.location for file in new)
        return Written(
            cost=Cost(files=len(new), size_bytes=sum(file.size_bytes for file in new)),
            commits=sum(file.location.endswith(_VERSION) for file in new),
        )
