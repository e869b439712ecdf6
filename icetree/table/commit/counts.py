"""How many rows a commit inserted, updated and deleted, as far as that was learnt on the way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Numbers of rows; None for what only a look at the rows would tell."""

    inserted: int | None = 0
    updated: int | None = 0
    deleted: int | None = 0

    def __add__(self, more: RowCounts) -> RowCounts:
        return RowCounts(
            inserted=_sum(self.inserted, more.inserted),
            updated=_sum(self.updated, more.updated),
            deleted=_sum(self.deleted, more.deleted),
        )

    def __str__(self) -> str:
        known = {name: getattr(self, name) for name in ("inserted", "updated", "deleted")}
        return ", ".join(f"{count:,} {name}" for name, count in known.items() if count)


#: What is said of rows where nobody counted.
UNCOUNTED = RowCounts(inserted=None, updated=None, deleted=None)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
