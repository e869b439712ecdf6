"""Trees of another writer that are made by hand, one entry at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from icetree.table.table import Table
from tests.foreign import blobs
from tests.foreign.columns import Json, Row
from tests.foreign.drawn import draw_rows, plain_layout
from tests.foreign.dress import PLAIN, Dress
from tests.foreign.files import Shop
from tests.foreign.history import metadata
from tests.foreign.judge import open_table
from tests.foreign.layout import Layout
from tests.foreign.model import File, rows_of
from tests.foreign.tree import (
    ADDED,
    DATA_LEAF,
    DELETED,
    EXISTING,
    Leaf,
    Names,
    Vector,
    aggregate,
    counts,
    encode_leaf,
    file_entry,
    leaf_entry,
    vector_entry,
)
from tests.foreign.world import TABLE, World
from tests.foreign.writer import Snapshot, Writer


@dataclass(slots=True)
class Hand:
    """Makes snapshots of entries that are given, with nothing left to chance but the rows."""

    layout: Layout = field(default_factory=plain_layout)
    dress: Dress = PLAIN
    writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        rng = Random(1)
        shop = Shop(table=TABLE, layout=self.layout, rng=rng, stored={})
        names = Names(table=TABLE, rng=rng, full=0.0)
        self.writer = Writer(rng=rng, layout=self.layout, shop=shop, names=names)

    @property
    def number(self) -> int:
        """The number of the next snapshot: its id and its sequence number."""
        return len(self.writer.snapshots) + 1

    def data(self, *, number: int | None = None, first_row_id: int = 0, spec_id: int = 0) -> File:
        """Return a data file that a snapshot adds, the next one unless told."""
        file = self.writer.shop.new_data(spec_id)
        file.snapshot_id = file.sequence_number = number or self.number
        file.file_sequence_number, file.first_row_id = file.sequence_number, first_row_id
        return file

    def leaf(
        self, *entries: tuple[File, int], content: int = DATA_LEAF, owner: Leaf | None = None
    ) -> Leaf:
        """Return a leaf that the next snapshot writes."""
        number = self.number
        leaf = Leaf(
            content=content,
            location="",
            format="parquet",
            entries=list(entries),
            snapshot_id=number,
            sequence_number=number,
            owner=owner,
        )
        stored = encode_leaf(leaf, self.layout, self.writer.names, self.dress, {})
        leaf.location = self.writer.shop.store("metadata", "-leaf.parquet", stored)
        leaf.size = len(stored)
        leaf.counts = counts(leaf, Random(0))
        leaf.stats = aggregate(leaf, self.layout, Random(0))
        return leaf

    def file_row(self, file: File, status: int = ADDED, **tracking: Any) -> Json:
        return file_entry(file, status, self.writer.names, tracking=tracking)

    def leaf_row(self, leaf: Leaf, status: int = EXISTING, **tracking: Any) -> Json:
        return leaf_entry(leaf, status, 0, self.writer.names, **tracking)

    def vector_row(
        self, leaf: Leaf, positions: set[int], status: int = ADDED, added: set[int] | None = None
    ) -> Json:
        vector = Vector(
            positions=frozenset(positions), snapshot_id=self.number, sequence_number=self.number
        )
        change = None if added is None else blobs.bitmap(added)
        return vector_entry(leaf, vector, status, 0, self.writer.names, change)

    def snapshot(self, rows: list[Json], live: list[File], *, operation: str = "append") -> None:
        """Add a snapshot of these root entries, which should leave these files."""
        number, first = self.number, self.writer.next_row_id
        ends = [(each.first_row_id or 0) + each.record_count for each in live]
        self.writer.next_row_id = max([first, *ends])
        self.writer.sequence_number = number
        self.writer.clock_ms += 1000
        self.writer.snapshots.append(
            Snapshot(
                id=number,
                parent=number - 1 or None,
                sequence_number=number,
                at_ms=self.writer.clock_ms,
                operation=operation,
                root=self.writer.store_root(rows, self.dress),
                first_row_id=first,
                added_rows=self.writer.next_row_id - first,
                live=tuple(live),
            )
        )

    def world(self) -> World:
        place = metadata(self.writer, Random(0))
        return World(
            seed=0, writer=self.writer, metadata_location=place, stored=self.writer.shop.stored
        )

    def open(self) -> Table:
        return open_table(self.world())


def findings(table: Table) -> str:
    """Return what `verify` has to say."""
    return "\n".join(map(str, table.verify(deep=True).findings))


def file_of_rows(
    hand: Hand, ids: list[int | None], ages: list[int | None] | None = None, *, first: int = 0
) -> File:
    """Return a file that the next snapshot adds, of rows that say who they are."""
    rows = draw_rows(Random(3), 100 + first, len(ids), hand.layout, 0)
    for at, row in enumerate(rows):
        row["_row_id"] = ids[at]
        row["_last_updated_sequence_number"] = ages[at] if ages else None
    file = hand.writer.shop.data(rows, 0, lineage=True)
    file.snapshot_id = file.sequence_number = file.file_sequence_number = hand.number
    file.first_row_id = first
    return file


def plain_file(hand: Hand, count: int, *, first: int = 0) -> File:
    """Return a file that the next snapshot adds, of rows that get their ids from it."""
    file = hand.writer.shop.data(draw_rows(Random(2), first, count, hand.layout, 0), 0)
    file.snapshot_id = file.sequence_number = file.file_sequence_number = hand.number
    file.first_row_id = first
    return file


def vector_of(hand: Hand, file: File, gone: set[int]) -> File:
    """Return a DV that the next snapshot adds, which deletes these rows of a file."""
    [vector] = hand.writer.shop.vectors({0: (file, frozenset(gone))})
    vector.snapshot_id = vector.sequence_number = vector.file_sequence_number = hand.number
    return vector


def replacement(
    change: Callable[[list[Row]], None], *, vector: bool = False, lineage: bool = True
) -> Table:
    """Return a table of two snapshots: the second rewrites the only file, more or less the same."""
    hand = Hand()
    old = plain_file(hand, 4)
    files = [old, vector_of(hand, old, {2})] if vector else [old]
    hand.snapshot(list(map(hand.file_row, files)), files)
    rows = rows_of(files, hand.layout)
    change(rows)
    new = hand.writer.shop.data(rows, 0, lineage=lineage)
    new.snapshot_id = new.file_sequence_number = hand.number
    new.sequence_number, new.first_row_id = 1, 4
    gone = [hand.file_row(each, DELETED, snapshot_id=2) for each in files]
    hand.snapshot([*gone, hand.file_row(new)], [new], operation="replace")
    return hand.open()


def short(file: File) -> str:
    """Return where a file is within its table."""
    return file.location.removeprefix("memory://foreign/db/t/")
