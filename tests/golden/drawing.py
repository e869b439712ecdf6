"""Trees written the way the proposal draws them.

One line is one entry: `D4 ADDED`, `DV1 ADDED [5, 12] -> D1`, `M1 EXISTING`,
`DVM1 EXISTING -> M1` (affiliated), `MDV1 ADDED [0, 1] diff [1] -> M1`. The letters of a name
say what it is: D data file, DV data DV, E equality deletes, M or DM data manifest, DVM delete
manifest, MDV manifest DV. Numbers in brackets are positions; `diff` are those this snapshot
added. `History` turns lines into entries and entries back into the same lines:

    history = History()
    one = history.snapshot("M1 ADDED", M1=["D1 ADDED", "D2 ADDED"])
    two = history.snapshot("M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1")
    assert history.draw(two.root) == ["M1 EXISTING", "MDV1 ADDED [1] diff [1] -> M1"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.codec import bitmap
from icetree.codec.inherit import Inherited, inherit
from icetree.spec.entry.entry import (
    BASE_SCHEMA,
    POSITION,
    Content,
    Entries,
    Entry,
    Status,
    empty,
    from_table,
    to_table,
)
from icetree.spec.schema.shape import Shape
from icetree.tree.diff.diff import Diff, diff
from icetree.tree.plan.row_changes import RowTasks, Tree, row_tasks
from icetree.tree.reading import Keep, Leaf

SHAPE = Shape(schema=Schema(NestedField(1, "id", LongType(), required=True)))
ROWS_PER_FILE = 100

_KINDS = {
    "D": Content.DATA,
    "DV": Content.POSITION_DELETES,
    "E": Content.EQUALITY_DELETES,
    "M": Content.DATA_MANIFEST,
    "DM": Content.DATA_MANIFEST,
    "DVM": Content.DELETE_MANIFEST,
    "MDV": Content.MANIFEST_DV,
}
_LETTERS = {content: letters for letters, content in _KINDS.items() if letters != "DM"}
_LINE = re.compile(
    r"(?P<name>(?P<kind>[A-Z]+)\d+) (?P<status>EXISTING|ADDED|DELETED)"
    r"(?: \[(?P<positions>[\d, ]*)\])?(?: diff \[(?P<diff>[\d, ]*)\])?(?: -> (?P<refers>\w+))?"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One drawn entry."""

    name: str
    content: Content
    status: Status
    positions: tuple[int, ...] | None = None
    diff: tuple[int, ...] | None = None
    refers: str | None = None

    @classmethod
    def parse(cls, text: str) -> Line:
        """Read a line; one that is not in the notation is a mistake in the test."""
        found = _LINE.fullmatch(text)
        if found is None or found["kind"] not in _KINDS:
            raise ValueError(f"not a drawn entry: {text!r}")
        return cls(
            found["name"],
            _KINDS[found["kind"]],
            Status[found["status"]],
            _numbers(found["positions"]),
            _numbers(found["diff"]),
            found["refers"],
        )

    def __str__(self) -> str:
        text = f"{self.name} {self.status.name}"
        if self.positions is not None:
            text += f" {list(self.positions)}"
        if self.diff is not None:
            text += f" diff {list(self.diff)}"
        return text if self.refers is None else f"{text} -> {self.refers}"


