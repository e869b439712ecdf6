"""What a commit comes to where another moved its rows, or took some of those that it moves.

A row keeps its id. So a statement finds the rows that it deletes where a compaction carried them, and a
compaction knows which of the rows that it carried were deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from campaigns.simulate.model import Part, State
from icetree.tree.changes import Intent

#: What may find its rows again.
STATEMENTS: Final = frozenset({Intent.ROW_DELTA, Intent.DELETE_BY_FILTER, Intent.OVERWRITE_FILES})


class Lost(Exception):
    """A row that a commit deletes is not there any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A commit as it lands."""

    parts: tuple[Part, ...]
    #: Rows that a compaction carried, and that are marked as deleted in its new files.
    marked: frozenset[int] = frozenset()
    #: Rows that it carried, and that equality deletes have taken.
    erased: frozenset[int] = frozenset()


def carried(parts: tuple[Part, ...], base: State, now: State) -> Carried:
    """Return what a commit made on one state comes to on another; raise `Lost` where it cannot be."""
    marked, erased = set[int](), set[int]()
    for part in parts:
        if part.intent is Intent.REWRITE:
            for name in part.removed:
                for at, row in base.live_in(name):
                    if name not in now.files or at in now.gone.get(name, ()):
                        marked.add(row.row_id)
                    elif at in now.erased.get(name, ()):
                        erased.add(row.row_id)
    places = {row.row_id: (file.name, at) for file, at, row in now.live()}
    return Carried(
        parts=tuple(_landed(part, base, now, places) for part in parts),
        marked=frozenset(marked),
        erased=frozenset(erased),
    )


def _landed(part: Part, base: State, now: State, places: Mapping[int, tuple[str, int]]) -> Part:
    if part.intent is Intent.REWRITE:
        return replace(part, removed=part.removed & now.files.keys())
    moved = (part.removed | part.vectors.keys()) - now.files.keys()
    if part.intent not in STATEMENTS or not moved:
        return part
    vectors = {name: {*at} for name, at in part.vectors.items() if name not in moved}
    for name in sorted(moved):
        chosen = part.vectors.get(name)
        for at, row in base.live_in(name):
            if chosen is not None and at not in chosen:
                continue
            if row.row_id not in places:
                raise Lost(f"row {row.row_id} of {name}")
            file, position = places[row.row_id]
            vectors.setdefault(file, set()).add(position)
    return replace(
        part,
        removed=part.removed - moved,
        vectors={name: frozenset(at) for name, at in vectors.items()},
    )
