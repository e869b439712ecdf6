"""A table on a local disk with a bit of everything in it, and ways to damage it and undo that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

import icetree
from icetree.codec import manifest
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.entry.entry import ROOT, Content, Entries
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.plan.plan import plan
from icetree.tree.reading import Leaf, leaves_in

ROWS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("country", pa.string()),
        pa.field("x", pa.float64()),
    ]
)
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def rows(first: int, count: int = 12) -> pa.Table:
    """Rows of one day: nulls, NaNs and texts too long for a bound among them."""
    return pa.Table.from_pylist(
        [
            {
                "id": first + at,
                "ts": START + timedelta(days=first // 100),
                "country": (None, "DE", "a country with a long name")[at % 3],
                "x": float("nan") if at % 4 == 0 else at / 2,
            }
            for at in range(count)
        ],
        ROWS,
    )


def open_lake(folder: Path) -> Lake:
    """Open the lake in a folder, with nothing cached."""
    return icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "lake"))


def make_table(folder: Path) -> Table:
    """Make `db.t`: files in the root and in leaves, data DVs, manifest DVs."""
    lake = open_lake(folder)
    lake.create_namespace("db")
    table = lake.create_table(
        "db.t",
        ROWS,
        partition_by=["day(ts)", "bucket(2, id)"],
        order_by=["id"],
        properties={"write.root.max-data-entries": "4"},
    )
    for day in range(5):
        table.append(rows(100 * day))
    files = planned(table)
    vectors = write_data_vectors(
        {files["location"][0].as_py(): [0], files["location"][7].as_py(): [1, 2]},
        tasks=files,
        metadata=table.metadata,
        store=table.files.store,
    )
    table.row_delta(vectors)
    in_leaf = [f for f in files.to_pylist() if f["leaf"]]
    with table.transaction() as changes:
        changes.delete_files([in_leaf[1]["location"]])
        changes.append(rows(900))
    return table


def planned(table: Table) -> pa.Table:
    """Return the tasks of the whole table, with stats."""
    shape = table.metadata.shape()
    root, reader = table.files.root(table.snapshot(), shape), table.files.reader(shape)
    return plan(root, reader, shape, stats_columns=True).tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a table's files are, and what its newest root says."""

    table: Table

    @property
    def snapshot(self) -> Snapshot:
        found = self.table.snapshot()
        assert found is not None
        return found

    @property
    def root(self) -> Entries:
        return self.table.files.root(self.snapshot, self.table.metadata.shape())

    def path(self, stored: str) -> Path:
        return Path(self.table.location) / stored

    @property
    def root_file(self) -> str:
        assert self.snapshot.root_manifest is not None
        return self.snapshot.root_manifest

    def leaf(self) -> Leaf:
        return leaves_in(self.root)[0]

    def live(self, content: Content) -> list[str]:
        """Return the locations of live files of a content."""
        from icetree.tree.live import live_files

        shape = self.table.metadata.shape()
        found = live_files(self.root, self.table.files.reader(shape))
        rows = found.select(["content_type", "location"]).to_pylist()
        return [row["location"] for row in rows if row["content_type"] == content]

    @contextmanager
    def without(self, stored: str) -> Iterator[None]:
        """Take a file away for a while."""
        path = self.path(stored)
        content = path.read_bytes()
        path.unlink()
        try:
            yield
        finally:
            path.write_bytes(content)

    @contextmanager
    def changed(self, stored: str, change: Callable[[bytes], bytes]) -> Iterator[None]:
        """Change the bytes of a file for a while."""
        path = self.path(stored)
        content = path.read_bytes()
        path.write_bytes(change(content))
        try:
            yield
        finally:
            path.write_bytes(content)

    def changed_root(self, change: Callable[[Entries], Entries]):  # type: ignore[no-untyped-def]
        """Change the entries of the newest root for a while."""
        shape = self.table.metadata.shape()
        bytes_ = manifest.encode(change(self.root), ROOT, shape)
        return self.changed(self.root_file, lambda _: bytes_)


def cut(content: bytes) -> bytes:
    """Return the first half of a file."""
    return content[: len(content) // 2]


def flipped(content: bytes, at: int | None = None) -> bytes:
    """Return a file with one bit turned over, in the middle unless told."""
    at = len(content) // 2 if at is None else at
    return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]
