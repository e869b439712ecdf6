"""The page of maintenance: every command and every CALL that its sentences name runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import icetree
from icetree.cli.main import cli
from icetree.spark.sql.call.procedures import PROCEDURES
from tests.spark.sql_lake import SqlLake

PAGE = (Path(__file__).parents[1] / "docs" / "maintenance.md").read_text(encoding="utf-8")
#: What stands within a sentence, be it over two lines.
INLINE = [
    " ".join(each.split())
    for each in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
]
COMMANDS = [each for each in INLINE if each.startswith("icetree ")]
CALLS = [each for each in INLINE if each.startswith("CALL ")]
ON_SPARK = [each for each in INLINE if re.fullmatch(r"lake\.\w+\(.+\)", each)]
ROWS = pa.table({"id": [1, 2, 3], "user": [1, 1, 2]})


def test_the_page_has_some() -> None:
    assert {shlex.split(each)[1] for each in COMMANDS} >= {"optimize", "maintain", "expire"}
    assert {re.split(r"[.(]", each)[1] for each in CALLS} >= {"rewrite_data_files", "optimize"}
    assert ON_SPARK
    verbs = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert verbs <= PROCEDURES.keys(), "each verb of the table is a procedure"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs(command: str, tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.clicks", ROWS.schema).append(ROWS)
    _, name, *words = shlex.split(command)
    # What goes on until it is stopped.
    once = ["--rounds", "1"] if name == "maintain" else []
    given = ["--catalog", f"sqlite:///{tmp_path}/c.db", name, *words, *once]
    found = CliRunner().invoke(cli, given)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.strip()


def test_every_call_runs(spark: SparkSession, tmp_path: Path) -> None:
    sql = SqlLake(spark, tmp_path)
    sql.lake.create_namespace("shop")
    table = sql.lake.create_table("shop.clicks", ROWS.schema)
    for call in CALLS:
        for _ in range(5):
            table.append(ROWS)
        before = table.scan().count()
        assert sql(call)
        assert table.refresh().scan().count() == before
        assert table.scan().plan().tasks.num_rows == 1
    for text in ON_SPARK:
        assert eval(text, {"lake": sql.lake}).dry_run is False, text
