"""What a writer does next with the files it has, and how it is committed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from campaigns.entries import data_file, merged, place_of, vector
from icetree.table.table import Table

#: How many live files a writer keeps; beyond that it deletes or rewrites.
_MOST_FILES: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one commit means to do; its key is in the journal before it starts."""

    key: str
    kind: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def after(self, mine: list[str]) -> list[str]:
        """Return a writer's files once the change is done."""
        gone = set() if self.kind in {"append", "row delta"} else set(self.removed)
        return [each for each in mine if each not in gone] + list(self.added)


def choose_change(choose: random.Random, key: str, mine: list[str]) -> Change:
    """Decide what to do next with the files a writer has."""
    kinds = ["append", "append", "row delta", "delete", "rewrite"]
    kind = choose.choice(kinds if len(mine) < _MOST_FILES else ["delete", "rewrite"])
    if kind == "append" or len(mine) < 4:
        count = 50 if choose.random() < 0.02 else choose.randint(1, 3)
        return Change(key=key, kind="append", added=tuple(f"{key}-{i}" for i in range(count)))
    if kind == "row delta":
        return Change(key=key, kind=kind, added=(key,), removed=(choose.choice(mine),))
    gone = tuple(choose.sample(mine, min(len(mine), 12 if len(mine) > _MOST_FILES else 2)))
    return Change(key=key, kind=kind, added=(key,) if kind == "rewrite" else (), removed=gone)


def carry_out(table: Table, change: Change) -> None:
    """Commit a change; under its key it can be tried any number of times."""
    added = [data_file(name) for name in change.added]
    removed = [place_of(name) for name in change.removed]
    how: dict[str, Any] = {"key": change.key, "isolation": "snapshot"}
    match change.kind:
        case "append":
            table.append_files(added, **how)
        case "row delta":
            table.row_delta([*added, vector(f"{change.key}-dv", of=change.removed[0])], **how)
        case "delete":
            table.delete_files(removed, **how)
        case "rewrite":
            one = merged(table, change.removed, into=change.key)
            table.rewrite(removed, [one], **how)
