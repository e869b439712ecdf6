"""Whatever is done to a table through Spark, it reads like a list of rows to which it was done."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession

from icetree.filters.filter import parse_filter
from icetree.rows.write.fit import fitted
from icetree.spark import SparkLake, local
from icetree.spark.restored import fitting
from icetree.table.commit.commit import Committed
from tests.chance_columns import FOREIGN, SINGLES, as_told, spelled_for_spark
from tests.effort import EFFORT, SEED, length
from tests.plain_table import LASTING, Row, comparable, conditions, within
from tests.row_player import COLUMNS, Change, Player
from tests.spark.reading import reading

SEQUENCES, OPERATIONS = 2 * EFFORT, 8

WORD = re.compile(r"\w+")
_GOING = ("DELETE", "UPDATE_BEFORE")


class SparkPlayer(Player):
    """Does everything through Spark."""

    nan_is_greatest = True
    spell = staticmethod(spelled_for_spark)
    # Each costs all statements: many tables together have all types.
    few, nested = 4, 1

    def __init__(self, lake: SparkLake, name: str, chance: random.Random, turn: int) -> None:
        self.lake, self.name = lake, name
        # Some types keep Spark from reading by itself: every other table has none of them.
        foreign = [each for each in SINGLES if each.type in FOREIGN]
        others = [each for each in SINGLES if each.type not in FOREIGN]
        self.singles = [*foreign, *reversed(others)] if turn % 2 else others
        super().__init__(chance, turn // 2)

    def create(
        self, columns: list[tuple[str, str]], partition_by: list[str], order_by: list[str]
    ) -> None:
        self.lake.create_table(self.name, columns, partition_by=partition_by, order_by=order_by)

    def handle(self) -> Any:
        return self.lake.table(self.name)

    def frame(self, rows: list[Row]) -> DataFrame:
        """Return rows as Spark reads them from a table of their own: it takes some types no other way."""
        name = f"{self.name}_new"
        types = dict(COLUMNS) | {"st": f"struct<{self.model.inner}: long, x: double>"}
        types |= {name: each.type for name, each in self.model.drawn.items()}
        self.lake.drop_table(name, missing_ok=True)
        self.lake.create_table(name, types).append(self.arrow(rows))
        return self.lake.read(name)

    def add(self, rows: list[Row]) -> Committed:
        return self.lake.write(self.name, self.frame(rows)).append()

    def delete_where(self, where: str) -> Committed:
        return self.lake.delete(self.name, where)

    def set_where(self, to: dict[str, str], where: str) -> Committed:
        return self.lake.update(self.name, to, where)

    def begin_merge(self, rows: list[Row]) -> Any:
        return self.lake.merge(self.name, self.frame(rows), ["id"])

    def put(self, rows: list[Row]) -> Committed:
        on = None if self.identified else ["id"]
        return self.lake.upsert(self.name, self.frame(rows), on=on)

    def replace_where(self, where: str, rows: list[Row]) -> Committed:
        return self.lake.write(self.name, self.frame(rows)).overwrite(where)

    def changes(self) -> list[Change]:
        return [
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

    def rows(self, snapshot_id: int | None = None) -> tuple[list[str], list[Row]]:
        found = self.lake.read(self.name, at=snapshot_id)
        schema = self.handle().scan(at=snapshot_id).schema
        return found.columns, self.told(found, schema.fields)

    def told(self, found: DataFrame, fields: Sequence[NestedField] | None = None) -> list[Row]:
        """Return rows with texts for drawn columns, without those that Spark hands no nulls of to Arrow."""
        named = {field.name: field for field in fields or self.handle().schema.fields}
        told = {field.name: field.dataType.simpleString() for field in found.schema}
        names = [each for each in told if not {"variant", "void"} & {*WORD.findall(told[each])}]
        rows = found.select(*names).toArrow().combine_chunks()
        types = {name: named[name].field_type for name in names}
        made = [
            fitted(fitting(batch, types), [named[name] for name in names], table=self.name)
            for batch in rows.to_batches()
        ]
        batches = [batch for each in made for batch in each]
        whole = pa.Table.from_batches(batches) if batches else rows
        return as_told(whole, {*names} - {*LASTING})

    def compare(self) -> None:
        super().compare()
        # What Spark wrote, as one process reads it: all columns.
        found = self.handle().scan().to_arrow()
        rows = as_told(found, {*found.column_names} - {*LASTING})
        self.require_same(rows, self.model.as_texts(self.model.rows), self.model.columns)

    # --- what must hold --------------------------------------------------------------------

    def compare_changes(self) -> None:
        """Replay the change feed of a range on its old state: that gives the new one."""
        states = [(None, []), *((id, rows) for id, (_, rows) in self.model.past.items())]
        since, upto = sorted(self.chance.sample(range(len(states)), 2))
        old, new = (_counted(states[at][1]) for at in (since, upto))
        net = self.chance.random() < 0.5
        feed = self.lake.changes(
            self.name,
            since=states[since][0],
            upto=states[upto][0],
            columns=LASTING,
            net=net,
            images=True,
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
        found = self.lake.read(self.name).where(sql)
        self.require_same(self.told(found), self.model.as_texts(rows), self.model.columns)
        assert found.select("st.x").count() == len(rows)
        day = self.chance.randrange(3)
        text = f"day = {day} and (g > 2 or s is null)"
        # To Spark a NaN is above all numbers, to a scan it is none.
        for where, above in ((text, True), (parse_filter(text), False)):
            found = self.lake.read(self.name, where)
            kept = [
                row
                for row in self.model.rows
                if row["day"] == day and (row["s"] is None or _is_more(row["g"], 2, above))
            ]
            self.require_same(self.told(found), self.model.as_texts(kept), self.model.columns)


def _counted(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """Return how often each row is there, as far as columns that no step touches tell."""
    return Counter(comparable(list(rows), list(LASTING)))


def _is_more(value: float | None, than: float, nan_is: bool) -> bool:
    return value is not None and (nan_is if math.isnan(value) else value > than)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("laws"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


@pytest.mark.law
@pytest.mark.parametrize("seed", range(SEED * SEQUENCES, SEED * SEQUENCES + SEQUENCES))
def test_any_sequence_of_statements_reads_like_a_list_of_rows(lake: SparkLake, seed: int) -> None:
    player = SparkPlayer(lake, f"db.t{seed}", random.Random(seed), seed)
    for step in count():
        # Of each table, whatever its types, some statements and some states are read without a relation
        # that asks.
        with reading(lake.spark, lazily=(step // 2 + seed) % 2 == 0):
            player.step()
            # A wrong row stays wrong, so that some states speak for all.
            if step % 2:
                player.compare()
            if step % 10 == 9:
                player.compare_past()
                player.compare_filtered()
                player.compare_changes()
        if player.is_done(length(seed, OPERATIONS)):
            break
    player.compare()
    assert player.lake.table(player.name).verify(deep=True).findings == ()
