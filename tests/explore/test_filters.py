"""A filter at a point of time is about the columns of that time, whoever judges by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from icetree.cli.main import cli
from icetree.errors import InvalidInput
from icetree.explore.views import look
from icetree.spec.locations import absolute_array
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.explore.tables import open_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("filters")) as lake:
        lake.create_namespace("db")
        _worn(lake)
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table("db.t")


def _worn(lake: Lake) -> None:
    """Make a table two of whose columns have swapped their names; one has gone, and one came."""
    table = lake.create_table(
        "db.t", pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
    )
    for at in range(4):
        table.append(pa.table({"a": [at], "b": [100 + at], "c": [at]}))
    table.create_tag("before")
    with table.edit_schema() as edit:
        edit.rename("a", "tmp")
        edit.drop("c")
    with table.edit_schema() as edit:
        edit.rename("b", "a")
    with table.edit_schema() as edit:
        edit.rename("tmp", "b")
        edit.add("d", pa.int64())
    table.append(pa.table({"a": [1], "b": [2], "d": [7]}))


@pytest.mark.parametrize(
    ("at", "where"),
    [
        ("before", "a < 2"), ("before", "b >= 103"), ("before", "c = 1"),
        ("main", "a < 2"), ("main", "b = 2"), ("main", "a = 1 and d = 7"),
    ],
)  # fmt: skip
def test_who_judges_by_a_filter_keeps_the_files_that_a_scan_reads(
    table: Table, at: str, where: str
) -> None:
    planned = table.scan(where, at=at).plan().tasks["location"]
    tasks = absolute_array(planned, table.location).to_pylist()
    assert 0 < len(tasks) < 4
    given = {"at": at, "where": where}
    bars = look(table, "scale", given)["bars"]
    assert sorted(each["file_path"] for each in bars if each["kept"]) == sorted(tasks)
    assert look(table, "pruned", given)["planned"]["files"] == len(tasks)
    explained = table.explain(where, at=at).objects.to_pylist()
    assert sorted(each["object"] for each in explained if each["kept"]) == sorted(tasks)
    for command in ("files", "plan"):
        told = _run(table, command, "--at", at, "--where", where, "--json")
        listed = told["tasks"] if command == "plan" else told
        assert sorted(each["file_path"] for each in listed) == sorted(tasks)


def test_an_axis_is_a_column_of_today_whatever_is_looked_at(table: Table) -> None:
    told = look(table, "scale", {"at": "before", "by": "a"})
    assert sorted(each["first"] for each in told["bars"]) == [100, 101, 102, 103]
    assert look(table, "scale", {"at": "before", "by": "d"})["unplaced"] == 4


@pytest.mark.parametrize("view", ["pruned", "scale"])
def test_a_filter_without_end_is_refused_before_it_is_judged(table: Table, view: str) -> None:
    where = " or ".join(f"a = {at}" for at in range(3_000))
    with pytest.raises(InvalidInput, match=r"a filter of .* characters is more than the 2,000"):
        look(table, view, {"where": where})
    look(table, view, {"where": " or ".join(f"a = {at}" for at in range(100))})


def _run(table: Table, *words: str) -> Any:
    folder = Path(table.location).parents[2]
    options = ["--catalog", f"sqlite:///{folder}/c.db", "--warehouse", str(folder / "lake")]
    done = CliRunner().invoke(cli, [*options, words[0], "db.t", *words[1:]])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)
