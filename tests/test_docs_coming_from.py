"""What the page for those who come from elsewhere says things are called is what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import icetree
from icetree.spark import SparkLake, connect
from icetree.table.table import Table
from tests.test_language import HELD

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text(encoding="utf-8")
#: What stands before a dot, and whose methods follow it.
OWNERS = {"lake": SparkLake, "table": Table, "icetree": icetree}


def ours() -> Iterator[str]:
    """Yield what stands as code in the columns of icetree."""
    for row in re.findall(r"^\| .+ \| (.+) \|$", PAGE, re.MULTILINE):
        yield from re.findall(r"`([^`]+)`", row)


def is_there(owner: object, names: list[str]) -> bool:
    """Tell whether names, one of the other, lead to something."""
    for name in names:
        found = getattr(owner, name, None)
        if found is None:
            return False
        told = getattr(getattr(found, "fget", None), "__annotations__", {}).get("return")
        owner = next((each for each in HELD if each.__name__ == told), found)
    return True


def test_every_name_of_a_table_is_one_of_the_code() -> None:
    called = [each for each in ours() if re.match(r"[a-z_.]+\(|(?:lake|table|icetree)\.", each)]
    assert len(called) > 20
    for each in called:
        first, *names = re.split(r"\(", each)[0].split(".")
        if first in OWNERS:
            assert is_there(OWNERS[first], names), each
        else:
            assert any(is_there(held, [first, *names]) for held in HELD), each


def test_every_call_that_is_spelt_out_runs(tmp_path: Path, spark: SparkSession) -> None:
    """`lake.view` is there and is something else: a name alone tells little."""
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "a": [1, 2], "b": [3, 4]})
    lake = connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake"), spark=spark)
    lake.create_namespace("db")
    table = lake.create_table("db.t", rows.schema)
    first = table.append(rows)
    assert first.snapshot is not None
    pq.write_table(rows, tmp_path / "landed.parquet")
    given = {
        "lake": lake, "rows": rows, "where": "id = 1", "to": first.snapshot.snapshot_id,
        "df": spark.createDataFrame(rows.to_pandas()), "paths": [str(tmp_path / "landed.parquet")],
    }  # fmt: skip
    whole = [each for each in ours() if re.fullmatch(r"(?:lake|table)\.[\w.]+\([^…]*\)", each)]
    assert len(whole) >= 8
    try:
        for each in whole:
            eval(each, {**given, "table": lake.table("db.t")})
    finally:
        lake.close()
