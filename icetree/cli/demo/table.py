"""The demo's table: a folder of metadata files, grown one commit after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

from icetree.codec import bitmap, manifest, puffin
from icetree.spec.entry import stats
from icetree.spec.entry.entry import ROOT, Content, Entries, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes
from icetree.tree.diff.diff import Diff, diff
from icetree.tree.draft import NO_HEAD, Head, Stamp
from icetree.tree.files import FileReader
from icetree.tree.grow.grow import grow, prepare
from icetree.tree.leaf import NewFile
from icetree.tree.live import live_files
from icetree.tree.policy import Policy

_DAY: Final = 5
#: The column of entries that says which day a file is of.
DAY_LOWER: Final = stats.column(_DAY, "lower")

SHAPE: Final = Shape(
    schema=Schema(
        NestedField(1, "order_id", LongType(), required=True),
        NestedField(2, "ts", TimestampType(), required=True),
        NestedField(3, "country", StringType(), required=False),
        NestedField(4, "amount", DoubleType(), required=False),
    ),
    expressions={
        _DAY: Expression(
            expr_id=_DAY,
            source_ids=(2,),
            transform="day",
            name="ts_day",
            partition_field_id=1000,
        )
    },
    specs={0: (), 1: (_DAY,)},
    default_spec_id=1,
)

#: Thresholds far below the defaults, so that a small table already shows what they do.
POLICY: Final = Policy(
    root_max_data_entries=12,
    root_max_delete_entries=4,
    leaf_max_entries=48,
    compact_removed_percent=30,
    affinity_min_entries=2,
)

FIRST_DAY: Final = date(2026, 3, 1)
_ROWS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit, and what it took."""

    number: int
    what: str
    changes: Changes
    head: Head
    #: Metadata files it wrote, the root last.
    written: tuple[NewFile, ...]
    #: The live files as this process knew them when it committed; see `live_keys`.
    live: pa.Table

    @property
    def size_bytes(self) -> int:
        """The bytes of metadata it wrote."""
        return sum(len(file.content) for file in self.written)

    def count(self, kind: str) -> int:
        """Return how many files of a kind it wrote: `f` by flush, `c` by compaction, `m` anew."""
        return sum(file.location.rpartition("-")[2].startswith(kind) for file in self.written)


@dataclass(slots=True, kw_only=True)
class DemoTable:
    """A table in a folder; its data files are described, not written: this is about metadata."""

    folder: Path
    commits: list[Commit] = field(default_factory=list)
    _next_order: int = 0

    @property
    def head(self) -> Head:
        """The newest tree."""
        return self.commits[-1].head if self.commits else NO_HEAD

    @property
    def reader(self) -> FileReader:
        """Reads leaves from the folder."""
        return FileReader(fetch=self.fetch, shape=SHAPE)

    def fetch(self, location: str) -> bytes:
        """Return a file's bytes."""
        return (self.folder / location).read_bytes()

    def root(self, number: int) -> Entries:
        """Read the root of a snapshot from its file."""
        file = root_file(number)
        return manifest.decode(self.fetch(file), ROOT, SHAPE, file=file)

    def diffs(self) -> Iterator[Diff]:
        """Yield what each commit changed, as its tree tells it."""
        for each in self.commits:
            yield diff(each.head.root, self.reader, root_file=each.head.root_file)

    def commit(self, what: str, changes: Changes) -> Commit:
        """Apply a change and store what that takes."""
        number = len(self.commits) + 1
        stamp = Stamp(snapshot_id=number, sequence_number=number, commit_id=f"{number:02d}")
        prepared = prepare(changes, SHAPE, POLICY, commit_id=stamp.commit_id)
        for leaf in prepared.leaves:
            self._write(leaf.file)
        draft = grow(self.head, prepared, stamp, SHAPE, POLICY, self.reader)
        root = NewFile(location=root_file(number), content=draft.root_bytes)
        for file in (*draft.files, root):
            self._write(file)
        head = Head(
            root=draft.root,
            next_row_id=draft.next_row_id,
            summary=draft.summary,
            root_file=root.location,
        )
        made = Commit(
            number=number,
            what=what,
            changes=changes,
            head=head,
            written=(*(leaf.file for leaf in prepared.leaves), *draft.files, root),
            live=live_keys(live_files(draft.root, self.reader)),
        )
        self.commits.append(made)
        return made

    # --- new files -------------------------------------------------------------------------

    def orders(self, day: int, count: int = 1) -> list[Entry]:
        """Return new data files with orders of one day, counted from the first."""
        return [self._file(FIRST_DAY + timedelta(days=day)) for _ in range(count)]

    def _file(self, day: date) -> Entry:
        first = self._next_order
        self._next_order += _ROWS
        morning = datetime.combine(day, time(6))
        evening = morning + timedelta(hours=14)
        return Entry(
            location=f"data/{day}/orders-{first // _ROWS:03d}.parquet",
            partition_spec_id=1,
            record_count=_ROWS,
            file_size_in_bytes=24_000,
            stats={
                1: _known(first, first + _ROWS - 1),
                2: _known(morning, evening),
                3: _known("AT", "US"),
                4: _known(0.5, 990.0),
                _DAY: _known(day, day),
            },
        )

    def vector(self, data_file: Entry, rows: int, version: int) -> Entry:
        """Write a data DV that removes the first rows of a file, and return its entry."""
        assert data_file.location is not None
        stem = data_file.location.removesuffix(".parquet")
        stored = puffin.write(
            [puffin.dv_blob(bitmap.of(range(rows)), referenced_data_file=data_file.location)]
        )
        location = f"{stem}-dv{version}.puffin"
        self._write(NewFile(location=location, content=stored.data))
        return Entry(
            content_type=Content.POSITION_DELETES,
            location=location,
            file_format="puffin",
            dv_offset=stored.blobs[0].offset,
            dv_size_in_bytes=stored.blobs[0].length,
            file_size_in_bytes=len(stored.data),
            record_count=rows,
            referenced_file=data_file.location,
            partition_spec_id=1,
            stats={_DAY: data_file.stats[_DAY]},
        )

    def _write(self, file: NewFile) -> None:
        path = self.folder / file.location
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)


def root_file(number: int) -> str:
    """Return where the root of a snapshot is."""
    return f"metadata/root-{number:02d}.parquet"


def entries(files: list[Entry]) -> Entries:
    """Return files as columns."""
    return to_table(files, SHAPE)


def live_keys(files: Entries) -> pa.Table:
    """Return what says which files these are, in a fixed order."""
    named = files.select(["content_type", "location", "referenced_file", "record_count"])
    return named.take(pc.sort_indices(named["location"])).combine_chunks()


def _known(lower: object, upper: object) -> FieldStats:
    return FieldStats(lower=lower, upper=upper, tight=True, values=_ROWS, nulls=0)