def _numbers(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else tuple(int(each) for each in text.split(",") if each.strip())


@dataclass(slots=True)
class DrawnReader:
    """Leaves kept as they are on disk, tracking not inherited; remembers which were read."""

    leaves: dict[str, Entries] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    def leaf(
        self,
        leaf: Leaf,
        *,
        columns: Collection[str] | None = None,
        keep: Keep | None = None,  # noqa: ARG002 - one row group: never worth skipping
    ) -> Entries:
        """Return the leaf's entries, tracking inherited."""
        self.reads.append(leaf.location)
        stored = self.leaves[leaf.location]
        entries = inherit(
            stored,
            Inherited(
                content_type=leaf.content_type,
                partition_spec_id=leaf.partition_spec_id,
                snapshot_id=leaf.snapshot_id,
                sequence_number=leaf.sequence_number,
                first_row_id=leaf.first_row_id,
            ),
        )
        entries = entries.append_column(POSITION, pa.array(range(entries.num_rows), pa.int64()))
        if columns is None:
            return entries
        wanted = [name for name in entries.column_names if name in columns]
        missing = [name for name in columns if name not in entries.column_names]
        entries = entries.select(wanted)
        for name in missing:
            type = BASE_SCHEMA.field(name).type if name in BASE_SCHEMA.names else pa.null()
            entries = entries.append_column(name, pa.nulls(entries.num_rows, type))
        return entries

    def blob(
        self,
        location: str,
        *,
        offset: int,
        size_bytes: int,
        key: bytes | None = None,  # noqa: ARG002
    ) -> bytes:
        """Return a range of a Puffin file."""
        return self.blobs[location][offset : offset + size_bytes]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A drawn snapshot; its id is also its sequence number."""

    id: int
    root: Entries
    reader: DrawnReader
    #: The one drawn just before, in the same history.
    parent: Snapshot | None = None

    @property
    def tree(self) -> Tree:
        """The snapshot as row changes want it."""
        return Tree(root=self.root, reader=self.reader)

    def diff(self) -> Diff:
        """Return the files that came and went."""
        return diff(self.root, self.reader)

    def row_tasks(self) -> RowTasks:
        """Return the tasks that read the rows which came and went."""
        parent = self.parent or Snapshot(0, empty(), self.reader)
        return row_tasks(
            self.diff(), before=lambda: parent.tree, after=lambda: self.tree, shape=SHAPE
        )


@dataclass(slots=True)
class History:
    """Snapshots of one table, drawn one after the other; leaves and files are drawn once."""

    reader: DrawnReader = field(default_factory=DrawnReader)
    snapshot_id: int = 0
    next_row_id: int = 0
    latest: Snapshot | None = None
    #: What each drawn name was when it was first drawn.
    known: dict[str, Entry] = field(default_factory=dict)
    #: Positions of data DVs: their bytes are no part of a tree.
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: Names of leaves, by location, and of manifest DVs, by (leaf, positions).
    names: dict[object, str] = field(default_factory=dict)

    def snapshot(self, *root: str, **leaves: Iterable[str]) -> Snapshot:
        """Draw the next snapshot: lines of its root, and of leaves not drawn before."""
        self.snapshot_id += 1
        lines = {name: [Line.parse(line) for line in drawn] for name, drawn in leaves.items()}
        entries = [self._entry(line, lines) for line in map(Line.parse, root)]
        found = Snapshot(self.snapshot_id, to_table(entries, SHAPE), self.reader, self.latest)
        self.latest = found
        return found

    def draw(self, entries: Entries) -> list[str]:
        """Return the lines of a root or leaf; leaves and manifest DVs not seen get new names."""
        return [str(self._line(each)) for each in from_table(entries)]

    def draw_leaf(self, location: str) -> list[str]:
        """Return the lines of a leaf that the reader has."""
        return self.draw(self.reader.leaves[location])

    # --- lines to entries ------------------------------------------------------------------

    def _entry(self, line: Line, leaves: dict[str, list[Line]]) -> Entry:
        if line.content == Content.MANIFEST_DV:
            return self._manifest_dv(line)
        if line.content in (Content.DATA_MANIFEST, Content.DELETE_MANIFEST):
            return self._leaf(line, leaves)
        found = self._tracked(line, self._file(line))
        if found.content_type == Content.DATA and found.first_row_id is None:
            found = replace(found, first_row_id=self._take_rows(found.record_count))
        self.known.setdefault(line.name, found)
        return found

    def _tracked(self, line: Line, found: Entry) -> Entry:
        """Give an entry of the root explicit tracking: its own when it was drawn before."""
        first = self.known.get(line.name, found)
        born = self.snapshot_id if first.sequence_number is None else first.sequence_number
        is_own = line.status != Status.EXISTING or first.snapshot_id is None
        return replace(
            first,
            status=line.status,
            snapshot_id=self.snapshot_id if is_own else first.snapshot_id,
            sequence_number=born,
            file_sequence_number=born,
        )

    def _file(self, line: Line) -> Entry:
        common = Entry(content_type=line.content, location=line.name, file_size_in_bytes=1000)
        if line.content == Content.DATA:
            return replace(common, record_count=ROWS_PER_FILE)
        if line.content == Content.EQUALITY_DELETES:
            return replace(common, record_count=1, equality_ids=[1])
        positions = self.rows.setdefault(line.name, line.positions or ())
        return replace(
            common,
            file_format="puffin",
            dv_offset=4,
            dv_size_in_bytes=50,
            record_count=len(positions) or 1,
            referenced_file=line.refers or self.known[line.name].referenced_file,
        )

    def _manifest_dv(self, line: Line) -> Entry:
        assert line.refers is not None
        assert line.positions is not None
        positions = bitmap.of(line.positions)
        self.names[line.refers, tuple(positions)] = line.name
        change = None if line.diff is None else bitmap.encode(bitmap.of(line.diff))
        found = Entry(
            content_type=Content.MANIFEST_DV,
            file_format="puffin",
            dv_inline_content=bitmap.encode(positions),
            record_count=len(positions),
            referenced_file=line.refers,
        )
        found = self._tracked(line, found)
        self.known.setdefault(line.name, found)
        return replace(found, dv_added_positions=change)

    def _leaf(self, line: Line, leaves: dict[str, list[Line]]) -> Entry:
        if line.name not in self.known:
            stored = [self._stored(each) for each in leaves[line.name]]
            self.reader.leaves[line.name] = to_table(stored, SHAPE)
            self.names[line.name] = line.name
            is_data = line.content == Content.DATA_MANIFEST
            entry = Entry(
                content_type=line.content,
                location=line.name,
                record_count=len(stored),
                file_size_in_bytes=1000,
                first_row_id=self.next_row_id if is_data else None,
                min_sequence_number=min(
                    (e.sequence_number or self.snapshot_id for e in stored), default=0
                ),
                referenced_file=line.refers,
                **_counts(stored),
            )
            self._remember(stored)
            self.known[line.name] = self._tracked(line, entry)
        found = self._tracked(line, self.known[line.name])
        return replace(found, referenced_file=line.refers)

    def _stored(self, line: Line) -> Entry:
        """Return an entry as a leaf holds it: what is ADDED there inherits its tracking."""
        if line.status == Status.ADDED:
            return replace(self._file(line), status=Status.ADDED)
        first = self.known[line.name]
        return replace(
            first,
            status=line.status,
            snapshot_id=None if line.status == Status.DELETED else first.snapshot_id,
        )

    def _remember(self, stored: list[Entry]) -> None:
        for each in stored:
            if each.status == Status.ADDED:
                assert each.location is not None
                is_data = each.content_type == Content.DATA
                self.known[each.location] = replace(
                    each,
                    snapshot_id=self.snapshot_id,
                    sequence_number=self.snapshot_id,
                    file_sequence_number=self.snapshot_id,
                    first_row_id=self._take_rows(each.record_count) if is_data else None,
                )

    def _take_rows(self, size: int) -> int:
        self.next_row_id += size
        return self.next_row_id - size

    # --- entries to lines ------------------------------------------------------------------

    def _line(self, entry: Entry) -> Line:
        content, status = Content(entry.content_type), Status(entry.status)
        refers = entry.referenced_file
        if content == Content.MANIFEST_DV:
            assert refers is not None
            assert entry.dv_inline_content is not None
            positions = tuple(bitmap.decode(entry.dv_inline_content, file="drawing"))
            diff = entry.dv_added_positions
            return Line(
                self._name((refers, positions), content),
                content,
                status,
                positions,
                None if diff is None else tuple(bitmap.decode(diff, file="drawing")),
                self._name(refers, Content.DATA_MANIFEST),
            )
        assert entry.location is not None
        if content in (Content.DATA_MANIFEST, Content.DELETE_MANIFEST):
            target = None if refers is None else self._name(refers, Content.DATA_MANIFEST)
            return Line(self._name(entry.location, content), content, status, refers=target)
        return Line(
            entry.location, content, status, self.rows.get(entry.location) or None, None, refers
        )

    def _name(self, key: object, content: Content) -> str:
        if key not in self.names:
            taken = set(self.names.values())
            numbered = (f"{_LETTERS[content]}{number}" for number in count(1))
            self.names[key] = next(name for name in numbered if name not in taken)
        return self.names[key]


def _counts(stored: list[Entry]) -> dict[str, int]:
    found = {}
    for status in Status:
        rows = [each.record_count for each in stored if each.status == status]
        found[f"{status.name.lower()}_files_count"] = len(rows)
        found[f"{status.name.lower()}_rows_count"] = sum(rows)
    return found


def tree(*root: str, **leaves: Iterable[str]) -> Snapshot:
    """Draw a single snapshot."""
    return History().snapshot(*root, **leaves)
