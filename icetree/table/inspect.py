"""What a table is made of, as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icetree.table.table import Table


class Inspect:
    """Gives Arrow tables; column names follow Iceberg's metadata tables."""

    def __init__(self, table: Table) -> None:
        self._table = table
