"""The commands that look at rows and layout, and that move names: from the outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import icetree
from icetree.cli.main import cli
from tests.table.damage import make_table

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    make_table(tmp_path)
    environment = {"ICETREE_CATALOG": f"sqlite:///{tmp_path}/catalog.db"}
    return lambda *words: CliRunner(env=environment).invoke(cli, words)


def told(result: Result) -> Any:
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_head_shows_as_many_rows_as_are_asked_for(run: Run) -> None:
    rows = told(run("head", "db.t", "--limit", "7", "--json"))
    assert len(rows) == 7
    [row] = told(run("head", "db.t", "--where", "id = 405", "--columns", "id", "--json"))
    assert row == {"id": 405}
    assert run("head", "db.t", "--where", "id < 0").stdout == "No rows.\n"
    assert "id" in run("head", "db.t").stdout.splitlines()[0]


def test_schema_and_spec_tell_what_is_in_use_and_what_was(run: Run) -> None:
    now = told(run("schema", "db.t", "--json"))
    assert now["is_default"]
    assert now["columns"][0]["name"] == "id"
    every = told(run("schema", "db.t", "--all", "--json"))
    assert now in every
    laid = told(run("spec", "db.t", "--json"))
    assert laid["is_default"]
    described = told(run("describe", "db.t", "--json"))
    assert laid["partition_by"] == described["partition_by"]
    assert now["columns"] == described["columns"]
    assert [each["is_default"] for each in told(run("spec", "db.t", "--all", "--json"))].count(
        True
    ) == 1
    for words in (["schema"], ["spec"], ["schema", "--all"], ["spec", "--all"]):
        assert run(words[0], "db.t", *words[1:]).stdout.strip()


def test_properties_are_set_and_unset_in_one_commit(run: Run) -> None:
    before = told(run("describe", "db.t", "--json"))["metadata_location"]
    assert (
        told(run("properties", "db.t", "--set", "a=1", "--set", "b=x=y", "--json"))["properties"][
            "b"
        ]
        == "x=y"
    )
    changed = told(run("properties", "db.t", "--set", "c=2", "--unset", "a", "--yes", "--json"))[
        "properties"
    ]
    assert ("a" in changed, changed["b"], changed["c"]) == (False, "x=y", "2")
    assert "c" in run("properties", "db.t").stdout
    assert told(run("describe", "db.t", "--json"))["metadata_location"] != before


def test_a_refused_property_changes_nothing(run: Run) -> None:
    before = told(run("describe", "db.t", "--json"))
    wrong = run("properties", "db.t", "--set", "ok=1", "--set", "write.root.max-data-entries=many")
    assert wrong.exit_code == 1
    assert wrong.stderr.count("\n") == 1
    assert told(run("describe", "db.t", "--json")) == before


def test_tags_and_branches_come_and_go_and_a_branch_is_rolled_back(run: Run) -> None:
    snapshots = told(run("snapshots", "db.t", "--json"))
    newest, oldest = snapshots[0]["snapshot_id"], snapshots[-1]["snapshot_id"]
    assert told(run("tag", "db.t", "old", "--at", str(oldest), "--json"))["snapshot_id"] == oldest
    assert told(run("branch", "db.t", "audit", "--json"))["snapshot_id"] == newest
    assert run("rollback", "db.t", "--to", "old", "--branch", "audit", "--yes").stdout == (
        f"audit of db.t is at snapshot {oldest}\n"
    )
    names = {each["name"]: each["snapshot_id"] for each in told(run("refs", "db.t", "--json"))}
    assert names == {"main": newest, "old": oldest, "audit": oldest}
    assert told(run("rollback", "db.t", "--to", str(oldest), "--yes", "--json"))["name"] == "main"
    assert told(run("branch", "db.t", "audit", "--drop", "--yes", "--json")) is None
    assert run("tag", "db.t", "old", "--drop", "--yes").stdout == "old is gone from db.t\n"
    assert len(told(run("refs", "db.t", "--json"))) == 1


def test_what_takes_away_or_goes_back_is_only_told_of_without_yes(run: Run) -> None:
    oldest = told(run("snapshots", "db.t", "--json"))[-1]["snapshot_id"]
    run("tag", "db.t", "old", "--at", str(oldest))
    run("branch", "db.t", "audit")
    run("properties", "db.t", "--set", "a=1")
    before = run("describe", "db.t", "--json").stdout
    for words, says in (
        (("rollback", "db.t", "--to", "old"), f"would move main of db.t to snapshot {oldest}"),
        (("tag", "db.t", "old", "--drop"), f"would drop old of db.t, at snapshot {oldest}"),
        (("branch", "db.t", "audit", "--drop"), "would drop audit of db.t, at snapshot "),
        (("properties", "db.t", "--unset", "a"), "would unset a of db.t"),
    ):
        plain = run(*words)
        assert plain.stdout.startswith(says), plain.output
        assert plain.stdout.endswith("nothing was changed: repeat with --yes to do it\n")
        assert told(run(*words, "--json"))["dry_run"]
        assert run("describe", "db.t", "--json").stdout == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tag", "db.t", "x", "--drop"), "'x'"),
        (("tag", "db.t", "x", "--drop", "--at", "main"), "leave out --at"),
        (("branch", "db.t", "main"), "main"),
        (("branch", "db.t", "main", "--drop"), "cannot be removed"),
        (("rollback", "db.t", "--to", "nowhere"), "nowhere"),
        (("tag", "db.t", "x", "--yes"), "--yes is for --drop"),
        (("properties", "db.t", "--set", "a=1", "--yes"), "--yes is for --unset"),
        (("head", "db.t", "--columns", "idd"), "idd"),
        (("properties", "db.t", "--set", "x"), "KEY=VALUE"),
        (("tree", "db.t", "-o", "tree.png"), ".txt, .mmd, .svg, .html"),
        (("tree", "db.t", "-o", "tree"), "end the name in one of these"),
    ],
)
def test_what_cannot_be_is_one_sentence(run: Run, words: tuple[str, ...], says: str) -> None:
    before = run("describe", "db.t", "--json").stdout
    found = run(*words)
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.count("\n") == 1
    assert says in found.stderr
    assert run("describe", "db.t", "--json").stdout == before
    assert not Path("tree.png").exists()


def test_the_ending_of_a_file_says_how_a_tree_is_drawn(run: Run, tmp_path: Path) -> None:
    starts = {"txt": "db.t", "mmd": "flowchart", "svg": "<svg", "html": "<!doctype html>"}
    for ending, start in starts.items():
        file = tmp_path / f"tree.{ending.upper() if ending == 'svg' else ending}"
        assert run("tree", "db.t", "-o", str(file)).stdout == f"Wrote {file}\n"
        assert file.read_text(encoding="utf-8").startswith(start)
    page = (tmp_path / "tree.html").read_text(encoding="utf-8")
    inner = page[page.index("<svg") : page.index("</svg>") + len("</svg>")]
    assert ET.fromstring(inner).tag.endswith("svg")
    chosen = tmp_path / "tree.png"
    assert run("tree", "db.t", "--format", "mermaid", "-o", str(chosen)).exit_code == 0
    assert chosen.read_text(encoding="utf-8").startswith("flowchart")


def test_counts_of_a_summary_are_numbers_and_other_digits_stay_text(run: Run) -> None:
    newest = told(run("snapshots", "db.t", "--json"))[0]["summary"]
    assert all(isinstance(each, int) for key, each in newest.items() if key.startswith("total-"))
    now = told(run("describe", "db.t", "--json"))["current_snapshot"]
    assert now["record_count"] == newest["total-records"]


def test_whole_tables_tell_in_json_what_was_done(run: Run, tmp_path: Path) -> None:
    would = told(run("rename", "db.t", "--to", "db.u", "--dry-run", "--json"))
    assert would == {"name": "db.u", "dry_run": True}
    done = told(run("rename", "db.t", "--to", "db.u", "--json"))
    assert done == {"name": "db.u", "dry_run": False}
    place = ("--location", str(tmp_path / "v"))
    would = told(run("copy", "db.u", "--to", "db.v", *place, "--dry-run", "--json"))
    assert would["dry_run"]
    assert would["copied_files_count"] > 0
    copied = told(run("copy", "db.u", "--to", "db.v", *place, "--json"))
    assert (copied["name"], copied["location"]) == ("db.v", str(tmp_path / "v"))
    saved = told(run("backup", "db.v", "--location", str(tmp_path / "safe"), "--json"))
    assert Path(saved["metadata_location"]).is_file()
    assert told(run("drop", "db.v", "--json"))["dry_run"]
    gone = told(run("drop", "db.v", "--purge", "--yes", "--json"))
    assert gone["result"]["deleted_data_files_count"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "page.html", "--port", "9"), "--port and --browser are for a server"),
        (("-o", "page.html", "--browser"), "--port and --browser are for a server"),
        (("-o", "page.html", "--json"), "leave out --json"),
        (("--json",), "leave out --json"),
        (("-o", "catalog.db"), "end its name in .html"),
        (("-o", "other.html"), "is there, and no web page"),
        (("-o", "folder.html"), "folder.html"),
    ],
)
def test_explore_writes_over_no_file_but_a_page_and_ignores_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    make_table(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.html").write_bytes(b"SQLite format 3")
    (tmp_path / "folder.html").mkdir()
    before = {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    options = ["--catalog", "sqlite:///catalog.db", "--warehouse", str(tmp_path / "lake")]
    if words[-1] == "--json":
        words, options = words[:-1], [*options, "--json"]
    found = CliRunner().invoke(cli, [*options, "explore", "db.t", *words])
    assert (found.exit_code != 0, told in found.stderr) == (True, True), found.output
    assert {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        ("create", "new.t", "--schema", "id long", "--partition-by", "day(nope)"),
        ("trial", "new.t", "--source", "nowhere"),
        ("snapshot", "new.t", "--source", "nowhere"),
        ("migrate", "new.t", "--source", "nowhere", "--yes"),
    ],
)
def test_a_table_that_is_refused_leaves_no_namespace(run: Run, words: tuple[str, ...]) -> None:
    before = run("ls", "--json").stdout
    assert run(*words).exit_code == 1
    assert run("ls", "--json").stdout == before


@pytest.fixture
def staged(run: Run, tmp_path: Path) -> dict[str, int]:
    """Snapshots that are not part of main, by what they are: staged ones, and one of a branch."""
    del run
    with icetree.connect(f"sqlite:///{tmp_path}/catalog.db") as lake:
        table = lake.table("db.t")
        row = table.scan().to_arrow().slice(0, 1)
        table.create_branch("side")
        made = {
            "staged": table.append(row, branch=None),
            "audited": table.append(row, branch=None, summary={"wap.id": "w"}),
            "side": table.append(row, branch="side"),
        }
        return {name: each.snapshot.snapshot_id for name, each in made.items() if each.snapshot}


def _main(run: Run) -> int:
    found = told(run("refs", "db.t", "--json"))
    return next(int(each["snapshot_id"]) for each in found if each["name"] == "main")


def test_a_branch_is_brought_ahead_by_a_snapshot_of_another(
    run: Run, staged: dict[str, int]
) -> None:
    before, rows = _main(run), len(told(run("head", "db.t", "--limit", "100000", "--json")))
    dry = told(run("fast-forward", "db.t", "--to", "side", "--dry-run", "--json"))
    assert dry == {"name": "main", "dry_run": True, "snapshot_id": staged["side"]}
    assert _main(run) == before
    assert (
        told(run("fast-forward", "db.t", "--to", "side", "--json"))["snapshot_id"]
        == (staged["side"])
    )
    pick = ("cherry-pick", "db.t", "--at", str(staged["staged"]))
    assert run(*pick, "--dry-run").stdout == (
        f"would apply snapshot {staged['staged']} to main of db.t, as a new snapshot\n"
    )
    assert _main(run) == staged["side"]
    assert told(run(*pick, "--json"))["name"] == "main"
    assert "already" in run(*pick, "--dry-run").stderr
    publish = ("publish", "db.t", "--wap-id", "w")
    assert told(run(*publish, "--dry-run", "--json"))["snapshot_id"] is None
    assert run(*publish).stdout == f"main of db.t is at snapshot {_main(run)}\n"
    assert "already" in run(*publish).stderr
    assert "no snapshot was staged" in run("publish", "db.t", "--wap-id", "x").stderr
    assert len(told(run("head", "db.t", "--limit", "100000", "--json"))) == rows + 3


def test_a_branch_is_set_to_any_snapshot_and_its_line_is_told(
    run: Run, staged: dict[str, int]
) -> None:
    before, to = _main(run), str(staged["audited"])
    assert (
        f"would move main of db.t to snapshot {to}" in run("set-current", "db.t", "--to", to).stdout
    )
    assert _main(run) == before
    assert told(run("set-current", "db.t", "--to", to, "--yes", "--json"))["snapshot_id"] == int(to)
    line = [each["snapshot_id"] for each in told(run("ancestors", "db.t", "--json"))]
    assert line[:2] == [int(to), before]
    assert told(run("ancestors", "db.t", "--at", str(before), "--json"))[0]["snapshot_id"] == before
    shown = run("ancestors", "db.t", "--limit", "1").stdout
    assert to in shown
    assert "--limit shows more" in shown


def test_files_and_tables_that_are_there_are_taken_in(run: Run, tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/catalog.db") as lake:
        place = str(tmp_path / "plain")
        table = lake.create_table("db.plain", pa.schema([("id", pa.int64())]), location=place)
        at = table.state.metadata_location
    (tmp_path / "late").mkdir()
    for number in (1, 2):
        pq.write_table(pa.table({"id": [number]}), tmp_path / "late" / f"{number}.parquet")
    add = ("add-files", "db.plain", f"{tmp_path}/late/")
    assert run(*add, "--dry-run").stdout == "would add 2 data files to main of db.plain\n"
    assert told(run("head", "db.plain", "--json")) == []
    assert told(run(*add, "--json")) == {"name": "db.plain", "files": 2, "dry_run": False}
    assert len(told(run("head", "db.plain", "--json"))) == 2
    assert "no branch 'x'" in run(*add, "--branch", "x", "--dry-run").stderr
    assert "a file is in a table once" in run(*add, "--dry-run").stderr, "as the real one finds"
    register = ("register", "new.again", "--metadata-location", at)
    assert run(*register, "--dry-run").stdout.startswith("would register new.again at ")
    assert "new" not in run("ls").stdout
    assert told(run(*register, "--json"))["name"] == "new.again"
    assert "exists" in run(*register, "--dry-run").stderr
    assert told(run("describe", "new.again", "--json"))["metadata_location"] == at
