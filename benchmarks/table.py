"""A table whose files are a dict, and what is needed to commit to it and to plan on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import data
from icetree.codec import manifest
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.spec.entry.entry import POSITION, ROOT, Content, Entries, Status, concat, with_columns
from icetree.spec.entry.stats import parse_column
from icetree.spec.fields import BY_NAME, CONTENT_STATS, STAT_OFFSETS
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import REMOVED, Changes, Intent
from icetree.tree.draft import NO_HEAD, Draft, Head, Stamp
from icetree.tree.files import FileReader
from icetree.tree.grow.grow import grow, prepare
from icetree.tree.leaf import make_leaf
from icetree.tree.policy import Policy
from icetree.tree.reading import Keep, Leaf, Reader, leaves_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One snapshot: its root as bytes, the files below it."""

    shape: Shape
    policy: Policy = field(default_factory=Policy)
    root_bytes: bytes | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    #: Of the head, all but its root, which is decoded from the bytes when it is needed.
    facts: Head = NO_HEAD
    version: int = 0

    @property
    def reader(self) -> FileReader:
        return FileReader(fetch=self.files.__getitem__, shape=self.shape)

    def decode(self) -> Entries:
        """Return the root's entries, read anew."""
        if self.root_bytes is None:
            return NO_HEAD.root
        return manifest.decode(self.root_bytes, ROOT, self.shape, file="root")

    def draft(self, root: Entries, changes: Changes) -> Draft:
        """Return the next root; leaves of `changes` itself are put among the files."""
        stamp = Stamp(
            snapshot_id=self.version + 1,
            sequence_number=self.version + 1,
            commit_id=f"commit-{self.version + 1}",
        )
        prepared = prepare(changes, self.shape, self.policy, commit_id=stamp.commit_id)
        self.files.update((leaf.file.location, leaf.file.content) for leaf in prepared.leaves)
        head = replace(self.facts, root=root)
        return grow(head, prepared, stamp, self.shape, self.policy, self.reader)

    def commit(self, changes: Changes) -> Table:
        """Return the table after the change."""
        draft = self.draft(self.decode(), changes)
        self.files.update((file.location, file.content) for file in draft.files)
        facts = replace(self.facts, next_row_id=draft.next_row_id, summary=draft.summary)
        return replace(self, root_bytes=draft.root_bytes, facts=facts, version=self.version + 1)


def append(files: Entries) -> Changes:
    """Return the intent to add these files."""
    return Changes(intent=Intent.APPEND, added=files)


def in_root(count: int, shape: Shape) -> Table:
    """Return a table with all its files in the root, as many small appends leave it."""
    files = data.existing(data.new_files(np.arange(count), shape))
    unlimited = Policy(root_max_data_entries=1 << 30, root_target_bytes=1 << 40)
    totals = ("data-files", "delete-files", "records", "files-size")
    return Table(
        shape=shape,
        policy=unlimited,
        root_bytes=manifest.encode(files, ROOT, shape),
        facts=replace(
            NO_HEAD,
            next_row_id=1 << 40,
            summary={f"total-{name}": str(count) for name in totals},
        ),
        version=count,
    )


def in_appended_leaves(count: int, shape: Shape, *, a_commit: int = 40_000) -> Table:
    """Return a table with its files in the leaves of large appends."""
    table = Table(shape=shape)
    for first in range(0, count, a_commit):
        at = np.arange(first, min(count, first + a_commit))
        table = table.commit(append(data.new_files(at, shape, seed=first)))
    return table


def in_leaves_of(parts: list[data.Numbers], shape: Shape) -> Table:
    """Return a table with one leaf for each part, its files in just this order."""
    files: dict[str, bytes] = {}
    rows = []
    ids = 0
    for number, at in enumerate(parts):
        new = with_columns(
            data.new_files(at, shape, seed=number),
            sequence_number=None,
        )
        name = f"metadata/leaf-{number}.parquet"
        leaf = make_leaf(new, Content.DATA_MANIFEST, name, shape, status=Status.ADDED)
        files[name] = leaf.file.content
        tracking = {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}
        rows.append(with_columns(leaf.entry, first_row_id=ids, min_sequence_number=1, **tracking))
        ids += leaf.rows_without_ids
    return Table(
        shape=shape, files=files, root_bytes=manifest.encode(concat(rows), ROOT, shape), version=1
    )


def removal_of(table: Table, row: int, *, hint: bool) -> Changes:
    """Return the intent to remove a file of the last leaf, with or without saying where it is."""
    leaf = leaves_in(table.decode())[-1]
    wanted = {"location", "record_count", "file_size_in_bytes"}
    [file] = table.reader.leaf(leaf, columns=wanted).slice(row, 1).to_pylist()
    told = {"content_type": int(Content.DATA), "key": file["location"]}
    if hint:
        told |= {"leaf": leaf.location, **file}
    removed = pa.Table.from_pylist([told], schema=REMOVED)
    return Changes(intent=Intent.DELETE_FILES, removed=removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a plan needs of one leaf."""

    location: str
    columns: frozenset[str]
    groups: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """A reader that notes what is asked of another one."""

    reader: Reader
    needs: list[Need] = field(default_factory=list)

    def leaf(
        self, leaf: Leaf, *, columns: Collection[str] | None = None, keep: Keep | None = None
    ) -> Entries:
        found = self.reader.leaf(leaf, columns=columns, keep=keep)
        groups = np.unique(found[POSITION].to_numpy() // LEAF_ROW_GROUP).tolist()
        need = Need(location=leaf.location, columns=frozenset(columns or ()), groups=groups)
        self.needs.append(need)
        return found

    def blob(
        self, location: str, *, offset: int, size_bytes: int, key: bytes | None = None
    ) -> bytes:
        return self.reader.blob(location, offset=offset, size_bytes=size_bytes, key=key)


def raw_reading(table: Table, needs: list[Need]) -> Callable[[], None]:
    """Return what reads just what is needed with bare pyarrow: the least that a plan can cost.

    Where row ids are asked for, they follow from the counts of the row groups before.
    """
    steps: list[tuple[bytes, list[tuple[list[int], list[str]]]]] = []
    counts = [_path(name, table.shape) for name in ("status", "record_count")]
    for need in needs:
        paths = [_path(name, table.shape) for name in need.columns if name != POSITION]
        reads = [(need.groups, paths)]
        before = sorted(set(range(max(need.groups, default=0))) - set(need.groups))
        if before and "first_row_id" in need.columns:
            reads.append((before, counts))
        steps.append((table.files[need.location], reads))

    def read() -> None:
        for content, reads in steps:
            file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
            for groups, paths in reads:
                file.read_row_groups(groups, columns=paths, use_threads=False)

    return read


def raw_writing(content: bytes) -> Callable[[], None]:
    """Return what writes a root's columns with bare pyarrow: the least that a new root can cost."""
    held = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)

    def write() -> None:
        pq.write_table(
            held,
            pa.BufferOutputStream(),
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
            store_schema=False,
        )

    return write


def _path(name: str, shape: Shape) -> str:
    if parsed := parse_column(name):
        field_id, stat = parsed
        return f"{CONTENT_STATS.name}.{shape.names[field_id]}.{STAT_OFFSETS[stat][1]}"
    column = BY_NAME[name]
    return f"{column.group.name}.{column.stored_as}" if column.group else column.stored_as
