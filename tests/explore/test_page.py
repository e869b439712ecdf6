"""The page as one file: all of it is in there, and nothing of a table is markup or a script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from icetree.cli.main import cli
from icetree.errors import InvalidInput, Unsupported
from icetree.explore import page as pages
from icetree.explore.page import Page, key, one_file
from icetree.explore.views import look
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.explore.browsing import built
from tests.explore.tables import live, open_lake

pytestmark = built


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("page")) as lake:
        lake.create_namespace("db")
        live(lake)
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table("db.t")


@pytest.fixture(scope="module")
def html(lake: Lake) -> str:
    return one_file(lake.table("db.t"))


def answers(html: str) -> dict[str, Any]:
    [told] = re.findall(
        r'<script id="told" type="application/json">(.*?)</script>', html, re.DOTALL
    )
    found: dict[str, Any] = json.loads(told)["answers"]
    return found


def test_a_file_answers_what_the_server_does(table: Table, html: str) -> None:
    told = answers(html)
    line = look(table, "history", {})["line"]
    assert told[key("history", {})]["line"] == line
    frames = [frame for name, part in told.items() if name.startswith("film") for frame in part]
    assert frames == look(table, "film", {})
    for at in line:
        given = {"at": at, "by": "at_day"}
        assert told[key("scale", given)] == look(table, "scale", given)
    assert told[key("health", {})] == look(table, "health", {})


def test_a_file_holds_the_snapshots_of_its_range_alone(table: Table) -> None:
    line = look(table, "history", {})["line"]
    told = answers(one_file(table, since=int(line[2]), upto=int(line[6])))
    inside = line[3:7]
    assert told[key("history", {})]["line"] == inside
    _is_of(told, inside)
    others = set(line) - set(inside)
    assert not [name for name in told if any(other in name for other in others)]


def test_a_file_may_be_of_a_branch(table: Table) -> None:
    line = look(table, "history", {"at": "staging"})["line"]
    _is_of(answers(one_file(table, upto="staging")), line)
    _is_of(answers(one_file(table, since=int(line[-2]), upto="staging")), line[-1:])


def test_a_file_may_be_of_long_ago(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    line = look(table, "history", {})["line"]
    monkeypatch.setattr("icetree.explore.history.MOST", 3)
    _is_of(answers(one_file(table, upto=int(line[2]))), line[:3])


def _is_of(told: dict[str, Any], line: list[str]) -> None:
    """Assert that every view of a file is of its line, and tells each snapshot."""
    known = told[key("history", {})]
    assert known["line"] == [each["snapshot_id"] for each in known["snapshots"]] == line
    frames = [told[key("film", {"at": at, "limit": "1"})] for at in line]
    assert [each["snapshot_id"] for [each] in frames] == line
    costs = told[key("costs", {"at": line[-1]})]
    assert [each["snapshot_id"] for each in costs["commits"]] == line


def test_a_file_holds_no_rows(html: str) -> None:
    assert not [name for name in answers(html) if name.startswith("rows") or '["rows"' in name]


def test_a_file_may_hold_a_filter_and_what_it_leaves(table: Table) -> None:
    head, where = str(table.metadata.current_snapshot_id), "id < 100"
    told = answers(one_file(table, where=where))
    given = {"at": head, "where": where}
    assert told[key("pruned", given)] == look(table, "pruned", given)
    with pytest.raises(InvalidInput):
        one_file(table, where="id <")


def test_a_file_runs_the_script_that_it_was_built_with_and_no_other(html: str) -> None:
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', html)
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "default-src 'none';" in policy
    assert "connect-src 'none';" in policy
    assert "unsafe" not in policy
    assert html.count("<script") == 2
    assert not re.search(r'(src|href)="(?!data:|#)', html)


def test_nothing_that_a_table_says_ends_the_part_that_it_stands_in() -> None:
    told = {"name": "</script><script>alert(1)</script><!--&\u2028"}
    html = pages._whole(Page(html=_EMPTY, script="s", style="c"), told)
    assert html.count("</script>") == 2
    assert "<!--" not in html
    assert "\u2028" not in html
    inner = html.partition('type="application/json">')[2].partition("</script>")[0]
    assert json.loads(inner) == told


_EMPTY = (
    '<link rel="stylesheet" href="ui/explorer.css">'
    '<script id="told" type="application/json">{}</script><script src="ui/explorer.js"></script>'
)


def test_a_page_that_is_not_built_is_one_clear_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pages, "files", lambda _: tmp_path)
    with pytest.raises(Unsupported, match=r"the explorer's page is not built: run `make page`"):
        pages.page()


def test_the_command_writes_a_file_and_says_how_large_it_is(lake: Lake, tmp_path: Path) -> None:
    folder = Path(lake.table("db.t").location).parents[2]
    target = tmp_path / "tree.html"
    options = ["--catalog", f"sqlite:///{folder}/c.db", "--warehouse", str(folder / "lake")]

    def run(*words: str) -> Any:
        return CliRunner().invoke(cli, [*options, "explore", *words])

    told = run("db.t", "-o", str(target), "--where", "id < 9")
    assert told.exit_code == 0
    assert f"{target.stat().st_size:,} bytes" in told.output
    assert "which table" in run("-o", str(target)).output
    assert "are for a file" in run("db.t", "--since", "main").output
    assert "no snapshots in this range" in run("db.t", "-o", str(target), "--since", "main").output
    assert run("db.nothing", "-o", str(target)).exit_code == 1
    assert "a file that can be written" in run("db.t", "-o", str(tmp_path / "no" / "x.html")).output
