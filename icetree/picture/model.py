"""What a picture of a tree says, before anyone decides how it looks.

A picture is small whatever the table's size: boxes have few rows, and say how many more there
are; leaves that have no box of their own share one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from icetree.spec.entry.entry import Content, Status


class Kind(Enum):
    """What a box stands for; the value is how one calls it."""

    ROOT = "Root Manifest"
    DATA_MANIFEST = "Data Manifest"
    DELETE_MANIFEST = "Delete Manifest"
    MANIFEST_DV = "Manifest DV"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a picture shows."""

    #: Entries of the root.
    root_rows: int = 14
    #: Entries of each leaf.
    leaf_rows: int = 6
    #: Leaves with a box of their own.
    leaves: int = 4
    #: Ranges of positions of each manifest DV.
    runs: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One entry of a manifest, or one range of positions of a manifest DV."""

    name: str
    status: Status
    content: Content | None = None
    #: The partition it is in, or the partitions it spans.
    partition: str = ""
    #: What it holds, in a few words.
    note: str = ""
    #: The whole location, as its manifest has it: a drawing is of the tree, wherever that is.
    title: str = ""
    #: Its ordinal in a leaf.
    position: int | None = None
    #: A manifest DV removes it.
    is_removed: bool = False
    #: Its status is of the snapshot that wrote its manifest, which is not the one that is shown.
    is_past: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether it does not count any more."""
        return self.is_removed or self.status == Status.DELETED

    @property
    def word(self) -> str:
        """What is said of it: its status, or that this was so when its leaf was written."""
        if self.is_removed:
            return "REMOVED"
        is_news = self.is_past and self.status != Status.EXISTING
        return f"was {self.status.name}" if is_news else self.status.name

    @property
    def looks(self) -> Status:
        """The status whose colour it has: what came long ago is not news."""
        if self.is_removed:
            return Status.DELETED
        return Status.EXISTING if self.is_past else self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A manifest as a small table, or a manifest DV, or many leaves at once."""

    key: str
    kind: Kind
    name: str
    #: What it holds as a whole, in a few words.
    facts: str = ""
    rows: tuple[Row, ...] = ()
    #: What its rows leave out, a line each.
    more: tuple[str, ...] = ()
    #: It stands for all leaves of its kind that have no box of their own.
    is_group: bool = False

    @property
    def title(self) -> str:
        """The heading."""
        if self.is_group or self.kind is Kind.ROOT:
            return self.name
        return f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A box that applies to another: `label` says how."""

    source: str
    target: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowArrow:
    """A row of the root that applies to another row of it, by their numbers."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A snapshot's tree, small enough to look at."""

    #: What the picture is of.
    caption: str
    root: Box
    #: Data manifests, delete manifests, and what stands for the rest of them.
    leaves: tuple[Box, ...] = ()
    vectors: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    row_arrows: tuple[RowArrow, ...] = ()

    def boxes(self) -> Iterator[Box]:
        """Yield every box, the root first."""
        yield self.root
        yield from self.vectors
        yield from self.leaves

    def onto(self, key: str) -> tuple[str, ...]:
        """Return the keys of the boxes that apply to one."""
        return tuple(arrow.source for arrow in self.arrows if arrow.target == key)
