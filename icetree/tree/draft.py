"""What a commit starts from, is stamped with, and results in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icetree.spec.entry.entry import Entries, empty
from icetree.tree.changes import Changes
from icetree.tree.leaf import NewFile, NewLeaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a commit starts from: the tree of the snapshot it will follow."""

    root: Entries
    next_row_id: int
    #: The parent snapshot's summary; None when there is no parent.
    summary: Mapping[str, str] | None
    root_file: str = "root"


#: What the first commit of a table starts from.
NO_HEAD = Head(root=empty(), next_row_id=0, summary=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Who commits: the numbers of the snapshot to be, and a prefix for its files' names."""

    snapshot_id: int
    sequence_number: int
    commit_id: str
    #: Tells the files of one attempt from those of the next.
    attempt: int = 0

    def name(self, kind: str, number: int) -> str:
        """Return the name of a metadata file of this attempt."""
        return f"metadata/{self.commit_id}-{self.attempt}-{kind}{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A change whose many new files are in leaves, ready for any head."""

    changes: Changes
    #: New entries that go to the root itself.
    in_root: Entries
    leaves: tuple[NewLeaf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The next root and every file it needs, none of it stored yet."""

    root: Entries
    root_bytes: bytes
    #: Leaves and Puffin files made for this head; those of `Prepared` are not repeated.
    files: tuple[NewFile, ...]
    summary: dict[str, str]
    first_row_id: int
    added_rows: int

    @property
    def next_row_id(self) -> int:
        """The table's next row id once the draft is its head."""
        return self.first_row_id + self.added_rows
