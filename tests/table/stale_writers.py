"""Several stale handles on one table, and a plain model that says what each commit may do.

Every row has a `uid` that it keeps when it is carried into another file. The model knows the
rows of the head, the file of each, and at which commit rows of a file were last deleted or the
file itself went. From these alone it tells what must not land.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CommitConflict
from icetree.rows.write.deletes import write_data_vectors, write_equality_deletes
from icetree.table.commit.commit import Committed
from icetree.table.transaction import Transaction
from tests.rows.lake import new_lake
from tests.table.changing import LEAFY, data_files, written
from tests.table.stale_model import (
    OF_A_STATE,
    SCHEMA,
    SOURCES,
    START,
    TERMS,
    Past,
    Row,
    Seen,
    Tried,
    partition_of,
    rows_of,
    uids_of,
)


class World:
    """A table, its handles, and the model."""

    def __init__(self, seed: int, handles: int = 3, *, goes_back: bool = False) -> None:
        self.draw = random.Random(seed)
        self.lake = lake = new_lake()
        lake.create_table("db.t", SCHEMA, properties=LEAFY)
        self.handles = [Seen(table=lake.table("db.t")) for _ in range(handles)]
        self.reader = lake.table("db.t")
        self.version = 0
        self.rows: dict[int, Row] = {}
        self.terms: tuple[str, ...] = ()
        #: By file: the commit that last deleted rows of it, by DV or otherwise, or removed it.
        self.dv_at: dict[str, int] = {}
        self.equal_at: dict[str, list[tuple[int, int | None]]] = {}
        self.gone_at: dict[str, int] = {}
        self.compacted_at: dict[str, int] = {}
        self.changed_at = 0
        self.next_uid = 0
        self.tally: Counter[str] = Counter()
        #: All files that ever were on the way to the head.
        self.files: set[str] = set()
        self.past: list[Past] | None = [] if goes_back else None

    # --- steps -----------------------------------------------------------------------------

    def step(self) -> None:
        """Let one handle, perhaps stale, do one thing."""
        by = self.draw.choice(self.handles)
        if self.draw.random() < 0.4:
            self.look(by)
        verbs = (self.append, self.append, self.mark, self.mark, self.equal, self.carry)
        verbs += (self.carry, self.replace, self.replace, self.compact, self.evolve, self.wipe)
        if self.past is not None:
            verbs += (self.back,)
            self.remember(self.past)
        self.draw.choice(verbs)(by)

    def look(self, by: Seen) -> None:
        """Refresh a handle."""
        by.table.refresh()
        by.version, by.rows, by.terms = self.version, dict(self.rows), self.terms
        by.is_left = False

    def remember(self, past: list[Past]) -> None:
        """Note the state of the table, with what the model knows of it."""
        self.files |= {row.file for row in self.rows.values()}
        model = deepcopy({name: getattr(self, name) for name in OF_A_STATE})
        past.append(Past(at=self._head(), terms=self.terms, files=set(self.files), model=model))

    def back(self, _: Seen) -> None:
        """Have the name stand for a state that the table had, whether or not it was left since."""
        assert self.past is not None
        was = self.draw.choice(self.past)
        self.lake.register_table("db.t", was.at, overwrite=True)
        self.version += 1
        self.changed_at = self.version
        left = self.files - was.files
        for name, value in deepcopy(was.model).items():
            setattr(self, name, value)
        self.gone_at |= dict.fromkeys(left, self.version)
        self.terms = was.terms
        for each in self.handles:
            each.is_left = True
        self.reader.refresh()
        assert {row.values["uid"] for row in self._scanned()} == self.rows.keys()
        self.tally["back"] += 1

    def new_rows(self, most: int = 3) -> pa.Table:
        """Return rows that never were."""
        found = []
        for _ in range(self.draw.randint(1, most)):
            at = START + timedelta(days=self.draw.randrange(2))
            k = self.draw.choice("ab") + self.draw.choice("xy")
            found.append({"uid": self.next_uid, "k": k, "t": at})
            self.next_uid += 1
        return pa.Table.from_pylist(found, SCHEMA)

    def append(self, by: Seen) -> None:
        """Add rows; nothing may stop it."""
        rows = self.new_rows()
        self._try("append", by, Tried(added=uids_of(rows)), lambda: by.table.append(rows))

    def mark(self, by: Seen) -> None:
        """Delete some of the rows that the handle sees, with DVs."""
        uids = self._some(by)
        if not uids:
            return
        vectors = self._vectors(by, uids)
        tried = Tried(marked=frozenset(by.rows[uid].file for uid in uids), deleted=frozenset(uids))
        self._try("mark", by, tried, lambda: by.table.row_delta(vectors, isolation=self._level()))

    def equal(self, by: Seen) -> None:
        """Delete rows by equality, in the partitions of the handle's spec."""
        uids = self._some(by)
        if not uids:
            return
        metadata = by.table.metadata
        columns = ["uid", *sorted({SOURCES[term] for term in by.terms})]
        rows = rows_of(by.rows[uid].values for uid in uids).select(columns)
        deletes = write_equality_deletes(
            rows, ["uid"], metadata=metadata, store=by.table.files.store
        )
        spec = metadata.default_spec_id if by.terms else None
        tried = Tried(equal=frozenset(uids), equal_spec=spec)
        self._try("equal", by, tried, lambda: by.table.row_delta(deletes, isolation="snapshot"))

    def carry(self, by: Seen) -> None:
        """Remove files and add their rows again, beside new ones, in one of many ways."""
        files = sorted({row.file for row in by.rows.values()})
        if not files:
            return
        chosen = self.draw.sample(files, min(len(files), self.draw.randint(1, 2)))
        live = [row.values for row in by.rows.values() if row.file in chosen]
        rows = pa.concat_tables([rows_of(live), self.new_rows(1)])
        tried = Tried(
            removed=frozenset(chosen),
            added=uids_of(rows),
            spec_id=by.table.metadata.default_spec_id,
        )
        how = self.draw.choice(
            (_overwrite, _delete_then_append, _append_then_delete, _delete_beside)
        )
        level, is_staged = self._level(), self.draw.random() < 0.2

        def commit() -> None:
            branch = None if is_staged else "main"
            with by.table.transaction(isolation=level, branch=branch) as tx:
                how(tx, rows, chosen)
                made = tx.commit().snapshot
            if is_staged and made is not None:
                by.table.fast_forward("main", made.snapshot_id)

        self._try("carry", by, tried, commit)

    def replace(self, by: Seen) -> None:
        """Replace the partitions of new rows, as the handle sees them."""
        rows, spec_id = self.new_rows(2), by.table.metadata.default_spec_id
        wanted = {partition_of(row, by.terms) for row in rows.to_pylist()}
        removed = frozenset(
            row.file
            for row in by.rows.values()
            if not by.terms
            or (row.spec_id == spec_id and partition_of(row.values, by.terms) in wanted)
        )
        tried = Tried(removed=removed, added=uids_of(rows), spec_id=spec_id)
        level = self._level()
        self._try("replace", by, tried, lambda: by.table.replace_partitions(rows, isolation=level))

    def compact(self, by: Seen) -> None:
        """Write all rows that the handle sees into new files."""
        files = data_files(by.table)
        if not files:
            return
        tried = Tried(
            removed=frozenset(files),
            added=frozenset(by.rows),
            is_rewrite=True,
            spec_id=by.table.metadata.default_spec_id,
        )
        lineage = ["_row_id", "_last_updated_sequence_number"]
        rows = by.table.scan(columns=[*SCHEMA.names, *lineage]).to_arrow()
        added = written(by.table, rows, keep_lineage=True)
        self._try("compact", by, tried, lambda: by.table.rewrite(files, added))

    def evolve(self, by: Seen) -> None:
        """Partition the table otherwise."""
        terms = self.draw.choice(TERMS)

        before = self._head()
        with suppress(CommitConflict), by.table.edit_spec() as spec:
            for term in by.terms:
                spec.remove(term)
            for term in terms:
                spec.add(term)
        if self._head() == before:
            assert by.version < self.version or terms == by.terms, "nobody else edited the spec"
            return
        self.version += 1
        self.terms = terms
        self.look(by)

    def wipe(self, by: Seen) -> None:
        """Remove every file that the handle sees, sometimes to put other rows in their place."""
        if self.draw.random() < 0.5:
            return
        rows = self.new_rows(1) if self.draw.random() < 0.5 else None
        tried = Tried(
            removed=frozenset(data_files(by.table)),
            added=frozenset() if rows is None else uids_of(rows),
            spec_id=by.table.metadata.default_spec_id,
        )

        def commit() -> Committed:
            with by.table.transaction(isolation=self._level()) as tx:
                tx.truncate()
                if rows is not None:
                    tx.append(rows)
                return tx.commit()

        self._try("wipe", by, tried, commit)

    # --- judgement -------------------------------------------------------------------------

    def _try(self, verb: str, by: Seen, tried: Tried, commit: Callable[[], object]) -> None:
        why, before = self._must_not_land(by, tried), self._head()
        with suppress(CommitConflict):
            commit()
        if self._head() == before:
            # Of files in a partition spec that was left, nobody knows the partitions any more.
            assert verb != "append" or by.is_left, "an append conflicts with no change of rows"
            assert by.version < self.changed_at, f"{verb} conflicts with nobody"
            self.tally[f"{verb} refused"] += 1
            return
        assert why is None, f"{verb} landed although {why}"
        self.tally[f"{verb} landed{'' if by.version == self.version else ' late'}"] += 1
        self._land(tried, by)
        self.look(by)

    def _head(self) -> str:
        return self.reader.catalog.load(self.reader.name)

    def _must_not_land(self, by: Seen, tried: Tried) -> str | None:
        """Tell what the documented conflicts forbid, whatever the isolation."""
        touched = tried.removed | tried.marked
        compacted = {file for file in touched if self.compacted_at.get(file, 0) > by.version}
        for file in touched:
            # A compaction deletes in its new files what others deleted in the old ones, or took.
            if self.gone_at.get(file, 0) > by.version and not tried.is_rewrite:
                return f"{file} went"
            if file in compacted:
                if tried.is_rewrite:
                    return f"{file} was compacted"
                continue  # its rows are elsewhere, the same or not: what is there then tells
            if not tried.added and file not in tried.marked:
                continue
            if self.dv_at.get(file, 0) > by.version and not tried.is_rewrite:
                return f"rows of {file} were deleted"
            for at, spec_id in self.equal_at.get(file, ()):
                reached = tried.is_rewrite and spec_id in (None, tried.spec_id)
                if at > by.version and tried.added and not reached:
                    return f"rows of {file} were deleted by equality"
        return None

    def _land(self, tried: Tried, by: Seen) -> None:
        """Carry a commit out on the model, and hold the table against it."""
        self.version += 1
        self.changed_at = self.version
        before = self.rows
        gone = {uid for uid, row in before.items() if row.file in tried.removed}
        # What a compaction carried elsewhere goes from there.
        gone |= {uid for uid, row in by.rows.items() if row.file in tried.removed}
        equal = {
            uid
            for uid in tried.equal & before.keys()
            if tried.equal_spec in (None, before[uid].spec_id)
        }
        self.reader.refresh()
        now = {row.values["uid"]: row for row in self._scanned()}
        if tried.is_rewrite:
            added = tried.added & before.keys()  # what was deleted meanwhile stays deleted
        else:
            added = tried.added
        expected = (before.keys() - gone - equal - tried.deleted) | added
        lost, invented = expected - now.keys(), now.keys() - expected
        assert not lost | invented, f"lost {lost}, invented {invented}"
        for file in tried.removed:
            (self.compacted_at if tried.is_rewrite else self.gone_at)[file] = self.version
        for file in tried.marked:
            self.dv_at[file] = self.version
        for uid in equal:
            hits = self.equal_at.setdefault(before[uid].file, [])
            hits.append((self.version, tried.equal_spec))
        self.rows = now

    def _scanned(self) -> Iterator[Row]:
        found = self.reader.scan(columns=[*SCHEMA.names, "_file", "_spec_id"]).to_arrow()
        assert pc.count_distinct(found["uid"]).as_py() == found.num_rows, "a row is there twice"
        for row in found.to_pylist():
            file = row.pop("_file").removeprefix(self.reader.location + "/")
            yield Row(values=row, spec_id=row.pop("_spec_id"), file=file)

    # --- parts -----------------------------------------------------------------------------

    def _level(self) -> str:
        return self.draw.choice(("snapshot", "snapshot", "serializable"))

    def _some(self, by: Seen) -> list[int]:
        return self.draw.sample(sorted(by.rows), min(len(by.rows), self.draw.randint(1, 2)))

    def _vectors(self, by: Seen, uids: list[int]) -> pa.Table:
        wanted = pa.array(uids, pa.int64())
        found = by.table.scan(columns=["uid", "_file", "_pos"]).to_arrow()
        positions: dict[str, list[int]] = {}
        for row in found.filter(pc.is_in(found["uid"], value_set=wanted)).to_pylist():
            stored = row["_file"].removeprefix(by.table.location + "/")
            positions.setdefault(stored, []).append(row["_pos"])
        return write_data_vectors(
            positions,
            tasks=by.table.scan().plan().tasks,
            metadata=by.table.metadata,
            store=by.table.files.store,
        )


def _overwrite(tx: Transaction, rows: pa.Table, files: list[str]) -> None:
    tx.overwrite_files(files, rows)


def _delete_then_append(tx: Transaction, rows: pa.Table, files: list[str]) -> None:
    tx.delete_files(files)
    tx.append(rows)


def _append_then_delete(tx: Transaction, rows: pa.Table, files: list[str]) -> None:
    tx.append(rows)
    tx.delete_files(files)


def _delete_beside(tx: Transaction, rows: pa.Table, files: list[str]) -> None:
    tx.row_delta((), remove=files)
    tx.append(rows)
