"""Stock Iceberg Java on Spark reads tables through plans of the server."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.peers.filters import Filter, random_filters
from tests.peers.values import pools
from tests.serve.plan.rich import rich_table
from tests.serve.stock_spark import told

FILTERS = 8 if EFFORT == 1 else 15 * EFFORT
TOLD = "id, n, country, amount, d, ts, tsn, flag, place"
TOTALS = "count(*), count(n), min(id), max(d), max(country)"
#: Conditions that choose whole partitions: Spark tests no row by them, so that plans must be exact.
WHOLE = [
    "country = 'DE'",
    "country is null",
    "country in ('FR', 'US')",
    "country <> 'FR'",
    "d >= date'2024-01-01'",
    "d < date'2024-02-01'",
    "lake.system.bucket(2, id) = 1",
    "false",
]
_SIGNS = {"lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">=", "eq": "=", "not-eq": "<>"}


def to_sql(filter: Filter) -> str:
    kind = filter["type"]
    match kind:
        case "and" | "or":
            return f"({to_sql(filter['left'])} {kind} {to_sql(filter['right'])})"
        case "not":
            return f"(not {to_sql(filter['child'])})"
        case "is-null" | "not-null":
            return f"{filter['term']} is {'not ' if kind == 'not-null' else ''}null"
        case "in" | "not-in":
            listed = ", ".join(map(_literal, filter["values"]))
            return f"{filter['term']} {kind.replace('-', ' ')} ({listed})"
        case "starts-with":
            return f"startswith({filter['term']}, {_literal(filter['value'])})"
        case "not-starts-with":
            return f"not startswith({filter['term']}, {_literal(filter['value'])})"
    return f"{filter['term']} {_SIGNS[kind]} {_literal(filter['value'])}"


def _literal(value: Any) -> str:
    match value:
        case datetime():
            kind = "timestamp_ntz" if value.tzinfo is None else "timestamp"
            return f"{kind}'{value.isoformat(sep=' ')}'"
        case date():
            return f"date'{value}'"
        case bool() | int() | Decimal():
            return str(value)
    return f"'{value}'"


@pytest.mark.law
def test_spark_reads_the_rows_that_are_there(uri: str, served_lake: Lake, tmp_path: Path) -> None:
    table = rich_table(served_lake, "db.t", equality=True)
    known = pools("db.v3_evolved").items()
    # To Spark NaN is greater than every number, and to the bounds of a file it is not.
    columns = {name: pool for name, pool in known if name not in ("cost", "extra")}
    filters = [to_sql(each) for each in random_filters(SEED, FILTERS, columns)]
    questions = [_selects(where=where) for where in ("true", *filters, *WHOLE)]
    questions += [_selects(where=where, what=TOTALS) for where in ("true", "id < 100")]
    former = _former(table)
    for each in former:
        at = each.snapshot_id
        some = "id < 70 and country is not null"
        questions += [_selects(where=where, at=at) for where in ("true", "id < 70", some)]
    rows = [_view(table, at, tmp_path) for at in (None, *(each.snapshot_id for each in former))]
    before = _plans(uri)
    statements = [*rows, *(each for pair in questions for each in pair)]
    answers = told(tmp_path, uri, statements)[len(rows) :]
    for question, found, wanted in zip(questions, answers[::2], answers[1::2], strict=True):
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), question
    # What is false for every file is not asked for.
    assert _plans(uri) - before >= len(questions) - 1


def _former(table: Table) -> list[Snapshot]:
    """Return former snapshots: one with a vector, one with equality deletes too, of an old schema both."""
    every = sorted(table.history(), key=lambda each: each.sequence_number)
    return every if EFFORT > 1 else every[2:6:2]


def _selects(*, where: str, what: str = TOLD, at: int | None = None) -> tuple[str, str]:
    """Return what asks the same of the table, and of the rows that icetree reads there."""
    of = "" if at is None else f" VERSION AS OF {at}"
    return (
        f"SELECT {what} FROM db.t{of} WHERE {where}",
        f"SELECT {what} FROM {_named(at)} WHERE {where}",
    )


def _view(table: Table, at: int | None, folder: Path) -> str:
    """Write down the rows that icetree reads of a snapshot; return what makes Spark know them."""
    place = folder / f"{at}.parquet"
    pq.write_table(table.scan(at=at).to_arrow(), place)
    return f"CREATE TEMPORARY VIEW {_named(at)} USING parquet OPTIONS (path '{place}')"


def _named(at: int | None) -> str:
    return f"rows_{at or 'now'}"


def _plans(uri: str) -> int:
    """Return how many plans the server was asked for."""
    with urlopen(f"{uri}/metrics") as answer:
        said: str = answer.read().decode()
    found = re.findall(
        r'^icetree_requests_total\{route="[^"]*/plan",.*\} (\d+)$', said, re.MULTILINE
    )
    return sum(map(int, found))
