"""The same statements through Spark and in one process give the same table: rows and row ids."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import time
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import IsNull
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import icetree
from icetree.errors import InvalidInput
from icetree.spark import SparkLake, local
from tests.chance_columns import SINGLES
from tests.effort import EFFORT, SEED, length, usually
from tests.plain_table import Row
from tests.row_lineage import lineage, require_same_rows
from tests.row_player import Player
from tests.spark.test_row_laws import SparkPlayer
from tests.table.rows.test_row_laws import ArrowPlayer

SEQUENCES, OPERATIONS = 2 * EFFORT, 8
#: Types of which both doors have all values alike.
_PLAIN = ("boolean", "int", "long", "date", "timestamptz", "string", "binary", "decimal(18, 2)")

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
    """Two tables of the same rows, each behind a door of its own: of Spark's lake, and of a plain one."""

    def __init__(self, lake: SparkLake, name: str, mode: str, chance: random.Random) -> None:
        kept = lake.kept
        self.lakes = (lake, icetree.connect(kept.address, properties=kept.properties))
        self.chance = chance
        self.names = [_TABLE.format(name, door) for door in ("spark", "arrow")]
        first = _rows(chance, list(range(60)))
        modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        for each in self.names:
            table = lake.create_table(each, _SCHEMA, partition_by=["day"], properties=modes)
            table.append(first)

    def rows(self, ids: list[int], day: int | None = None) -> tuple[Any, pa.Table]:
        """Return the same rows as each door takes them."""
        made = _rows(self.chance, ids)
        if day is not None:
            made = made.set_column(3, "day", pa.array([day] * len(ids), pa.int64()))
        return self.lakes[0].spark.createDataFrame(made), made

    def do(self, verb: str, *args: Any, **how: Any) -> None:
        """Say the same in both doors; a pair of rows is one for each."""
        for door, (lake, name) in enumerate(zip(self.lakes, self.names, strict=True)):
            given = [each[door] if isinstance(each, tuple) else each for each in args]
            getattr(lake, verb)(name, *given, **how)

    def merge(self, ids: list[int], on: list[str], say: Callable[[Any], Any]) -> None:
        rows = self.rows(ids)
        for lake, name, given in zip(self.lakes, self.names, rows, strict=True):
            say(lake.merge(name, given, on)).run()

    def compare(self) -> None:
        told = []
        for lake, name in zip(self.lakes, self.names, strict=True):
            columns = [*_SCHEMA.names, *_LINEAGE]
            rows = lake.table(name).scan(columns=columns).to_arrow().to_pylist()
            # Of rows that came with a merge, each door may give the first id to another.
            told.append(
                sorted(
                    repr({**row, "_row_id": row["_row_id"] if row["_row_id"] < 60 else "new"})
                    for row in rows
                )
            )
            assert len({row["_row_id"] for row in rows}) == len(rows)
        assert told[0] == told[1]


@pytest.mark.parametrize("mode", usually(["merge-on-read", "copy-on-write"], "copy-on-write"))
def test_both_doors_give_the_same_rows_and_row_ids(lake: SparkLake, mode: str) -> None:
    doors = Doors(lake, mode.replace("-", "_"), mode, random.Random(mode))
    doors.do("delete", "id % 11 = 3 OR s = 'B' AND day = 1")
    doors.do("update", {"s": "coalesce(upper(s), 'none')", "day": 7}, "id BETWEEN 10 AND 30")
    doors.do("update", {"g": "g * 2"}, IsNull("s"))
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


class _Alike(Player):
    """Draws nothing that doors compare each in their own way: NaN is above all numbers to Spark alone."""

    nan_is_greatest = False
    singles = tuple(each for each in SINGLES if each.type in _PLAIN)
    few, nested = 2, 1

    def _new_rows(self, ids: list[int]) -> list[Row]:
        return [
            {
                **row,
                "g": _number(row["g"]),
                "st": row["st"] and (row["st"][0], _number(row["st"][1])),
            }
            for row in super()._new_rows(ids)
        ]


