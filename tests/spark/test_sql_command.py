"""`icetree sql` from the outside, on the session of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from icetree.cli.main import cli
from tests.table.damage import make_table

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("lake")
    make_table(folder)
    environment = {"ICETREE_CATALOG": f"sqlite:///{folder}/catalog.db"}

    def invoke(*words: str, typed: str | None = None) -> Result:
        return CliRunner(env=environment).invoke(cli, ["sql", *words], input=typed)

    assert spark is not None
    return invoke


def test_statements_come_from_options_or_from_a_pipe(run: Run) -> None:
    by_option = run("-e", "SELECT 1 AS a; SELECT 2 AS a", "-e", "SELECT 3 AS a")
    assert (by_option.exit_code, by_option.stderr) == (0, "")
    assert by_option.stdout.split() == [
        "a",
        "1",
        "(1",
        "row)",
        "a",
        "2",
        "(1",
        "row)",
        "a",
        "3",
        "(1",
        "row)",
    ]
    by_pipe = run(typed="SELECT 1 AS a;\nSELECT 2 AS a;\nSELECT 3 AS a\n")
    assert by_pipe.stdout == by_option.stdout
    assert run(typed=" -- nothing\n").stdout == ""


def test_rows_of_a_table_are_changed_and_told_as_json(run: Run) -> None:
    before = json.loads(run("--json", "-e", "SELECT count(*) AS n FROM db.t").stdout)[0]["n"]
    done = json.loads(run("--json", "-e", "DELETE FROM db.t WHERE id = 405").stdout)
    assert done[0]["num_deleted_rows"] == 1
    after = json.loads(run("--json", "-e", "SELECT count(*) AS n FROM db.t").stdout)[0]["n"]
    assert after == before - 1
    some = run("-e", "SELECT id FROM db.t ORDER BY id", "--limit", "2").stdout
    assert "... and more" in some
    assert len(some.splitlines()) == 4


def test_the_first_statement_that_fails_is_a_sentence_and_ends_it(run: Run) -> None:
    found = run("-e", "SELECT 1 AS a; SELECT * FROM db.nope; SELECT 2 AS b")
    assert (found.exit_code, found.stderr.count("\n")) == (1, 1)
    assert "`db`.`nope`" in found.stderr
    assert "b" not in found.stdout
    wrong = run("-e", "SELEC 1", "--json")
    assert json.loads(wrong.stderr)["error"]["kind"] == "invalid input"
    zero = run("-e", "SELECT 1 / 0")
    assert (zero.exit_code, zero.stderr.count("\n")) == (1, 1)


def test_a_mistyped_catalog_starts_no_spark(tmp_path: Path) -> None:
    words = ["sql", "-e", "SELECT 1", "--catalog", f"sqlite:///{tmp_path}/nope.db"]
    found = CliRunner().invoke(cli, words)
    assert found.exit_code == 1
    assert "there is no catalog" in found.stderr
