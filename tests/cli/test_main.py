"""The command line as a whole: help, version, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from icetree import __version__
from icetree.cli.main import cli
from icetree.errors import CorruptTable
from tests.table.damage import make_table


@pytest.fixture
def failing_command() -> Iterator[click.Command]:
    @click.command("fail")
    def fail() -> None:
        raise CorruptTable("metadata/root.parquet", "entry 3 has no status\n  in two lines")

    cli.add_command(fail)
    yield fail
    del cli.commands["fail"]


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in cli.commands)


def test_help_of_every_command_needs_none_of_the_heavy_packages() -> None:
    program = (
        "import sys; from icetree.cli.main import cli\n"
        "for command in cli.commands.values(): command.get_short_help_str()\n"
        "heavy = {'pyarrow', 'pyiceberg', 'numpy', 'rich', 'sqlalchemy', 'pyspark'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_module_runs_the_same_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "icetree", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"icetree, version {__version__}\n"


@pytest.mark.usefixtures("failing_command")
def test_an_error_is_one_line_that_names_its_kind() -> None:
    result = CliRunner().invoke(cli, ["fail"])
    assert result.exit_code == 1
    assert result.stderr == (
        "icetree: corrupt table: metadata/root.parquet: entry 3 has no status in two lines\n"
    )
    assert result.stdout == ""


@pytest.mark.usefixtures("failing_command")
def test_debug_lets_the_error_through() -> None:
    result = CliRunner().invoke(cli, ["--debug", "fail"])
    assert isinstance(result.exception, CorruptTable)


# --- options on either side, errors as JSON, exit codes -----------------------------------------


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lake")
    make_table(folder)
    return f"sqlite:///{folder}/catalog.db"


def test_options_may_stand_before_or_after_the_command(catalog: str) -> None:
    words = ["--catalog", catalog, "--json", "--property", "io.manifest.cache.max-total-bytes=0"]
    before = CliRunner().invoke(cli, [*words, "ls"])
    after = CliRunner().invoke(cli, ["ls", *words])
    between = CliRunner().invoke(cli, [*words[:2], "ls", *words[2:]])
    assert (before.exit_code, before.stderr) == (0, "")
    assert json.loads(before.stdout)
    assert before.stdout == after.stdout == between.stdout


def test_what_stands_after_the_command_wins(catalog: str) -> None:
    words = ["--catalog", "sqlite:///nowhere.db", "describe", "db.t", "--catalog", catalog]
    assert CliRunner().invoke(cli, words).exit_code == 0
    wins = CliRunner(env={"ICETREE_CATALOG": "sqlite:///nowhere.db"})
    assert wins.invoke(cli, ["ls", "--catalog", catalog]).exit_code == 0


def test_debug_may_stand_after_a_command(catalog: str) -> None:
    found = CliRunner().invoke(cli, ["describe", "db.nope", "--catalog", catalog, "--debug"])
    assert type(found.exception).__name__ == "NotFound"


def test_every_command_with_a_catalog_takes_its_options_after_it() -> None:
    without = {"demo", "completion"}
    for name, command in cli.commands.items():
        options = {word for each in command.params for word in each.opts}
        assert ("--catalog" in options) is (name not in without), name


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (["describe", "db.nope"], "not found", 1),
        (["files", "db.t", "--where", "id = = 3"], "invalid input", 1),
        (["verify", "db.nope"], "not found", 2),
        (["nope"], "usage", 2),
        (["files"], "usage", 2),
        (["files", "db.t", "--limit", "none"], "usage", 2),
        (["--nope", "ls"], "usage", 2),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_error_is_json_where_json_is_asked_for(
    catalog: str, words: list[str], kind: str, code: int, first: bool
) -> None:
    line = ["--json", *words] if first else [*words, "--json"]
    found = CliRunner(env={"ICETREE_CATALOG": catalog}).invoke(cli, line)
    assert (found.exit_code, found.stdout) == (code, "")
    error = json.loads(found.stderr)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"]
    plain = CliRunner(env={"ICETREE_CATALOG": catalog}).invoke(cli, words)
    assert plain.exit_code == code
    assert "{" not in plain.stderr


def test_exit_codes_are_as_the_page_tells(catalog: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes")[2].partition("\n## ")[0]
    told = [int(line.split("|")[1]) for line in table.splitlines() if line[2:3].isdigit()]
    assert told == [0, 1, 2, 130]

    @click.command("stop")
    def stop() -> None:
        raise KeyboardInterrupt

    cli.add_command(stop)
    try:
        lines = [["ls"], ["describe", "db.nope"], ["describe"], ["stop"]]
        runner = CliRunner(env={"ICETREE_CATALOG": catalog})
        assert [runner.invoke(cli, line).exit_code for line in lines] == told
    finally:
        del cli.commands["stop"]


# --- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_what_makes_it_complete(shell: str) -> None:
    found = CliRunner().invoke(cli, ["completion", shell])
    assert found.exit_code == 0
    assert "_ICETREE_COMPLETE" in found.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("icetree desc", {"describe"}),
        ("icetree describe d", {"db.t"}),
        ("icetree describe db.", {"db.t"}),
        ("icetree files db.t --at m", {"main"}),
        ("icetree files db.t --whe", {"--where"}),
        ("icetree tree db.t --format s", {"svg"}),
        ("icetree files db.nope --at m", set()),
        ("icetree --catalog sqlite:///nowhere.db describe d", set()),
    ],
)
def test_tab_completes_commands_options_tables_and_refs(
    catalog: str, line: str, expected: set[str]
) -> None:
    words = line.split()
    environment = {
        "_ICETREE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "ICETREE_CATALOG": catalog,
    }
    found = CliRunner(env=environment).invoke(cli, [], prog_name="icetree")
    names = {each.partition(",")[2] for each in found.stdout.splitlines() if each}
    assert names == expected
