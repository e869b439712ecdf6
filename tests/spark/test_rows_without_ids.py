"""Rows of snapshots from before an upgrade: no file says where ids begin, every file has its age."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icetree.spark import connect
from icetree.table.lake import Lake
from tests.spark.reading import reading
from tests.table.moving.old_tables import lake_on, old_table, uri

COLUMNS = ["id", "_row_id", "_last_updated_sequence_number"]
#: Ids of the two appends, of which a delete rewrote the file that had 3.
AGES = dict.fromkeys(range(0, 10, 2), 1) | dict.fromkeys((1, 5, 7, 9), 3)
AGES |= dict.fromkeys(range(10, 20), 2)

Told = list[tuple[int, int | None, int]]


def told(lake: Lake, at: int) -> Told:
    rows = lake.table("db.old").scan(at=at, columns=COLUMNS).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=lambda each: each[0])


@pytest.fixture
def upgraded(tmp_path: Path) -> int:
    """Upgrade a table of v2, and write to it; return its last snapshot from before."""
    theirs = old_table(tmp_path).current_snapshot()
    assert theirs is not None
    with lake_on(tmp_path) as lake:
        lake.upgrade_table("db.old")
        lake.table("db.old").delete("id = 15")
    return theirs.snapshot_id


@pytest.mark.parametrize("lazily", [True, False])
def test_rows_from_before_an_upgrade_have_no_id_and_the_age_of_their_file(
    spark: SparkSession, tmp_path: Path, upgraded: int, lazily: bool
) -> None:
    before = [(id, None, age) for id, age in sorted(AGES.items())]
    with lake_on(tmp_path) as lake:
        assert told(lake, upgraded) == before
        newest = lake.table("db.old").snapshot().snapshot_id
        after = told(lake, newest)
    with reading(spark, lazily=lazily):
        lake = connect(
            uri(tmp_path),
            warehouse=str(tmp_path / "ours"),
            properties={"name": "main"},
            spark=spark,
        )
        for at, expected in ((upgraded, before), (newest, after)):
            found = lake.read("db.old", at=at, columns=COLUMNS).orderBy("id")
            assert [tuple(row) for row in found.collect()] == expected
    ids = [row_id for _, row_id, _ in after]
    assert None not in ids
    assert len(set(ids)) == len(ids)
    assert {id: age for id, _, age in after} == {id: AGES[id] for id in AGES if id != 15}
