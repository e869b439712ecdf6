"""What a driver does: tasks that make a table, change it and hold it against what it should be."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from icetree.spark.read.internals import internals
from icetree.spark.read.plan import plan
from tests.spark.cluster.driver import the_lake
from tests.spark.test_row_laws import SparkPlayer

#: As many files in leaves as a few commits give.
_LEAFY = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}


def places(names: tuple[str, ...]) -> set[str | None]:
    """Return where executors have packages of these names, each told by the folder that it is in."""

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from importlib.util import find_spec
        from pathlib import Path

        import pyarrow as pa

        for _ in batches:
            found = [find_spec(name) for name in names]
            # A folder without code of its own is a package, too.
            inside = [each and each.submodule_search_locations for each in found]
            at = [each and str(Path(next(iter(each))).parent) for each in inside]
            yield pa.RecordBatch.from_pydict({"at": pa.array(at, pa.string())})

    return {row["at"] for row in the_lake().spark.range(4).mapInArrow(find, "at string").collect()}


def create(name: str, rows: int) -> None:
    """Make a table of rows in four partitions, files of which are in leaves."""
    lake = the_lake()
    columns = [("id", "long"), ("p", "long"), ("v", "string")]
    lake.create_table(name, columns, partition_by=["p"], properties=_LEAFY)
    lake.append(name, rows_between(0, rows))


def rows_between(start: int, stop: int, *, of: str = "first") -> DataFrame:
    """Return rows in four pieces, of which two workers do two at a time."""
    some = the_lake().spark.range(start, stop, 1, 4)
    return some.selectExpr("id", "id % 4 AS p", f"'{of}' AS v")


def values(name: str) -> dict[int, str]:
    """Return the rows of a table; every id once."""
    found = the_lake().read(name).toArrow()
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, found["v"].to_pylist(), strict=True))


def is_sound(name: str) -> bool:
    """Tell whether a table keeps all rules."""
    return bool(the_lake().table(name).verify(deep=True).is_clean)


def statements(name: str) -> list[tuple[Any, ...]]:
    """Delete and merge, and return what is left, as a condition on the DataFrame finds it."""
    lake = the_lake()
    assert internals(lake.spark) is not None, "files are planned when Spark asks"
    lake.sql(f"DELETE FROM {name} WHERE id % 10 = 0")
    lake.sql(f"""
        MERGE INTO {name} AS t
        USING (SELECT id + 90 AS id, 0 AS p, 'merged' AS v FROM range(20)) AS s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v
        WHEN NOT MATCHED THEN INSERT *
    """)
    found = lake.read(name).where("id >= 88 AND id < 93")
    return sorted((row.id, row.v) for row in found.collect())


def changed(name: str) -> dict[str, int]:
    """Return how many rows were changed in which way."""
    counted = the_lake().changes(name).groupBy("_change_type").count().collect()
    return {row["_change_type"]: row["count"] for row in counted}


def plans(name: str, where: str) -> bool:
    """Tell whether executors plan a scan as the driver does, leaf by leaf."""
    lake = the_lake()
    here = lake.table(name).scan(where).plan()
    there = plan(lake.spark, lake.table(name).scan(where), leaves_here=0)
    assert here.metrics.data_leaves_read > 1
    return bool(there.tasks.equals(here.tasks) and there.metrics == here.metrics)


def maintain(name: str) -> tuple[int, int]:
    """Do what keeps a table small, and return how many data files it had and has.

    Every row stays, under its id and as old as it was.
    """
    lake = the_lake()
    before, files = lineage(name), lake.table(name).scan().plan().tasks.num_rows
    lake.sql(
        f"CALL system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    lake.sql(f"CALL system.rewrite_position_delete_files('{name}')")
    lake.sql(f"CALL system.rewrite_manifests('{name}')")
    lake.sql(
        f"CALL system.expire_snapshots(table => '{name}', retain_last => 1, older_than => now())"
    )
    lake.sql(f"CALL system.remove_orphan_files('{name}')")
    assert lineage(name) == before
    return files, lake.table(name).scan().plan().tasks.num_rows


def lineage(name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table with their ids and ages."""
    columns = ["id", "v", "_row_id", "_last_updated_sequence_number"]
    return sorted(map(tuple, the_lake().read(name, columns=columns).collect()))


def play(seed: int, operations: int) -> None:
    """Do anything to a table and to a list of rows: they are the same."""
    player = SparkPlayer(the_lake(), f"db.t{seed}", random.Random(seed), seed)
    while player.operations < operations:
        player.step()
    player.compare()
    player.compare_filtered()
    player.compare_changes()
    assert is_sound(f"db.t{seed}")
