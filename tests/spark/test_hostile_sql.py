"""Whatever a table holds and Spark says of it, `icetree sql` shows it and lets it act on no terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from icetree.cli.main import cli
from icetree.cli.refusal import show_failure
from tests.hostile_table import HOSTILE, NAME, acting, hostile_table


def quoted(name: str) -> str:
    return f"`{name}`"


COLUMN, NAMESPACE = quoted(NAME), quoted(NAME)
TABLE, WRONG = f"{NAMESPACE}.{quoted(NAME)}", quoted(f"x{NAME}")
VALUE = f"'{HOSTILE}'"

FINDS = (
    f"SELECT * FROM {TABLE}",
    f"SELECT {COLUMN} FROM {TABLE}",
    f"SELECT named_struct({VALUE}, {VALUE}) AS s, array({VALUE}) AS a, map({VALUE}, {VALUE}) AS m",
    f"SELECT 1 AS {COLUMN}, {VALUE}",
    f"SELECT * FROM {TABLE}.snapshots",
    f"SELECT * FROM {TABLE}.files",
    f"SELECT * FROM {TABLE} VERSION AS OF {VALUE.replace('.', '')}",
    "SHOW NAMESPACES",
    f"SHOW TABLES IN {NAMESPACE}",
    f"SHOW TBLPROPERTIES {TABLE}",
    f"DESCRIBE EXTENDED {TABLE}",
)
#: What they find is text of lines, which is Spark's or for Spark.
FINDS_LINES = (
    f"EXPLAIN SELECT * FROM {TABLE} WHERE {COLUMN} = {VALUE}",
    f"SHOW CREATE TABLE {TABLE}",
)
REFUSED = (
    HOSTILE,
    f"SELECT {WRONG} FROM {TABLE}",
    f"SELECT {COLUMN}( FROM {TABLE}",
    f"SELECT {COLUMN}({VALUE})",
    f"SELECT * FROM {NAMESPACE}.{WRONG}",
    f"SELECT CAST({COLUMN} AS INT) FROM {TABLE}",
    f"SELECT to_date({COLUMN}) FROM {TABLE}",
    f"SELECT raise_error({COLUMN}) FROM {TABLE}",
    f"SELECT assert_true(n < 0, {COLUMN}) FROM {TABLE}",
    f"SELECT * FROM {TABLE} VERSION AS OF 'x{NAME}'",
    f"SET {COLUMN}={VALUE}",
    f"USE {WRONG}",
    f"CALL system.{COLUMN}('x')",
    f"CALL system.rollback_to_snapshot({VALUE}, 1)",
    f"INSERT INTO {TABLE} VALUES (1)",
    f"ALTER TABLE {TABLE} DROP COLUMN {WRONG}",
    f"CREATE TABLE {TABLE} (a INT)",
)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert spark is not None
    made = tmp_path_factory.mktemp("hostile")
    hostile_table(made, is_damaged=False)
    return made


def run(folder: Path, statement: str, *words: str) -> Result:
    options = ["--catalog", f"sqlite:///{folder}/catalog.db", "--warehouse", str(folder / "lake")]
    return CliRunner().invoke(cli, [*options, "sql", "-e", statement, *words])


@pytest.mark.parametrize("statement", [*FINDS, *FINDS_LINES])
def test_what_is_found_is_only_seen(folder: Path, statement: str) -> None:
    found = run(folder, statement)
    assert (found.exception, found.exit_code) == (None, 0)
    assert "got you" in found.stdout
    assert acting(found.output) <= ({"\n"} if statement in FINDS_LINES else set())


@pytest.mark.parametrize("statement", REFUSED)
def test_what_spark_has_against_a_statement_is_only_seen(folder: Path, statement: str) -> None:
    found = run(folder, statement)
    assert isinstance(found.exception, SystemExit)
    assert found.exit_code == 1
    assert acting(found.output) == set()
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("statement", [FINDS[0], *FINDS_LINES, REFUSED[1], REFUSED[7]])
def test_json_means_what_is_found_and_what_spark_says(folder: Path, statement: str) -> None:
    found = run(folder, statement, "--json")
    assert acting(found.output) == set()
    told = json.loads(found.stdout or found.stderr)
    assert told[0][NAME] == HOSTILE if statement == FINDS[0] else "got you" in str(told)


def test_a_failure_of_ours_is_only_seen(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from icetree.cli.main import main

    def fail(*_: object) -> None:
        raise ValueError(HOSTILE)

    monkeypatch.setattr("icetree.spark.lake.SparkLake.sql", fail)
    monkeypatch.setattr(sys, "excepthook", None)
    catalog = f"sqlite:///{folder}/catalog.db"
    monkeypatch.setattr(sys, "argv", ["icetree", "--catalog", catalog, "sql", "-e", "SELECT 1"])
    with pytest.raises(ValueError, match="got you") as caught:
        main()
    assert sys.excepthook is show_failure
    sys.excepthook(caught.type, caught.value, caught.tb)
    said = capsys.readouterr().err
    assert "ValueError: a\\x1b]0;got you" in said
    assert acting(said) <= {"\n"}
