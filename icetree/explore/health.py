"""How a table is, and what `optimize` would do for it, each with its reason."""

from __future__ import annotations

from typing import Any, Final

from icetree.errors import Unsupported
from icetree.explore.plain import plain
from icetree.spec.metadata.snapshot import MAIN
from icetree.table.table import Table

#: Files that are looked at while somebody waits.
_FILES: Final = 100_000


def health(table: Table, *, branch: str | None = None) -> dict[str, Any]:
    """Return what `optimize` tells when nothing is to be changed.

    It reads the stats of every file, so of a table of very many it is not told.
    """
    head = table.state.head(MAIN if branch is None else branch)
    files = (head.summary or {}).get("total-data-files", "0") if head is not None else "0"
    if files.isascii() and files.isdigit() and int(files[:18]) > _FILES:
        raise Unsupported(
            f"{int(files):,} files are too many to look at for a page: "
            f"`icetree optimize {table.name}` tells what it would do"
        )
    told = table.maintenance.optimize(branch=MAIN if branch is None else branch, dry_run=True)
    found: dict[str, Any] = plain(told.as_dict())
    return found | {"text": str(told)}