def _number(value: float | None) -> float | None:
    return 2.5 if value is not None and math.isnan(value) else value


class _OnArrow(_Alike, ArrowPlayer):
    pass


class _OnSpark(_Alike, SparkPlayer):
    def __init__(self, lake: SparkLake, name: str, chance: random.Random, turn: int) -> None:
        self.lake, self.name = lake, name
        Player.__init__(self, chance, turn)


@pytest.mark.law
@pytest.mark.parametrize("seed", range(SEED * SEQUENCES, SEED * SEQUENCES + SEQUENCES))
def test_any_sequence_of_statements_gives_the_same_table_through_both_doors(
    lake: SparkLake, seed: int
) -> None:
    """The same rows and ages; rows stay the same ones alike; and as many are told to have changed."""
    doors = (
        _OnSpark(lake, f"db.drawn_{seed}", random.Random(f"doors {seed}"), seed),
        _OnArrow(random.Random(f"doors {seed}"), seed),
    )
    for each in doors:
        each.step("append")
    while min(each.operations for each in doors) < length(seed, OPERATIONS):
        before, columns = [lineage(each) for each in doors], list(doors[0].model.columns)
        for each in doors:
            each.step()
        now = [lineage(each) for each in doors]
        assert doors[0].counted == doors[1].counted
        ages = [{id: (age, values) for id, (_, age, values) in each.items()} for each in now]
        assert ages[0] == ages[1]
        if columns == doors[0].model.columns:
            for each, was, is_now in zip(doors, before, now, strict=True):
                require_same_rows(each, was, is_now)
    for each in doors:
        each.compare()


def test_both_lakes_write_rows_in_the_same_words(lake: SparkLake) -> None:
    doors = Doors(lake, "written", "merge-on-read", random.Random(3))
    doors.do("append", doors.rows([60, 61]), key="load", summary={"job": "nightly"})
    doors.do("append", doors.rows([62]), key="load")
    doors.do("upsert", doors.rows([5, 61, 63]), "id", branch="audit", create_branch=True)
    doors.do("overwrite", "day = 2", doors.rows([70, 71], day=2), isolation="snapshot")
    with pytest.raises(InvalidInput, match="a new row does not match"):
        doors.do("overwrite", "day = 2", doors.rows([72], day=1))
    doors.do("replace_partitions", doors.rows([80, 81, 82], day=0), branch=None)
    doors.compare()
    for door, name in zip(doors.lakes, doors.names, strict=True):
        table = door.table(name)
        assert [each.summary["job"] for each in table.history() if "job" in each.summary] == [
            "nightly"
        ]
        assert table.scan("id in (5, 61, 63)", at="audit").count() == 3
        assert {ref.snapshot_id for ref in table.refs.values()} < {
            each.snapshot_id for each in table.history()
        }
    with pytest.raises(InvalidInput, match=r"append takes no 'brunch'.* mean 'branch'"):
        doors.do("append", doors.rows([90]), brunch="audit")


def test_rows_in_arrow_are_written_on_spark_as_on_any_lake(lake: SparkLake) -> None:
    lake.create_table("db.here", [("id", "long"), ("at", "time")], exist_ok=True)
    noon = pa.table({"id": [1, 2], "at": pa.array([time(12)] * 2, pa.time64("us"))})
    lake.append("db.here", noon)
    lake.upsert("db.here", noon.slice(1), on=["id"])
    with pytest.raises(InvalidInput, match=r"give one, or the condition as text"):
        lake.overwrite("db.here", f.col("id") > 1, noon)
    lake.overwrite("db.here", "id > 1", noon.slice(1))
    lake.table("db.here").set_properties({"write.wap.enabled": "true"})
    lake.spark.conf.set("spark.wap.branch", "audited")
    try:
        lake.append("db.here", noon)
    finally:
        lake.spark.conf.unset("spark.wap.branch")
    table = lake.table("db.here")
    assert (table.scan().count(), table.scan(at="audited").count()) == (2, 4)
