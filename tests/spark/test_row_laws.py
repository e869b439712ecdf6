"""Whatever is done to a table through Spark, it reads like a list of rows to which it was done."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from icetree.filters.filter import parse_filter
from icetree.spark import SparkLake, local
from icetree.table.commit.commit import Committed
from tests.effort import EFFORT, SEED, length
from tests.plain_table import LASTING, Row, comparable, conditions, within
from tests.row_player import Change, Player
from tests.spark.reading import reading

SEQUENCES, OPERATIONS = 2 * EFFORT, 8

_GOING = ("DELETE", "UPDATE_BEFORE")


class SparkPlayer(Player):
    """Does everything through Spark."""

    nan_is_greatest = True

    def __init__(self, lake: SparkLake, name: str, chance: random.Random) -> None:
        self.lake, self.name = lake, name
        super().__init__(chance)

    def create(self, columns: list[tuple[str, str]], partition_by: list[str]) -> None:
        self.lake.create_table(self.name, columns, partition_by=partition_by)

    def handle(self) -> Any:
        return self.lake.table(self.name)

    def frame(self, rows: list[Row]) -> DataFrame:
        columns = self.model.columns
        inner = [StructField(self.model.inner, LongType()), StructField("x", DoubleType())]
        types = {"g": DoubleType(), "s": StringType(), "st": StructType(inner)}
        schema = StructType([StructField(c, types.get(c, LongType())) for c in columns])
        return self.lake.spark.createDataFrame(
            [tuple(row[name] for name in columns) for row in rows], schema
        )

    def add(self, rows: list[Row]) -> Committed:
        return self.lake.write(self.name, self.frame(rows)).append()

    def delete_where(self, where: str) -> Committed:
        return self.lake.delete(self.name, where)

    def set_where(self, to: dict[str, str], where: str) -> Committed:
        return self.lake.update(self.name, to, where)

    def begin_merge(self, rows: list[Row]) -> Any:
        return self.lake.merge(self.name, self.frame(rows), ["id"])

    def put(self, rows: list[Row]) -> Committed:
        return self.lake.upsert(self.name, self.frame(rows), on=["id"])

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
        return found.columns, found.toArrow().to_pylist()

    # --- what must hold --------------------------------------------------------------------

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
        found = self.lake.read(self.name).where(sql)
        assert same(found) == comparable(rows, self.model.columns)
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
            assert same(found) == comparable(kept, self.model.columns)


def _counted(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """Return how often each row is there, as far as columns that no step touches tell."""
    return Counter(comparable(list(rows), list(LASTING)))


def same(found: DataFrame) -> list[tuple[Any, ...]]:
    """Return what a DataFrame holds, to be compared."""
    return comparable(found.toArrow().to_pylist(), found.columns)


def _is_more(value: float | None, than: float, nan_is: bool) -> bool:
    return value is not None and (nan_is if math.isnan(value) else value > than)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("laws"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


@pytest.fixture
def way(lake: SparkLake, seed: int) -> Iterator[None]:
    """Have every other sequence read without a relation that asks."""
    with reading(lake.spark, lazily=seed % 2 == 0):
        yield


@pytest.mark.usefixtures("way")
@pytest.mark.law
@pytest.mark.parametrize("seed", range(SEED * SEQUENCES, SEED * SEQUENCES + SEQUENCES))
def test_any_sequence_of_statements_reads_like_a_list_of_rows(lake: SparkLake, seed: int) -> None:
    player = SparkPlayer(lake, f"db.t{seed}", random.Random(seed))
    for step in count():
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
