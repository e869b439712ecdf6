"""Twenty-two questions about a parts trade get the same answers from a lake and from plain Parquet.

The lake's tables are partitioned, sorted, appended to and have deleted rows; the Parquet files
hold what should be left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icetree.spark import SparkLake, local
from tests.spark.settings import COMPILED
from tests.spark.tpch.data import tables

SCALE = 0.02
QUERIES = sorted((Path(__file__).parent / "queries").glob("q*.sql"))
#: How tables are laid out, where not as they come: partitions, order, in how many appends.
LAYOUT: dict[str, dict[str, Any]] = {
    "lineitem": {"partition_by": ["year(l_shipdate)"], "order_by": ["l_shipdate"]},
    "orders": {"order_by": ["o_orderdate"]},
    "customer": {"partition_by": ["c_mktsegment"]},
    "part": {"partition_by": ["bucket(3, p_partkey)"]},
}
APPENDS = {"lineitem": 3, "orders": 2, "partsupp": 2}
#: Of each kind of question one: groups, joins, subqueries that exist, are in or are one value.
USUAL = {"q13", "q16", "q17", "q21"}
#: Lines of these orders are deleted, in two steps.
GONE = {"l_orderkey % 100 = 5": (100, 5), "l_orderkey % 50 = 33": (50, 33)}


@dataclass(frozen=True)
class Both:
    """The same rows in a lake and as views of plain files."""

    lake: SparkLake
    plain: SparkSession


@pytest.fixture(scope="module")
def both(compiled: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Both:
    spark, place = compiled, tmp_path_factory.mktemp("tpch")
    lake = local(place / "lake", spark=spark)
    lake.create_namespace("tpch")
    lake.namespace = "tpch"
    plain = spark.newSession()
    for name, value in COMPILED.items():
        plain.conf.set(name, value)
    for name, rows in tables(SCALE).items():
        _load(lake, place / "in", name, rows)
        left = rows.filter(_staying(rows)) if name == "lineitem" else rows
        file = place / f"{name}.parquet"
        pq.write_table(left, file, compression="zstd")
        plain.read.parquet(str(file)).createOrReplaceTempView(name)
    for condition in GONE:
        lake.delete("tpch.lineitem", condition)
    return Both(lake, plain)


def _load(lake: SparkLake, folder: Path, name: str, rows: pa.Table) -> None:
    """Put rows into a new table, in as many appends as its layout asks for."""
    folder.mkdir(exist_ok=True)
    pieces = APPENDS.get(name, 1)
    ends = [rows.num_rows * at // pieces for at in range(pieces + 1)]
    for at, (start, end) in enumerate(pairwise(ends)):
        file = folder / f"{name}-{at}.parquet"
        pq.write_table(rows.slice(start, end - start), file, compression="zstd")
        write = lake.write(f"tpch.{name}", lake.spark.read.parquet(str(file)))
        if at == 0:
            write.create(**LAYOUT.get(name, {}))
        else:
            write.append()


def _staying(lines: pa.Table) -> pa.Array:
    keys = lines["l_orderkey"].to_numpy()
    return pa.array(~np.any([keys % by == left for by, left in GONE.values()], axis=0))


def test_there_are_twenty_two_questions() -> None:
    assert [query.stem for query in QUERIES] == [f"q{number:02d}" for number in range(1, 23)]


def test_lines_that_were_deleted_are_marked_in_their_files(both: Both) -> None:
    tasks = both.lake.table("tpch.lineitem").scan().plan().tasks
    stored, marked = (pc.sum(tasks[name]).as_py() for name in ("record_count", "dv_cardinality"))
    assert marked > 2_000
    assert stored - marked == both.plain.table("lineitem").count()


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(query, id=query.stem, marks=() if query.stem in USUAL else pytest.mark.long)
        for query in QUERIES
    ],
)
def test_a_lake_answers_as_plain_files_do(both: Both, query: Path) -> None:
    text = query.read_text()
    expected, found = both.plain.sql(text), both.lake.sql(text)
    assert found.columns == expected.columns
    answer, wanted = found.collect(), expected.collect()
    assert wanted, "a question without an answer tells nothing"
    assert len(answer) == len(wanted)
    # Every query says the order of its rows down to the last one.
    assert all(map(_is_same, answer, wanted))


def _is_same(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(map(_is_equal, row, other))


def _is_equal(value: Any, other: Any) -> bool:
    """Compare; sums of floats depend on the order in which they were added."""
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-9)
    return type(value) is type(other) and value == other
