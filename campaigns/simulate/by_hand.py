"""A tree read by hand: with Arrow's Parquet and Roaring bitmaps, and nothing of icetree's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap, BitMap64

DATA, DATA_DV, EQUALITY_DELETES, DATA_LEAF, DELETE_LEAF, MANIFEST_DV = range(6)
_ADDED, _DELETED = 1, 2
#: Columns of a manifest that are looked at, and the structs among them that are taken apart.
_COLUMNS = frozenset(
    {
        "content_type",
        "location",
        "tracking_info",
        "deletion_vector",
        "partition_spec_id",
        "record_count",
        "referenced_file",
    }
)
_STRUCTS = ("tracking_info", "deletion_vector")
#: Before and after the bitmap of a blob are its length, a magic number and a checksum.
_BEFORE, _AFTER = 8, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """A file as a tree tracks it: nothing of this ever changes, wherever its entry moves."""

    content: int
    location: str
    spec: int
    sequence: int
    rows: int
    first_row_id: int | None = None
    #: Of a DV, its data file and where it stands.
    referenced: str | None = None
    offset: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What a snapshot holds, what it says came and went by it, and every file that it needs."""

    live: frozenset[Tracked] = frozenset()
    added: frozenset[Tracked] = frozenset()
    removed: frozenset[Tracked] = frozenset()
    files: frozenset[str] = frozenset()
    #: Whether a file stands in it more than once.
    is_doubled: bool = False


_Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Met:
    """A file met on the way through a tree."""

    file: Tracked
    lives: bool
    came: bool
    went: bool


@dataclass(slots=True)
class Reader:
    """Reads trees of one store; each leaf and bitmap once, since they never change."""

    read: Callable[[str], bytes]
    _leaves: dict[str, list[_Entry]] = field(default_factory=dict)
    _vectors: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict)

    def tree(self, table: str, root: str) -> Tree:
        """Return the tree of a root, which like all files is named within the table."""
        entries = _entries(self.read(f"{table}/{root}"))
        gone = {
            each["referenced_file"]: self._bitmap(table, each)
            for each in entries
            if each["content_type"] == MANIFEST_DV and each["status"] != _DELETED
        }
        found = list(self._walk(table, entries, gone))
        live = [each.file for each in found if each.lives]
        # What came and went in one snapshot never was.
        removed = frozenset(each.file for each in found if each.went and not each.came)
        # What it removed it needs too, to tell the rows that went.
        names = {root, *(each["location"] for each in entries)}
        names |= {each.location for each in (*live, *removed)}
        return Tree(
            live=frozenset(live),
            added=frozenset(each.file for each in found if each.came and each.lives),
            removed=removed,
            files=frozenset(f"{table}/{name}" for name in names if name is not None),
            is_doubled=len(set(live)) < len(live),
        )

    def positions(self, table: str, vector: Tracked) -> frozenset[int]:
        """Return the rows that a DV marks."""
        return self._blob(f"{table}/{vector.location}", vector.offset, vector.size_bytes)

    def _walk(
        self, table: str, entries: list[_Entry], gone: dict[str, frozenset[int]]
    ) -> Iterator[_Met]:
        just_gone = {
            each["referenced_file"]: _roaring(each["added_positions"])
            for each in entries
            if each["content_type"] == MANIFEST_DV and each.get("added_positions") is not None
        }
        for each in entries:
            content, is_new, is_dead = each["content_type"], *_is(each)
            if content <= EQUALITY_DELETES:
                yield _Met(_tracked(each, each), not is_dead, is_new, is_dead)
            elif content != MANIFEST_DV and not is_dead:
                name = each["location"]
                positions, just = gone.get(name, frozenset()), just_gone.get(name, frozenset())
                for at, inner in enumerate(self._leaf(f"{table}/{name}")):
                    is_added, is_deleted = _is(inner)
                    yield _Met(
                        _tracked(inner, each),
                        lives=not is_deleted and at not in positions,
                        came=is_new and is_added,
                        went=is_new if is_deleted else at in just,
                    )

    def _leaf(self, location: str) -> list[_Entry]:
        if location not in self._leaves:
            entries = _entries(self.read(location))
            # A data file without a row id of its own follows those before it.
            offset = 0
            for each in entries:
                each["row_offset"] = offset
                if each.get("first_row_id") is None:
                    offset += each["record_count"]
            self._leaves[location] = entries
        return self._leaves[location]

    def _bitmap(self, table: str, entry: _Entry) -> frozenset[int]:
        inline = entry.get("inline_content")
        if inline is not None:
            return _roaring(inline)
        return self._blob(f"{table}/{entry['location']}", entry["offset"], entry["size_in_bytes"])

    def _blob(self, location: str, offset: int, size_bytes: int) -> frozenset[int]:
        if (location, offset) not in self._vectors:
            content = self.read(location)[offset : offset + size_bytes]
            found = BitMap64.deserialize(content[_BEFORE : len(content) - _AFTER])
            self._vectors[location, offset] = frozenset(found)
        return self._vectors[location, offset]


def _is(entry: _Entry) -> tuple[bool, bool]:
    """Tell whether an entry is ADDED, and whether it is DELETED."""
    return entry["status"] == _ADDED, entry["status"] == _DELETED


def _roaring(content: bytes) -> frozenset[int]:
    return frozenset(BitMap.deserialize(content))


def _entries(content: bytes) -> list[_Entry]:
    """Return a manifest's entries without their stats; their structs are taken apart."""
    file = pq.ParquetFile(pa.BufferReader(content))
    names = [name for name in file.schema_arrow.names if name in _COLUMNS]
    entries: list[_Entry] = file.read(columns=names, use_threads=False).to_pylist()
    for each in entries:
        for name in _STRUCTS:
            each |= each.pop(name, None) or {}
        each.setdefault("location", None)
        each.setdefault("referenced_file", None)
    return entries


def _tracked(entry: _Entry, by: _Entry) -> Tracked:
    """Return a file as it is tracked, with what its entry inherits."""
    content, sequence, row_id = (
        entry["content_type"],
        entry.get("sequence_number"),
        entry.get("first_row_id"),
    )
    if content == DATA and row_id is None and by.get("first_row_id") is not None:
        row_id = by["first_row_id"] + entry.get("row_offset", 0)
    return Tracked(
        content=content,
        location=entry["location"],
        spec=entry["partition_spec_id"],
        sequence=by["sequence_number"] if sequence is None else sequence,
        rows=entry["record_count"],
        first_row_id=row_id,
        referenced=entry["referenced_file"],
        offset=entry.get("offset") or 0,
        size_bytes=entry.get("size_in_bytes") or 0,
    )
