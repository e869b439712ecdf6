"""The command line as a whole: help, version, errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from icetree import __version__
from icetree.cli.main import cli
from icetree.errors import CorruptTable


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
