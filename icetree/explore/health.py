"""How a table is, and what `optimize` would do for it, each with its reason."""

from __future__ import annotations

from typing import Any

from icetree.explore.plain import plain
from icetree.spec.snapshot import MAIN
from icetree.table.table import Table


def health(table: Table, *, branch: str | None = None) -> dict[str, Any]:
    """Return what `optimize` tells when nothing is to be changed."""
    told = table.maintenance.optimize(branch=MAIN if branch is None else branch, dry_run=True)
    found: dict[str, Any] = plain(told.as_dict())
    return found | {"text": str(told)}
