"""The same statements through Spark and in one process give the same table: rows and row ids."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.spark import SparkLake, local
from icetree.table.table import Table

_SCHEMA = pa.schema(
    [("id", pa.int64()), ("g", pa.float64()), ("s", pa.string()), ("day", pa.int64())]
)
_TABLE, _LINEAGE = "db.{}_{}", ("_row_id", "_last_updated_sequence_number")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("doors"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def _rows(chance: random.Random, ids: list[int]) -> pa.Table:
    made = [
        {
            "id": id,
            "g": chance.choice([None, float("nan"), -0.0, 0.0, 1.5, float(chance.randrange(9))]),
            "s": chance.choice([None, "a", "B", "long text"]),
            "day": chance.randrange(3),
        }
        for id in ids
    ]
    return pa.Table.from_pylist(made, schema=_SCHEMA)


class Doors:
    """Two tables of the same rows, each behind a door of its own."""

    def __init__(self, lake: SparkLake, name: str, mode: str, chance: random.Random) -> None:
        self.lake, self.chance = lake, chance
        self.spark, self.arrow = (_TABLE.format(name, door) for door in ("spark", "arrow"))
        first = _rows(chance, list(range(60)))
        modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        for each in (self.spark, self.arrow):
            table = lake.create_table(each, _SCHEMA, partition_by=["day"], properties=modes)
            table.append(first)

    def table(self) -> Table:
        return self.lake.table(self.arrow)

    def delete(self, where: str) -> None:
        self.lake.delete(self.spark, where)
        self.table().delete(where)

    def update(self, to: dict[str, str], where: str) -> None:
        self.lake.update(self.spark, to, where)
        self.table().update(to, where)

    def merge(self, ids: list[int], on: list[str], say: Callable[[Any], Any]) -> None:
        source = _rows(self.chance, ids)
        frame = self.lake.spark.createDataFrame(source)
        say(self.lake.merge(self.spark, frame, on)).run()
        say(self.table().merge(source, on)).run()

    def compare(self) -> None:
        told = []
        for name in (self.spark, self.arrow):
            columns = [*_SCHEMA.names, *_LINEAGE]
            rows = self.lake.table(name).scan(columns=columns).to_arrow().to_pylist()
            # Of rows that came with a merge, each door may give the first id to another.
            told.append(
                sorted(
                    repr({**row, "_row_id": row["_row_id"] if row["_row_id"] < 60 else "new"})
                    for row in rows
                )
            )
            assert len({row["_row_id"] for row in rows}) == len(rows)
        assert told[0] == told[1]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_both_doors_give_the_same_rows_and_row_ids(lake: SparkLake, mode: str) -> None:
    doors = Doors(lake, mode.replace("-", "_"), mode, random.Random(mode))
    doors.delete("id % 11 = 3 OR s = 'B' AND day = 1")
    doors.update({"s": "coalesce(upper(s), 'none')", "day": "day + 1"}, "id BETWEEN 10 AND 30")
    doors.update({"g": "g * 2"}, "s IS NULL")
    doors.compare()
    doors.merge(
        [5, 6, 7, 40, 100, 101],
        ["id"],
        lambda m: m.when_matched_update_all().when_not_matched_insert_all(),
    )
    doors.merge(
        [8, 9, 100, 102, 103],
        ["id"],
        lambda m: (
            m.when_matched_delete("source.id % 2 = 0")
            .when_matched_update({"s": "concat(source.s, '-', target.s)", "day": "target.day"})
            .when_not_matched_insert({"id": "id", "s": "'in'"}, "id > 102")
            .when_not_matched_by_source_update({"day": "day + 5"}, "id % 7 = 0")
        ),
    )
    doors.compare()
    # NaN matches NaN, both zeros are one, a null matches nothing.
    doors.merge(list(range(200, 206)), ["g", "s", "day"], lambda m: m.when_not_matched_insert_all())
    doors.compare()
