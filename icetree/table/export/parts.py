"""Leaves in parts: their twins hold so many positions each, and are told by which of them are gone.

Who removes a file from a large leaf changes one part of it. All others have the twins that they had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from pyroaring import BitMap

#: So many positions have one twin: it is made in less than a tenth of a second.
PART: Final = 2048
#: So much of a hash tells two things apart that lie in one folder.
_LENGTH: Final = 20


def hashed(*parts: bytes) -> str:
    """Return what tells some bytes from all others, in a file's name."""
    found = hashlib.sha256()
    for each in parts:
        found.update(len(each).to_bytes(8, "big") + each)
    return found.hexdigest()[:_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Entries of a leaf by their positions, but for those that are gone."""

    #: The leaf's location, hashed.
    leaf: str
    number: int
    #: The positions of it that are gone, hashed; empty where none is.
    gone: str = ""

    def __str__(self) -> str:
        return f"{self.leaf}-{self.number}" + (f"_{self.gone}" if self.gone else "")

    @classmethod
    def told(cls, leaf: str, rest: str) -> Part | None:
        """Return the part that two pieces of a name tell of, as `str` writes them; None for none."""
        number, _, gone = rest.partition("_")
        return cls(leaf=leaf, number=int(number), gone=gone) if number.isdecimal() else None

    @property
    def start(self) -> int:
        """The first of its positions."""
        return self.number * PART

    @property
    def end(self) -> int:
        """The position after its last."""
        return self.start + PART


@lru_cache(maxsize=4096)
def _key(leaf: str) -> str:
    return hashed(leaf.encode())


def parts_of(leaf: str, record_count: int, removed: BitMap | None) -> Iterator[Part]:
    """Yield the parts of a leaf of so many entries, in order, of which something may be left."""
    key, marks = _key(leaf), _marks(removed)
    for number in range(max(1, -(-record_count // PART))):
        gone = marks.get(number)
        if gone is None:
            yield Part(leaf=key, number=number)
        elif len(gone) < min(PART, record_count - number * PART):
            yield Part(leaf=key, number=number, gone=_hash_of(gone))


def _marks(removed: BitMap | None) -> dict[int, BitMap]:
    """Return the positions that are gone, by the number of their part."""
    if not removed:
        return {}
    numbers = np.unique(np.frombuffer(removed.to_array(), np.uint32) // PART).tolist()
    return {each: removed & _range(each) for each in numbers}


def _range(number: int) -> BitMap:
    return BitMap(range(number * PART, (number + 1) * PART))


def _hash_of(gone: BitMap) -> str:
    return hashed(np.frombuffer(gone.to_array(), np.uint32).astype("<u4").tobytes())


@dataclass(slots=True)
class Twins:
    """The twins that some snapshots have, gathered leaf by leaf."""

    #: By leaf: what is gone in the snapshot that was looked at last.
    _last: dict[str, BitMap] = field(default_factory=dict)
    #: By leaf: the parts of which something is gone in every one of the snapshots.
    _worn: dict[str, BitMap] = field(default_factory=dict)
    #: By leaf, part and hash: what is gone in one of them.
    _gone: dict[tuple[str, int], dict[str, BitMap]] = field(default_factory=dict)

    def add(self, leaf: str, removed: BitMap | None) -> None:
        """Take in a live leaf of a snapshot, and which of its entries are gone there."""
        key, removed = _key(leaf), removed or BitMap()
        if self._last.get(key) == removed:
            return
        marks = _marks(removed)
        for number, gone in marks.items():
            self._gone.setdefault((key, number), {})[_hash_of(gone)] = gone
        worn = BitMap(marks)
        self._worn[key] = self._worn[key] & worn if key in self._worn else worn
        self._last[key] = removed

    def __contains__(self, part: Part) -> bool:
        if part.gone:
            return part.gone in self._gone.get((part.leaf, part.number), {})
        return self.has_leaf(part) and part.number not in self._worn[part.leaf]

    def has_leaf(self, part: Part) -> bool:
        """Tell whether the leaf of a part is in one of the snapshots."""
        return part.leaf in self._worn

    def may_need(self, part: Part, others: Twins) -> bool:
        """Tell whether these snapshots, or any after them, may have a part that others have.

        Commits remove from what is left: one may come to it from where less is gone.
        """
        if part in self or not part.gone:
            return part in self
        place = (part.leaf, part.number)
        gone = others._gone[place][part.gone]
        is_whole = Part(leaf=part.leaf, number=part.number) in self
        return is_whole or any(each <= gone for each in self._gone.get(place, {}).values())
