"""Commits of icetree on top of another writer's tree, each beside what the rows should become."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from icetree.spec.entry import Content, Entry
from icetree.table.table import Table
from tests.foreign import blobs, parquet
from tests.foreign.judge import (
    LINEAGE,
    NAMES,
    as_arrow,
    require_changes,
    require_rows,
    require_sound,
)
from tests.foreign.layout import Layout, Row, draw_rows

_PLACE = ("_file", "_pos")


@dataclass(slots=True, kw_only=True)
class Ours:
    """A table that icetree commits to from now on."""

    table: Table
    layout: Layout
    rng: Random
    #: The rows that the table has, with their lineage.
    rows: list[Row]
    next_id: int
    made: int = 0

    def commit(self, count: int) -> None:
        """Commit at random, and hold every commit against the rows it should leave."""
        steps = (
            self._append,
            self._delete_files,
            self._vectors,
            self._equality,
            self._rewrite,
            self._rewrite_manifests,
            self._rewrite_deletes,
        )
        for _ in range(count):
            before, since = self.rows, self._head()
            self.rng.choice(steps)()
            head = self._head()
            if head == since:
                continue
            self._settle()
            replaced = self.table.snapshot().operation == "replace"  # type: ignore[union-attr]
            require_rows(self.table, self.rows, self.rng)
            require_changes(self.table, since, head, before, self.rows, replaced=replaced)
        require_sound(self.table)

    def _head(self) -> int:
        snapshot = self.table.snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def _settle(self) -> None:
        """Take over the lineage of new rows, which icetree decides, once it is seen to be sound."""
        found = self._read()
        ids = [row["_row_id"] for row in found]
        assert None not in ids
        known = {row["id"]: row for row in found}
        old = {row["_row_id"] for row in self.rows if "_row_id" in row}
        settled = []
        for row in self.rows:
            if "_row_id" not in row:
                row = row | {name: known[row["id"]][name] for name in LINEAGE if row["id"] in known}
                assert row.get("_row_id") not in old, "a new row has the id of another"
            settled.append(row)
        self.rows = settled

    def _read(self, where: str | None = None) -> list[dict[str, Any]]:
        columns = [*NAMES, *LINEAGE, *_PLACE]
        found: list[dict[str, Any]] = self.table.scan(where, columns=columns).to_arrow().to_pylist()
        return found

    def _rewrite_manifests(self) -> None:
        by = self.rng.choice([None, "id"])
        self.table.maintenance.rewrite_manifests(by=by)
        again = self.table.maintenance.rewrite_manifests(by=by, dry_run=True)
        assert again.rewritten_manifests_count == 0

    def _rewrite_deletes(self) -> None:
        equality = self.rng.random() < 0.5
        self.table.maintenance.rewrite_position_delete_files(rewrite_equality_deletes=equality)

    def _append(self) -> None:
        spec_id = self.table.metadata.default_spec_id
        rows = draw_rows(self.rng, self.next_id, self.rng.randint(1, 4), self.layout, spec_id)
        self.next_id += len(rows)
        self.table.append(as_arrow(rows, self.table))
        self.rows = [*self.rows, *rows]

    def _files(self) -> dict[str, list[dict[str, Any]]]:
        by_file: dict[str, list[dict[str, Any]]] = {}
        for row in self._read():
            by_file.setdefault(row["_file"], []).append(row)
        return by_file

    def _delete_files(self) -> None:
        files = self._files()
        if not files:
            return
        gone = self.rng.sample(sorted(files), self.rng.randint(1, min(3, len(files))))
        self.table.delete_files(gone)
        lost = {row["id"] for name in gone for row in files[name]}
        self.rows = [row for row in self.rows if row["id"] not in lost]

    def _vectors(self) -> None:
        """Delete rows by data DVs, with all that the DVs before them had."""
        files = self._files()
        if not files:
            return
        tasks = self.table.scan().plan().tasks.to_pylist()
        by_name = {self._full(task["location"]): task for task in tasks}
        chosen = self.rng.sample(sorted(files), self.rng.randint(1, min(3, len(files))))
        parts, lost = [], set()
        for name in chosen:
            left = {row["_pos"]: row["id"] for row in files[name]}
            position = self.rng.choice(sorted(left))
            lost.add(left[position])
            # Rows that an equality delete has taken already may be among them.
            held = by_name[name]["record_count"]
            gone = {position, *(at for at in range(held) if at not in left)}
            parts.append((name, gone))
        content, places = blobs.puffin(parts)
        location = self._store(".puffin", content)
        entries = [
            Entry(
                content_type=Content.POSITION_DELETES,
                location=location,
                file_format="puffin",
                referenced_file=name,
                partition_spec_id=by_name[name]["partition_spec_id"],
                record_count=len(gone),
                file_size_in_bytes=len(content),
                dv_offset=offset,
                dv_size_in_bytes=length,
            )
            for (name, gone), (offset, length) in zip(parts, places, strict=True)
        ]
        self.table.row_delta(entries)
        self.rows = [row for row in self.rows if row["id"] not in lost]

    def _equality(self) -> None:
        if not self.rows:
            return
        row = self.rng.choice(self.rows)
        column = self.layout.column("id")
        content = parquet.data_file([{"id": row["id"]}], [column], parquet.PLAIN, lineage=False)
        entry = Entry(
            content_type=Content.EQUALITY_DELETES,
            location=self._store("-eq.parquet", content),
            record_count=1,
            file_size_in_bytes=len(content),
            equality_ids=[column.id],
        )
        self.table.row_delta([entry])
        self.rows = [each for each in self.rows if each["id"] != row["id"]]

    def _rewrite(self) -> None:
        """Change nothing but metadata: an empty commit carries over, flushes and compacts."""
        self.table.append_files([])

    def _store(self, end: str, content: bytes) -> str:
        self.made += 1
        location = f"{self.table.location}/data/ours-{self.made}{end}"
        self.table.files.store.write_new(location, content)
        return location

    def _full(self, name: str) -> str:
        return name if "://" in name else f"{self.table.location}/{name}"
