"""Stock Iceberg Java on Spark reads tables through plans of the server."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.jars import REPOSITORY, fetched
from tests.peers.filters import Filter, random_filters
from tests.peers.values import pools
from tests.serve.plan.rich import rich_table

FILTERS = 15 * EFFORT
TOLD = ["id", "n", "country", "amount", "d", "ts", "tsn", "flag", "place"]
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


@pytest.mark.long
def test_spark_reads_the_rows_that_are_there(uri: str, served_lake: Lake, tmp_path: Path) -> None:
    table = rich_table(served_lake, "db.t", equality=True)
    known = pools("db.v3_evolved").items()
    # To Spark NaN is greater than every number, and to the bounds of a file it is not.
    columns = {name: pool for name, pool in known if name not in ("cost", "extra")}
    filters = [to_sql(each) for each in random_filters(SEED, FILTERS, columns)]
    now = _rows(table, None, tmp_path)
    questions = [_question(now, where=where) for where in ("", *filters, *WHOLE)]
    totals = ["count(*)", "count(n)", "min(id)", "max(d)", "max(country)"]
    questions += [_question(now, where=where, select=totals) for where in ("", "id < 100")]
    for snapshot in table.history():
        at = snapshot.snapshot_id
        then = _rows(table, at, tmp_path)
        some = {"where": "id < 70 and country is not null", "select": TOLD}
        questions += [_question(then, at=at), _question(then, at=at, **some)]
    for question, (found, wanted) in zip(questions, _asked(uri, questions, tmp_path), strict=True):
        assert found == wanted, question


def _question(rows: Path, **more: Any) -> dict[str, Any]:
    return {"table": "db.t", "rows": str(rows), "at": None, "where": "", "select": TOLD, **more}


def _rows(table: Table, at: int | None, folder: Path) -> Path:
    place = folder / f"{at}.parquet"
    pq.write_table(table.scan(at=at).to_arrow(), place)
    return place


def _asked(uri: str, questions: list[dict[str, Any]], folder: Path) -> Any:
    asked, answers = folder / "questions.json", folder / "answers.json"
    asked.write_text(json.dumps(questions))
    command = [sys.executable, "-m", "tests.serve.plan.spark_reads", str(fetched("iceberg-java"))]
    done = subprocess.run(
        [*command, uri, str(asked), str(answers)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(answers.read_text())
