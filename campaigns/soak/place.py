"""Where the table is, as every process can reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import icetree
from icetree.table.lake import Lake

TABLE = "db.t"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A catalog, a warehouse, and a folder of this machine for journals."""

    folder: Path
    uri: str = field(repr=False)
    warehouse: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: The share of calls that the store and the catalog fail by themselves.
    share: float = 0.0

    def open(self) -> Lake:
        # A small cache is full soon: what grows after that is a leak.
        small = {"io.manifest.cache.max-total-bytes": 4 << 20}
        return icetree.connect(
            self.uri, warehouse=self.warehouse, properties={**self.properties, **small}
        )

    def journals(self) -> list[Path]:
        return sorted(self.folder.glob("*.journal"))

    def at(self, uri: str | None = None, warehouse: str | None = None, **properties: str) -> Place:
        """Return the place elsewhere, or reached otherwise."""
        return replace(
            self,
            uri=uri or self.uri,
            warehouse=warehouse or self.warehouse,
            properties={**self.properties, **properties},
        )

    def failing(self, share: float) -> Place:
        """Return the place with calls that fail by themselves."""
        return replace(self, share=share)
