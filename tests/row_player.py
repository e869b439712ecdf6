"""Does the same to a table and to its model, through whichever door: the steps of the row laws."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from typing import Any

import pyarrow as pa

from icetree.rows.write.deletes import write_equality_deletes
from icetree.spec.entry.entry import Content, is_live
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.commit.commit import Committed
from icetree.table.commit.counts import RowCounts
from tests.chance_columns import SINGLES, Kind, default_of, is_ordered, nested
from tests.chance_columns import partitions as partitions_of
from tests.plain_table import (
    LASTING,
    Model,
    Row,
    comparable,
    conditions,
    drawn_conditions,
    fresh_ids,
    new_rows,
)
from tests.rows.drawn import spelled

MODES = ("merge-on-read", "copy-on-write")
COLUMNS = [("id", "long"), ("g", "double"), ("s", "string"), ("day", "long")]
COLUMNS += [("st", "struct<n: long, x: double>")]
#: So small that roots are flushed, leaves are marked and rewritten, and deletes find their owners.
TINY = {
    "write.root.max-data-entries": (0, 1, 2, 4),
    "write.root.max-delete-entries": (0, 0, 1, 3),
    "write.leaf.max-entries": (1, 2, 5, 50_000),
    "write.manifest-dv.inline-max-bytes": (0, 65_536),
    "write.commit.compact-max-entries": (0, 4, 20_000),
    "write.commit.compact-min-leaves": (2, 4, 16),
    "write.commit.compact-removed-percent": (10, 50, 99),
    "write.flush.affinity-min-entries": (1, 1, 2, 50),
    "write.flush.affinity-max-leaves": (0, 100, 100),
}
#: What the roots of a sequence must have had, or nothing was tried but lists of files.
TREE = frozenset({Content.DATA_MANIFEST, Content.DELETE_MANIFEST, Content.MANIFEST_DV})
#: What a statement sets, and what that means.
Change = tuple[dict[str, str], Callable[[Row], Row]]


class Evolved(Enum):
    """What a step changed other than rows."""

    SCHEMA = 1
    SPEC = 2


class Player:
    """Plays random steps; how each is done to the table, a door says."""

    #: Whether a NaN is above every number, as it is to Spark.
    nan_is_greatest = False
    #: How a condition has a value of a type.
    spell: Callable[[Kind, Any], str] = staticmethod(lambda kind, value: spelled(kind.type, value))
    #: Types that columns are drawn of.
    singles: Sequence[Kind] = SINGLES
    #: How many columns of one of them a table has, beside those of nested ones: two tables have all.
    few = len(SINGLES) // 2
    nested = 2

    def __init__(self, chance: random.Random, turn: int) -> None:
        self.chance, self.turn = chance, turn
        self.model = Model()
        self.added = 0
        self.operations = 0
        #: What roots were seen to hold.
        self.seen: set[Content] = set()
        #: The ids of rows that the last step updated, and of those it wrote anew by their keys.
        self.updated: set[int] = set()
        self.replaced: set[int] = set()
        #: How many rows the last step was told to have changed.
        self.counted: RowCounts | None = None
        self._draw()
        partitions = chance.choice(
            [["truncate(4, s)", "day"], ["day"], ["bucket(3, id)"], [], self._partition()]
        )
        #: Whether a delete by keys can reach all rows, and whether there was one.
        self.everywhere, self.keyed = not partitions, False
        types = [(name, each.type) for name, each in self.model.drawn.items()]
        self.create([*COLUMNS, *types], partitions, self._order())
        #: Whether rows are known by their ids, without being told so.
        self.identified = chance.random() < 0.5
        if self.identified:
            with self.handle().edit_schema() as edit:
                edit.make_required("id", allow_incompatible=True)
                edit.set_identifier_fields(["id"])
        self._tune()

    # --- what is drawn ---------------------------------------------------------------------

    def _draw(self) -> None:
        """Give the table columns of other types, of which each table in turn has others."""
        every, start = [*self.singles] * 2, self.turn * self.few % len(self.singles)
        some = every[start : start + self.few]
        some += [nested(self.chance, self.singles) for _ in range(self.nested)]
        for at, kind in enumerate(some):
            self.model.add_column(f"d{at}", kind, None)

    def _partition(self) -> list[str]:
        every = [p for name, kind in self.model.drawn.items() for p in partitions_of(name, kind)]
        return [self.chance.choice(every)] if every else []

    def _order(self) -> list[str]:
        """Return an order for rows in files, of drawn columns or none."""
        names = [name for name, kind in self.model.drawn.items() if is_ordered(kind)]
        some = self.chance.sample(names, min(len(names), self.chance.randrange(3)))
        ways = ("", " desc", " nulls last", " desc nulls first")
        return [name + self.chance.choice(ways) for name in some]

    # --- what a door does ------------------------------------------------------------------

    def create(
        self, columns: list[tuple[str, str]], partition_by: list[str], order_by: list[str]
    ) -> None:
        raise NotImplementedError

    def handle(self) -> Any:
        """Return the table, on its newest state."""
        raise NotImplementedError

    def add(self, rows: list[Row]) -> Committed:
        raise NotImplementedError

    def delete_where(self, where: str) -> Committed:
        raise NotImplementedError

    def set_where(self, to: dict[str, str], where: str) -> Committed:
        raise NotImplementedError

    def begin_merge(self, rows: list[Row]) -> Any:
        raise NotImplementedError

    def put(self, rows: list[Row]) -> Committed:
        """Upsert rows, by their ids."""
        raise NotImplementedError

    def arrow(self, rows: list[Row]) -> pa.Table:
        """Return rows as the table's columns."""
        columns = self.model.columns
        inner = pa.struct([(self.model.inner, pa.int64()), ("x", pa.float64())])
        types = {"g": pa.float64(), "s": pa.string(), "st": inner}
        types |= {name: each.arrow for name, each in self.model.drawn.items()}
        made = {name: [row[name] for row in rows] for name in columns}
        names = (self.model.inner, "x")
        made["st"] = [
            None if each is None else dict(zip(names, each, strict=True)) for each in made["st"]
        ]
        return pa.table(
            {name: pa.array(made[name], types.get(name, pa.int64())) for name in columns}
        )

    def replace_where(self, where: str, rows: list[Row]) -> Committed:
        raise NotImplementedError

    def rows(self, snapshot_id: int | None = None) -> tuple[list[str], list[Row]]:
        """Return the columns and rows of the table."""
        raise NotImplementedError

    def changes(self) -> list[Change]:
        """Return some changes, as the door writes them."""
        raise NotImplementedError

    # --- steps -----------------------------------------------------------------------------

    def _tune(self) -> None:
        verbs = ("delete", "update", "merge")
        modes = {f"write.{verb}.mode": self.chance.choice(MODES) for verb in verbs}
        tiny = {name: str(self.chance.choice(values)) for name, values in TINY.items()}
        self.handle().set_properties(modes | tiny)

    def step(self, verb: str | None = None) -> None:
        """Do one operation, a random one unless told, if it has anything to do; note what came of it."""
        names = ["append"] * 3 + ["delete", "update", "merge", "overwrite", "upsert"] * 2
        names += ["add_column", "rename_column", "drop_column", "repartition", "tune"]
        names += ["rename_within", "replace_by_key", "replace_by_key"]
        self.replaced = set()
        done = getattr(self, verb or self.chance.choice(names))()
        self.counted = done.rows if isinstance(done, Committed) else None
        self.operations += done is not None
        self.updated = self.model.updated
        counted = self.model.counts()
        if isinstance(done, Committed):
            told = [done.rows.inserted, done.rows.updated, done.rows.deleted]
            # Of files under equality deletes only a look at the rows would tell.
            if told[2] is None and self.keyed:
                told[2] = counted[2]
            assert told == counted
            done = done.snapshot
        if isinstance(done, Snapshot):
            self.model.remember(done.snapshot_id)
        self._look()

    def _look(self) -> None:
        table = self.handle()
        snapshot = table.metadata.current_snapshot()
        if snapshot is not None:
            root = table.files.root(snapshot, table.metadata.shape())
            held = root.filter(is_live(root))["content_type"].unique().to_pylist()
            self.seen |= {Content(each) for each in held}

    def is_done(self, operations: int) -> bool:
        """Tell whether so much was done, and to all parts of a tree."""
        assert self.operations < 20 * operations
        whole = self.seen >= TREE and (self.keyed or not self.everywhere)
        return self.operations >= operations and whole

    def condition(self) -> tuple[str, Callable[[Row], bool]]:
        nans = self.nan_is_greatest
        if self.model.drawn and self.chance.random() < 0.4:
            drawn = self.model.drawn
            return drawn_conditions(self.chance, drawn, self.spell, nan_is_greatest=nans)
        return conditions(self.chance, self.model.inner, nan_is_greatest=nans)

    def _new_rows(self, ids: list[int]) -> list[Row]:
        return new_rows(self.chance, ids, self.model.columns, self.model.drawn)

    def append(self) -> Committed:
        ids = fresh_ids(self.chance, self.model, self.chance.randrange(1, 25))
        rows = self._new_rows(ids)
        self.model.append(rows)
        return self.add(rows)

    def delete(self) -> Committed:
        text, holds = self.condition()
        self.model.delete(holds)
        return self.delete_where(text)

    def update(self) -> Committed:
        text, holds = self.condition()
        drawn = self.chance.choice([*self.model.drawn, "s"])
        to, change = self.chance.choice(
            [*self.changes(), ({drawn: "NULL"}, lambda _: {drawn: None})]
        )
        self.model.update(holds, change)
        return self.set_where(to, text)

    def _old_and_new(self) -> list[Row]:
        """Return rows of which some have ids that the table has."""
        here = [row["id"] for row in self.model.rows]
        some = self.chance.sample(here, min(len(here), self.chance.randrange(8)))
        ids = some + fresh_ids(self.chance, self.model, self.chance.randrange(1, 6))
        return self._new_rows(ids)

    def upsert(self) -> Committed:
        rows = self._old_and_new()
        self.model.merge(rows, update=True, insert=True)
        return self.put(rows)

    def replace_by_key(self) -> Snapshot | None:
        """Write rows and an equality delete by their ids, as a stream does, which looks nothing up."""
        if not self.everywhere:
            return None
        rows, table, self.keyed = self._old_and_new(), self.handle(), True
        self.replaced = {row["id"] for row in rows}
        self.model.delete(lambda row: row["id"] in self.replaced)
        self.model.append(rows)
        keys = self.arrow(rows).select(["id"])
        gone = write_equality_deletes(
            keys, ["id"], metadata=table.metadata, store=table.files.store, everywhere=True
        )
        with table.transaction() as tx:
            tx.append(self.arrow(rows))
            tx.row_delta(gone)
            return tx.commit().snapshot

    def merge(self) -> Committed:
        source = self._old_and_new()
        update, insert = self.chance.random() < 0.8, self.chance.random() < 0.8
        delete, drop = self.chance.random() < 0.4, self.chance.random() < 0.3
        merge = self.begin_merge(source)
        if delete or not (update or insert or drop):
            delete = True
            merge.when_matched_delete("source.id % 3 = 0")
        if update:
            merge.when_matched_update_all()
        if insert:
            merge.when_not_matched_insert_all()
        if drop:
            merge.when_not_matched_by_source_delete("target.id % 7 = 0")
        self.model.merge(
            source,
            update=update,
            insert=insert,
            delete=(lambda row: row["id"] % 3 == 0) if delete else None,
            drop_others=(lambda row: row["id"] % 7 == 0) if drop else None,
        )
        return merge.run()

    def overwrite(self) -> Committed:
        day = self.chance.randrange(3)
        ids = fresh_ids(self.chance, self.model, self.chance.randrange(1, 6))
        rows = [{**row, "day": day} for row in self._new_rows(ids)]
        self.model.delete(lambda row: row["day"] == day)
        self.model.append(rows)
        return self.replace_where(f"day = {day}", rows)

    def add_column(self) -> Evolved | None:
        self.added += 1
        name = f"c{self.added % 3}" if f"c{self.added % 3}" not in self.model.columns else None
        if name is None:
            return None
        kind = self.chance.choice([*self.singles, nested(self.chance, self.singles)])
        default, value = default_of(kind, self.chance)
        with self.handle().edit_schema() as edit:
            edit.add(name, kind.type, default=default)
        self.model.add_column(name, kind, value)
        return Evolved.SCHEMA

    def rename_column(self) -> Evolved | None:
        if len(self.model.columns) == len(LASTING):
            return None
        name = self.chance.choice(self.model.columns[len(LASTING) :])
        new = next(c for c in (f"c{at}" for at in count()) if c not in self.model.columns)
        with self.handle().edit_schema() as edit:
            edit.rename(name, new)
        self.model.rename_column(name, new)
        return Evolved.SCHEMA

    def rename_within(self) -> Evolved:
        new = "m" if self.model.inner == "n" else "n"
        with self.handle().edit_schema() as edit:
            edit.rename(f"st.{self.model.inner}", new)
        self.model.inner = new
        return Evolved.SCHEMA

    def drop_column(self) -> Evolved | None:
        if len(self.model.columns) == len(LASTING):
            return None
        name = self.chance.choice(self.model.columns[len(LASTING) :])
        if name in self._laid_out():
            return None
        with self.handle().edit_schema() as edit:
            edit.drop(name)
        self.model.drop_column(name)
        return Evolved.SCHEMA

    def _laid_out(self) -> set[str]:
        """Return the columns that the table was ever partitioned or sorted by, which may not go."""
        table = self.handle()
        shape = table.metadata.shape()
        ids = {each.source_id for order in table.metadata.sort_orders for each in order.fields}
        ids |= {id for each in shape.expressions.values() for id in each.source_ids}
        return {field.name for field in table.schema.fields if field.field_id in ids}

    def repartition(self) -> Evolved:
        with self.handle().edit_spec() as edit:
            for each in edit.fields:
                edit.remove(each.name)
            edit.add(self.chance.choice(["day", "bucket(2, id)", "truncate(3000, id)"]))
        return Evolved.SPEC

    def tune(self) -> None:
        self._tune()

    # --- what must hold --------------------------------------------------------------------

    def compare(self) -> None:
        columns, found = self.rows()
        assert columns == self.model.columns
        self.require_same(found, self.model.as_texts(self.model.rows), columns)

    def require_same(self, found: list[Row], wanted: list[Row], columns: list[str]) -> None:
        """Compare rows, column by column, so that what differs is told."""
        by_id = {row["id"]: row for row in wanted}
        assert sorted(row["id"] for row in found) == sorted(by_id)
        assert len(found) == len(wanted)
        for name in (each for each in columns if not found or each in found[0]):
            mine = {row["id"]: comparable([row], [name]) for row in found}
            assert mine == {id: comparable([row], [name]) for id, row in by_id.items()}, name

    def compare_past(self) -> None:
        picked = self.chance.sample(sorted(self.model.past), min(3, len(self.model.past)))
        for snapshot_id in picked:
            columns, rows = self.model.past[snapshot_id]
            named, found = self.rows(snapshot_id)
            assert named == columns
            self.require_same(found, rows, columns)
