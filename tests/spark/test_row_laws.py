"""Whatever is done to a table through Spark, it reads like a list of rows to which it was done."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import count, groupby
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from icetree.spark import Lake
from icetree.table.commit.commit import Committed
from tests.spark.plain_table import (
    LASTING,
    Model,
    Row,
    comparable,
    conditions,
    fresh_ids,
    new_rows,
    within,
)

SEQUENCES, OPERATIONS = 6, 300

_GOING = ("DELETE", "UPDATE_BEFORE")
_MODES = ("merge-on-read", "copy-on-write")


class Evolved(Enum):
    """What a step changed other than rows."""

    SCHEMA = 1
    SPEC = 2


class Player:
    """Does the same to a table and to its model."""

    def __init__(self, lake: Lake, name: str, chance: random.Random) -> None:
        self.lake, self.name, self.chance = lake, name, chance
        self.model = Model()
        self.added = 0
        self.operations = 0
        columns = [("id", "long"), ("g", "double"), ("s", "string"), ("day", "long")]
        columns += [("st", "struct<n: long, x: double>")]
        partitions = chance.choice([[], ["day"], ["bucket(3, id)"], ["truncate(4, s)", "day"]])
        self.table = lake.connection.create_table(name, columns, partition_by=partitions)
        self._modes()

    def _modes(self) -> None:
        verbs = ("delete", "update", "merge")
        self._own().set_properties(
            {f"write.{verb}.mode": self.chance.choice(_MODES) for verb in verbs}
        )

    def _own(self) -> Any:
        return self.lake.handle(self.name)

    def frame(self, rows: list[Row]) -> DataFrame:
        columns = self.model.columns
        inner = [StructField(self.model.inner, LongType()), StructField("x", DoubleType())]
        types = {"g": DoubleType(), "s": StringType(), "st": StructType(inner)}
        schema = StructType([StructField(c, types.get(c, LongType())) for c in columns])
        return self.lake.spark.createDataFrame(
            [tuple(row[name] for name in columns) for row in rows], schema
        )

    def step(self) -> None:
        """Do one random operation, if there is something to do it to; note what the table then was."""
        names = ["append"] * 3 + ["delete", "update", "merge", "overwrite"] * 2
        names += ["add_column", "rename_column", "drop_column", "repartition", "change_modes"]
        names += ["rename_within"]
        done = getattr(self, self.chance.choice(names))()
        self.operations += done is not None
        if isinstance(done, Committed) and done.snapshot is not None:
            self.model.remember(done.snapshot.snapshot_id)

    def append(self) -> Committed:
        ids = fresh_ids(self.chance, self.model, self.chance.randrange(1, 25))
        rows = new_rows(self.chance, ids, self.model.columns)
        self.model.append(rows)
        return self.lake.write(self.frame(rows), self.name).append()

    def delete(self) -> Committed:
        sql, holds = conditions(self.chance, self.model.inner)
        self.model.delete(holds)
        return self.lake.delete(self.name, sql)

    def update(self) -> Committed:
        sql, holds = conditions(self.chance, self.model.inner)
        to, change = self.chance.choice(
            [
                (
                    {"day": "day + 1", "s": "CASE WHEN s IS NULL THEN NULL ELSE 'u' END"},
                    lambda row: {"day": row["day"] + 1, "s": None if row["s"] is None else "u"},
                ),
                # Of other types than the columns.
                (
                    {"day": "day + 1.5", "s": "id"},
                    lambda row: {"day": row["day"] + 1, "s": str(row["id"])},
                ),
                (
                    {"st": f"named_struct('{self.model.inner}', id, 'x', st.x)"},
                    lambda row: {"st": (row["id"], within(row, 1))},
                ),
            ]
        )
        self.model.update(holds, change)
        return self.lake.update(self.name, to, sql)

    def merge(self) -> Committed:
        here = [row["id"] for row in self.model.rows]
        some = self.chance.sample(here, min(len(here), self.chance.randrange(8)))
        ids = some + fresh_ids(self.chance, self.model, self.chance.randrange(1, 6))
        source = new_rows(self.chance, ids, self.model.columns)
        update, insert = self.chance.random() < 0.8, self.chance.random() < 0.8
        delete, drop = self.chance.random() < 0.4, self.chance.random() < 0.3
        merge = self.lake.merge(self.name, self.frame(source), ["id"])
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
        rows = [{**row, "day": day} for row in new_rows(self.chance, ids, self.model.columns)]
        self.model.delete(lambda row: row["day"] == day)
        self.model.append(rows)
        return self.lake.write(self.frame(rows), self.name).overwrite(f"day = {day}")

    def add_column(self) -> Evolved | None:
        self.added += 1
        name = f"c{self.added % 3}" if f"c{self.added % 3}" not in self.model.columns else None
        if name is None:
            return None
        default = self.chance.choice([None, 7])
        with self._own().edit_schema() as edit:
            edit.add(name, "long", default=default)
        self.model.add_column(name, default)
        return Evolved.SCHEMA

    def rename_column(self) -> Evolved | None:
        if len(self.model.columns) == len(LASTING):
            return None
        name = self.chance.choice(self.model.columns[len(LASTING) :])
        new = next(c for c in ("c0", "c1", "c2", "c3", "c4") if c not in self.model.columns)
        with self._own().edit_schema() as edit:
            edit.rename(name, new)
        self.model.rename_column(name, new)
        return Evolved.SCHEMA

    def rename_within(self) -> Evolved:
        new = "m" if self.model.inner == "n" else "n"
        with self._own().edit_schema() as edit:
            edit.rename(f"st.{self.model.inner}", new)
        self.model.inner = new
        return Evolved.SCHEMA

    def drop_column(self) -> Evolved | None:
        if len(self.model.columns) == len(LASTING):
            return None
        name = self.chance.choice(self.model.columns[len(LASTING) :])
        with self._own().edit_schema() as edit:
            edit.drop(name)
        self.model.drop_column(name)
        return Evolved.SCHEMA

    def repartition(self) -> Evolved:
        with self._own().edit_spec() as edit:
            for each in edit.fields:
                edit.remove(each.name)
            edit.add(self.chance.choice(["day", "bucket(2, id)", "truncate(10, id)"]))
        return Evolved.SPEC

    def change_modes(self) -> None:
        self._modes()

    # --- what must hold --------------------------------------------------------------------

    def compare(self) -> None:
        columns = self.model.columns
        found = self.lake.table(self.name)
        assert found.columns == columns
        assert same(found) == comparable(self.model.rows, columns)

    def compare_past(self) -> None:
        picked = self.chance.sample(sorted(self.model.past), min(3, len(self.model.past)))
        for snapshot_id in picked:
            columns, rows = self.model.past[snapshot_id]
            found = self.lake.table(self.name, snapshot_id=snapshot_id)
            assert found.columns == columns
            assert same(found) == comparable(rows, columns)

    def compare_changes(self) -> None:
        """Replay the change feed of a range on its old state: that gives the new one."""
        states = [(None, []), *((id, rows) for id, (_, rows) in self.model.past.items())]
        since, upto = sorted(self.chance.sample(range(len(states)), 2))
        old, new = (_counted(states[at][1]) for at in (since, upto))
        net = self.chance.random() < 0.5
        feed = self.lake.changes(
            self.name, since=states[since][0], upto=states[upto][0], columns=LASTING, net=net
        )
        rows = feed.orderBy("_change_ordinal").toArrow().to_pylist()
        for _, commit in groupby(rows, key=lambda row: row["_change_ordinal"]):
            told = list(commit)
            gone = _counted(row for row in told if row["_change_type"] in _GOING)
            came = _counted(row for row in told if row["_change_type"] not in _GOING)
            # In a net feed a row may go in a commit before the one that brought it.
            assert net or gone <= old
            old.subtract(gone)
            old.update(came)
        assert {row: n for row, n in old.items() if n} == dict(new)

    def compare_filtered(self) -> None:
        sql, holds = conditions(self.chance, self.model.inner)
        rows = [row for row in self.model.rows if holds(row)]
        found = self.lake.table(self.name).where(sql)
        assert same(found) == comparable(rows, self.model.columns)
        assert found.select("st.x").count() == len(rows)
        day = self.chance.randrange(3)
        found = self.lake.table(self.name, filter=f"day = {day} and (g > 2 or s is null)")
        kept = [
            row
            for row in self.model.rows
            if row["day"] == day and (row["s"] is None or (row["g"] is not None and row["g"] > 2))
        ]
        assert same(found) == comparable(kept, self.model.columns)


def _counted(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """Return how often each row is there, as far as columns that no step touches tell."""
    return Counter(comparable(list(rows), list(LASTING)))


def same(found: DataFrame) -> list[tuple[Any, ...]]:
    """Return what a DataFrame holds, to be compared."""
    return comparable(found.toArrow().to_pylist(), found.columns)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    made = Lake.local(tmp_path_factory.mktemp("laws"), spark=spark)
    made.connection.create_namespace("db")
    yield made
    made.connection.close()


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_any_sequence_of_statements_reads_like_a_list_of_rows(lake: Lake, seed: int) -> None:
    player = Player(lake, f"db.t{seed}", random.Random(seed))
    for step in count():
        player.step()
        # A wrong row stays wrong, so that some states speak for all.
        if step % 2:
            player.compare()
        if step % 10 == 9:
            player.compare_past()
            player.compare_filtered()
            player.compare_changes()
        if player.operations >= OPERATIONS // SEQUENCES:
            break
    player.compare()
    assert player.lake.handle(player.name).verify(deep=True).findings == ()
