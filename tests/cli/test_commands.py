"""The commands on a small table in a SQLite catalog, from the outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import icetree
from icetree.cli.commands.tables import split_terms
from icetree.cli.main import cli
from tests.table.damage import make_table

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lake")
    table = make_table(made)
    table.create_tag("first", at=list(table.history())[-1].snapshot_id)
    return made


def runner(folder: Path) -> Run:
    options = ["--catalog", f"sqlite:///{folder}/catalog.db", "--warehouse", str(folder / "lake")]

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, [*options, *words])

    return run


@pytest.fixture
def run(folder: Path) -> Run:
    return runner(folder)


def parsed(result: Result) -> Any:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


COMMANDS = [
    ("ls",),
    ("describe", "db.t"),
    ("snapshots", "db.t"),
    ("refs", "db.t"),
    ("files", "db.t"),
    ("files", "db.t", "--where", "id > 300"),
    ("tree", "db.t"),
    ("plan", "db.t", "--where", "country = 'DE'"),
    ("explain", "db.t", "--where", "id >= 300 and x < 3"),
    ("changes", "db.t"),
    ("verify", "db.t"),
    ("repair", "db.t"),
    ("expire", "db.t", "--retain-last", "1"),
    ("orphans", "db.t"),
    ("rewrite-data-files", "db.t", "--option", "rewrite-all=true"),
    ("compute-table-stats", "db.t", "--columns", "id"),
    ("rewrite-manifests", "db.t"),
    ("rewrite-position-delete-files", "db.t"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_prints_json_and_plain_text(run: Run, words: tuple[str, ...]) -> None:
    assert parsed(run(*words, "--json"))
    plain = run(*words)
    assert (plain.exit_code, plain.stderr) == (0, "")
    assert plain.stdout.strip()
    assert all(line == line.rstrip() for line in plain.stdout.splitlines() if words[0] != "tree")


def test_ls_shows_namespaces_and_their_tables(run: Run) -> None:
    assert parsed(run("ls", "--json")) == [
        {"kind": "namespace", "name": "db"},
        {"kind": "table", "name": "db.t"},
    ]
    assert parsed(run("ls", "db", "--json")) == [{"kind": "table", "name": "db.t"}]


def test_views_are_listed_described_renamed_and_dropped_as_such(run: Run, folder: Path) -> None:
    with icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder)) as lake:
        lake.create_view("db.v", "SELECT id FROM db.t", "id long", properties={"comment": "ids"})
    assert parsed(run("ls", "db", "--json")) == [
        {"kind": "table", "name": "db.t"},
        {"kind": "view", "name": "db.v"},
    ]
    found = parsed(run("describe", "db.v", "--json"))
    assert (found["kind"], found["texts"]) == ("view", {"spark": "SELECT id FROM db.t"})
    assert "SELECT id FROM db.t" in run("describe", "db.v").stdout
    assert run("rename", "db.v", "--to", "db.w").stdout == "db.v is db.w now\n"
    assert "leave out --purge" in run("drop", "db.w", "--purge", "--yes").stderr
    assert "repeat with --yes" in run("drop", "db.w").stdout
    assert run("drop", "db.w", "--yes").stdout.startswith("dropped db.w; its newest metadata was ")
    assert parsed(run("ls", "db", "--json")) == [{"kind": "table", "name": "db.t"}]


def test_a_table_can_be_created(tmp_path: Path) -> None:
    run = runner(tmp_path)
    made = run(
        "create", "shop.orders",
        "--schema", "id long not null, ts timestamptz, country string, tags list<string>",
        "--partition-by", "day(ts), bucket(16, id)", "--order-by", "ts desc", "--order-by", "id",
        "--set", "write.root.max-data-entries=10",
    )  # fmt: skip
    assert (made.exit_code, made.stderr) == (0, "")
    found = parsed(run("describe", "shop.orders", "--json"))
    assert found["partition_by"] == ["day(ts)", "bucket(16, id)"]
    assert found["order_by"] == ["ts desc", "id"]
    assert found["properties"] == {"write.root.max-data-entries": "10"}
    assert [column["name"] for column in found["columns"]] == ["id", "ts", "country", "tags"]
    assert found["columns"][0]["required"]
    assert parsed(run("verify", "shop.orders", "--json"))["clean"]


def test_snapshots_come_newest_first_with_their_refs(run: Run) -> None:
    found = parsed(run("snapshots", "db.t", "--json"))
    assert [each["sequence_number"] for each in found] == [7, 6, 5, 4, 3, 2, 1]
    assert (found[0]["refs"], found[-1]["refs"]) == (["main"], ["first"])
    short = run("snapshots", "db.t", "--limit", "2").stdout
    assert "... and 5 more" in short


def test_a_filter_leaves_files_out(run: Run) -> None:
    every = parsed(run("files", "db.t", "--json"))
    some = parsed(run("files", "db.t", "--where", "id >= 900", "--json"))
    data = [each for each in some if each["content"] == 0]
    assert 0 < len(data) < len(every)
    planned = parsed(run("plan", "db.t", "--where", "id >= 900", "--json"))
    assert {each["file_path"] for each in planned["tasks"]} == {each["file_path"] for each in data}


def test_an_older_snapshot_is_named_by_id_or_tag(run: Run) -> None:
    oldest = parsed(run("snapshots", "db.t", "--json"))[-1]["snapshot_id"]
    by_id = parsed(run("files", "db.t", "--at", str(oldest), "--json"))
    by_tag = parsed(run("files", "db.t", "--at", "first", "--json"))
    assert by_id == by_tag
    assert len(parsed(run("plan", "db.t", "--at", "first", "--json"))["tasks"]) == len(by_id)
    assert parsed(run("explain", "db.t", "--where", "id > 0", "--at", "first", "--json"))


def test_changes_since_a_tag_leave_out_what_came_before(run: Run) -> None:
    every = parsed(run("changes", "db.t", "--json"))
    later = parsed(run("changes", "db.t", "--since", "first", "--json"))
    assert 0 < len(later) < len(every)
    assert {each["change"] for each in every} == {"added", "removed"}
    net = parsed(run("changes", "db.t", "--net", "--json"))
    assert {each["change"] for each in net} == {"added"}


def test_the_tree_is_drawn_in_three_ways(run: Run, tmp_path: Path) -> None:
    drawn = run("tree", "db.t").stdout
    assert "Root Manifest" in drawn
    assert drawn.isascii()
    assert run("tree", "db.t", "--format", "mermaid").stdout.startswith("flowchart")
    file = tmp_path / "tree.svg"
    assert run("tree", "db.t", "--format", "svg", "-o", str(file)).exit_code == 0
    assert ET.parse(file).getroot().tag.endswith("svg")
    text = tmp_path / "tree.txt"
    assert run("tree", "db.t", "-o", str(text)).exit_code == 0
    assert "Root Manifest" in text.read_text()
    told = parsed(run("tree", "db.t", "--json"))
    assert told["root"]["kind"] == "Root Manifest"


def test_verify_exits_with_1_for_findings(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    run = runner(tmp_path)
    assert run("verify", "db.t", "--deep").exit_code == 0
    snapshot = table.snapshot()
    assert snapshot is not None
    root = Path(table.location) / str(snapshot.root_manifest)
    content = root.read_bytes()
    root.unlink()
    found = run("verify", "db.t", "--json")
    assert found.exit_code == 1
    [finding] = json.loads(found.stdout)["findings"]
    assert finding["file"] == snapshot.root_manifest
    assert run("verify", "db.t").stdout.splitlines()[0].startswith("ERROR missing file: ")
    assert run("repair", "db.t").stdout.startswith("cannot be repaired: ")
    root.write_bytes(content)
    Path(table.state.metadata_location).write_bytes(b"{")
    found = run("verify", "db.t", "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["findings"][0]["kind"] == "metadata"
    Path(table.state.metadata_location).unlink()
    found = run("verify", "db.t", "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["findings"][0]["kind"] == "missing file"


def test_an_option_that_may_be_repeated_is_said_of_one_at_a_time(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    run = runner(tmp_path)
    table.append(table.scan().to_arrow())
    table.append(table.scan().to_arrow())
    _, *old = table.history()
    words = [word for each in old[:2] for word in ("--snapshot-id", str(each.snapshot_id))]
    assert run("expire", "db.t", *words, "--yes").exit_code == 0
    [_, *left] = table.refresh().history()
    assert left == old[2:]
    whole, current = (
        parsed(run("verify", "db.t", "--snapshots", each, "--json"))["counts"]["snapshots"]
        for each in ("all", "current")
    )
    assert (whole, current) == (1 + len(left), 1)
    column = table.schema.fields[0].name
    keys = ("--order-by", f"{column} desc", "--option", "rewrite-all=true", "--yes")
    assert run("rewrite-data-files", "db.t", *keys).exit_code == 0
    for file in table.refresh().inspect.files()["file_path"].to_pylist():
        rows = pq.read_table(file)[column].to_pylist()
        assert rows == sorted(rows, reverse=True)


def test_verify_exits_with_2_when_it_cannot_run(run: Run) -> None:
    found = run("verify", "db.nope")
    assert (found.exit_code, found.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("describe", "db.tt"), "did you mean db.t?"),
        (("describe", "t"), "write namespace.table"),
        (("snapshots", "other.t"), "there are the namespaces db"),
        (("verify", "db.zzz"), "there are db.t"),
        (("files", "db.t", "--where", "idd = 3"), "there are: id, ts"),
        (("files", "db.t", "--where", "id = = 3"), "id = = 3"),
        (("explain", "db.t", "--where", "nope > 3"), "no column 'nope'"),
        (("explain", "db.t", "--where", "id = '\udcff'"), "'id' is "),
        (("files", "db.t", "--at", "17"), "17"),
        (("tree", "db.t", "--at", "nope"), "'nope'"),
        (("changes", "db.t", "--since", "nope"), "nope"),
        (("create", "db.t", "--schema", "id long"), "choose another name"),
        (("create", "db.u", "--schema", "id lon"), "lon"),
        (("create", "db.u", "--schema", "id long", "--set", "x"), "KEY=VALUE"),
        (("ls", "nope"), "nope"),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(
    run: Run, words: tuple[str, ...], says: str
) -> None:
    found = run(*words)
    assert found.exit_code in (1, 2)
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("icetree: ")
    assert says in found.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--catalog", "nowhere"], "set PYICEBERG_CATALOG__NOWHERE__URI"),
        (["--catalog", "ftp://x"], "sqlite:///"),
        (["--catalog", "memory://", "--property", "x"], "KEY=VALUE"),
    ],
)
def test_a_catalog_that_cannot_be_opened_is_one_line(options: list[str], says: str) -> None:
    found = CliRunner().invoke(cli, [*options, "ls"])
    assert found.exit_code == 1
    assert found.stderr.count("\n") == 1
    assert says in found.stderr


def test_the_catalog_may_come_from_the_environment(folder: Path) -> None:
    settings = {"ICETREE_CATALOG": f"sqlite:///{folder}/catalog.db"}
    assert "db.t" in CliRunner(env=settings).invoke(cli, ["ls"]).stdout


def test_pyicebergs_own_settings_are_understood(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{folder}/catalog.db")
    found = CliRunner().invoke(cli, ["--catalog", "prod", "ls"])
    # Its rows are kept under its own name, so that another catalog's are not seen.
    assert (found.exit_code, "db.t" in found.stdout) == (0, False)


def test_help_is_quick() -> None:
    program = [sys.executable, "-m", "icetree", "--help"]
    spent = []
    for _ in range(3):
        before = os.times()
        start = time.perf_counter()
        subprocess.run(program, capture_output=True, check=True)
        after = os.times()
        cpu = after.children_user - before.children_user
        cpu += after.children_system - before.children_system
        spent.append(min(cpu, time.perf_counter() - start))
    # By CPU time: a busy machine says nothing of us.
    assert min(spent) < 0.5


def test_lists_of_terms_are_split_outside_parentheses() -> None:
    assert split_terms(("day(ts), bucket(16, id)", "country")) == [
        "day(ts)",
        "bucket(16, id)",
        "country",
    ]


@pytest.mark.parametrize("command", [("ls",), ("describe", "db.t"), ("verify", "db.t")])
def test_a_mistyped_catalog_is_refused_and_not_made(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = runner(tmp_path)(*command)
    assert result.exit_code in (1, 2)
    assert result.stderr == (
        f"icetree: not found: there is no catalog {tmp_path}/catalog.db: check --catalog, "
        "or make one with icetree create\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_creating_a_table_makes_the_catalog(tmp_path: Path) -> None:
    run = runner(tmp_path)
    assert run("create", "db.t", "--schema", "id long").exit_code == 0
    assert "db.t" in run("ls").stdout


def test_a_table_is_renamed_copied_backed_up_and_dropped(run: Run, tmp_path: Path) -> None:
    assert run("rename", "db.t", "--to", "db.u").stdout == "db.t is db.u now\n"
    copied = run("copy", "db.u", "--to", "db.v", "--location", str(tmp_path / "v"))
    assert copied.stdout == f"Made db.v at {tmp_path}/v\n"
    saved = run("backup", "db.v", "--location", str(tmp_path / "safe"))
    assert Path(saved.stdout.strip()).is_file()
    plan = run("drop", "db.v", "--purge")
    assert "repeat with --yes" in plan.stdout
    assert parsed(run("verify", "db.v", "--json"))["clean"]
    done = run("drop", "db.v", "--purge", "--yes")
    assert done.stdout.startswith("dropped db.v; files deleted: ")
    assert [each for each in (tmp_path / "v").rglob("*") if each.is_file()] == []
    assert parsed(run("ls", "db", "--json")) == [{"kind": "table", "name": "db.u"}]
