"""Commits of icetree on top of another writer's tree, each beside what the rows should become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from icetree.spec.entry.entry import Content, Entry
from icetree.table.table import Table
from tests.foreign import blobs, stored
from tests.foreign.columns import Row, dig, put
from tests.foreign.drawn import draw_rows
from tests.foreign.dress import PLAIN
from tests.foreign.files import is_key
from tests.foreign.filters import filters_of
from tests.foreign.judge import (
    LINEAGE,
    as_arrow,
    require_changes,
    require_rows,
    require_sound,
)
from tests.foreign.layout import Layout
from tests.foreign.world import World

_PLACE = ("_file", "_pos")
_UPDATED = "_last_updated_sequence_number"


@dataclass(slots=True, kw_only=True)
class Ours:
    """A table that icetree commits to from now on."""

    table: Table
    layout: Layout
    rng: Random
    #: The rows that the table has, with their lineage.
    rows: list[Row]
    next_id: int
    branch: str = "main"
    made: int = 0

    def commit(self, count: int) -> None:
        """Commit at random, and hold every commit against the rows it should leave."""
        steps = (
            self.append,
            self._delete_files,
            # What is deleted has to wait for a flush, and not to be compacted before.
            *(self._vectors for _ in range(4)),
            self._equality,
            *(self._rewrite for _ in range(3)),
            self._rewrite_manifests,
            self._rewrite_deletes,
            self._compact,
            self._delete,
            self._update,
            self._upsert,
            self._merge,
        )
        for _ in range(count):
            before, since = self.rows, self.head()
            self.rng.choice(steps)()
            self.settle(before, since)
        require_sound(self.table)

    def head(self) -> int:
        snapshot = self.table.snapshot(self.branch)
        assert snapshot is not None
        return snapshot.snapshot_id

    def settle(self, before: list[Row], since: int) -> None:
        """Hold the newest commit, if there is one, against the rows that it should leave."""
        head = self.head()
        if head == since:
            return
        self._take_over()
        replaced = self.table.snapshot(self.branch).operation == "replace"  # type: ignore[union-attr]
        schema = self.layout.schema
        require_rows(self.table, schema, self.rows, self.rng, at=self.branch)
        require_changes(self.table, schema, since, head, before, self.rows, replaced=replaced)

    def _take_over(self) -> None:
        """Take over the ids of new rows, which icetree decides, once they are seen to be sound.

        New and changed rows are as old as the snapshot.
        """
        found = self._read()
        snapshot = self.table.snapshot(self.branch)
        assert snapshot is not None
        ids = [row["_row_id"] for row in found]
        assert None not in ids
        known = {row["id"]: row["_row_id"] for row in found}
        old = {row["_row_id"] for row in self.rows if "_row_id" in row}
        settled = []
        for row in self.rows:
            if "_row_id" not in row:
                row = row | {"_row_id": known.get(row["id"])}
                assert row["_row_id"] not in old, "a new row has the id of another"
            if row.get(_UPDATED) is None:
                row = row | {_UPDATED: snapshot.sequence_number}
            settled.append(row)
        self.rows = settled

    def _read(self) -> list[Row]:
        """Return who the rows are and where they stand."""
        id = self._name("id")
        scan = self.table.scan(columns=[id, *LINEAGE, *_PLACE], at=self.branch)
        return [row | {"id": row[id]} for row in scan.to_arrow().to_pylist()]

    def _name(self, path: str) -> str:
        return self.layout.schema.name(path)

    def _arrow(self, rows: Iterable[Row]) -> pa.Table:
        return as_arrow(list(rows), self.table, self.layout.schema)

    # --- rows ------------------------------------------------------------------------------

    def _delete(self) -> None:
        where, holds = self.rng.choice(filters_of(self.layout.schema))
        self.table.delete(where, branch=self.branch)
        self.rows = [row for row in self.rows if not holds(row)]

    def _update(self) -> None:
        where, holds = self.rng.choice(filters_of(self.layout.schema))
        change = self.rng.choice(({"note": "'changed'"}, {"n": "{} + 1"}, {"name": None}))
        to = {
            self._name(key): told and told.format(self._name("n")) for key, told in change.items()
        }
        self.table.update(to, where, branch=self.branch)
        self.rows = [self._changed(row, change) if holds(row) else row for row in self.rows]

    def _changed(self, row: Row, change: dict[str, Any]) -> Row:
        """Return a row as an update leaves it: itself, and younger."""
        after = dict(row)
        if "note" in change:
            after["note"] = "changed"
        elif "name" in change:
            after["name"] = None
        elif row["n"] is not None:
            after["n"] = row["n"] + 1
        return after | {_UPDATED: None}

    def _upsert(self) -> None:
        new = self._incoming()
        self.table.upsert(self._arrow(new.values()), [self._name("id")], branch=self.branch)
        there = {row["id"] for row in self.rows}
        self.rows = [self._taken(row, new) for row in self.rows]
        self.rows += [row for id, row in new.items() if id not in there]

    def _merge(self) -> None:
        """Delete what matches and has a flag, change the rest that does, add what is new."""
        new = self._incoming()
        keys = [self._name("id")]
        merge = self.table.merge(self._arrow(new.values()), keys, branch=self.branch)
        merge = merge.when_matched_delete(f"target.{self._name('flag')} = true")
        merge = merge.when_matched_update({self._name("note"): f"source.{self._name('name')}"})
        merge.when_not_matched_insert_all().run()
        there = {row["id"] for row in self.rows}
        kept = [r for r in self.rows if r["id"] not in new or r["flag"] is not True]
        self.rows = [
            row | {"note": new[row["id"]]["name"], _UPDATED: None} if row["id"] in new else row
            for row in kept
        ]
        self.rows += [row for id, row in new.items() if id not in there]

    def _incoming(self) -> dict[int, Row]:
        """Return rows by id, some of them of rows that are there."""
        spec_id = self.table.metadata.default_spec_id
        rows = draw_rows(self.rng, self.next_id, self.rng.randint(1, 3), self.layout, spec_id)
        self.next_id += len(rows)
        known = [row["id"] for row in self.rows]
        for row in rows:
            if known and self.rng.random() < 0.6:
                row["id"] = self.rng.choice(known)
        return {row["id"]: row for row in rows}

    def _taken(self, row: Row, new: dict[int, Row]) -> Row:
        """Return a row as an upsert leaves it."""
        if row["id"] not in new:
            return row
        return new[row["id"]] | {"_row_id": row["_row_id"], _UPDATED: None}

    # --- files -----------------------------------------------------------------------------

    def _compact(self) -> None:
        order = self.rng.choice((None, "{0} desc", "zorder({0}, {1})"))
        order = order and order.format(self._name("id"), self._name("n"))
        options = {"rewrite-all": self.rng.random() < 0.7, "min-input-files": 2}
        self.table.maintenance.rewrite_data_files(
            order_by=order, options=options, branch=self.branch
        )

    def _rewrite_manifests(self) -> None:
        by = self.rng.choice([None, self._name("id")])
        self.table.maintenance.rewrite_manifests(by=by, branch=self.branch)
        again = self.table.maintenance.rewrite_manifests(by=by, dry_run=True, branch=self.branch)
        assert again.rewritten_manifests_count == 0

    def _rewrite_deletes(self) -> None:
        equality = self.rng.random() < 0.5
        self.table.maintenance.rewrite_position_delete_files(
            rewrite_equality_deletes=equality, branch=self.branch
        )

    def append(self) -> None:
        spec_id = self.table.metadata.default_spec_id
        rows = draw_rows(self.rng, self.next_id, self.rng.randint(1, 4), self.layout, spec_id)
        self.next_id += len(rows)
        self.table.append(self._arrow(rows), branch=self.branch)
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
        self.table.delete_files(gone, branch=self.branch)
        lost = {row["id"] for name in gone for row in files[name]}
        self.rows = [row for row in self.rows if row["id"] not in lost]

    def _vectors(self) -> None:
        """Delete rows by data DVs, with all that the DVs before them had."""
        files = self._files()
        if not files:
            return
        tasks = self.table.scan(at=self.branch).plan().tasks.to_pylist()
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
        self.table.row_delta(entries, branch=self.branch)
        self.rows = [row for row in self.rows if row["id"] not in lost]

    def _equality(self) -> None:
        if not self.rows:
            return
        # Nulls are keys, too, and equal each other.
        told = [each for each in self.layout.schema.told() if is_key(each)]
        common = [each for each in told if each.path in ("id", "name", "n")]
        column = self.rng.choice(self.rng.choice((common, told)))
        value, row = column.value(self.rng.choice(self.rows)), {}
        put(row, column.path, value)
        pruned = self.layout.pruned((column.path,))
        content = stored.data_file([row], pruned, PLAIN, whole=True)
        entry = Entry(
            content_type=Content.EQUALITY_DELETES,
            location=self._store("-eq.parquet", content),
            record_count=1,
            file_size_in_bytes=len(content),
            equality_ids=[column.id],
        )
        self.table.row_delta([entry], branch=self.branch)
        self.rows = [each for each in self.rows if dig(each, column.path) != value]

    def _rewrite(self) -> None:
        """Change nothing but metadata: an empty commit carries over, flushes and compacts."""
        self.table.append_files([], branch=self.branch)

    def _store(self, end: str, content: bytes) -> str:
        self.made += 1
        location = self._full(f"data/{self.branch}-{self.made}{end}")
        self.table.files.store.write_new(location, content)
        return location

    def _full(self, name: str) -> str:
        return name if "://" in name else f"{self.table.location.rstrip('/')}/{name}"


def ours_on(world: World, table: Table, *, branch: str = "main", at: int | None = None) -> Ours:
    """Return who commits to a branch, which is at a snapshot of another writer's by its number.

    That is main's newest one, if nothing else is told.
    """
    return Ours(
        table=table,
        layout=world.writer.layout,
        rng=Random(f"{world.seed} {branch}"),
        rows=world.rows(world.writer.head if at is None else at),
        next_id=world.writer.shop.next_id + (0 if branch == "main" else 10_000),
        branch=branch,
    )
