"""Whatever a table calls its things, a terminal shows it and does not obey it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click
import pytest
from click.testing import CliRunner, Result

from icetree.cli.console import stdout
from icetree.cli.main import cli
from icetree.cli.refusal import MISUSED
from icetree.errors import InvalidInput
from icetree.picture.terminal import Drawing
from icetree.picture.tree import picture
from icetree.serve.http.run import Address
from icetree.visible import visible, visible_json
from tests.hostile_table import HOSTILE, NAME, acting, hostile_lake, hostile_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    hostile_table(made)
    return made


def run(folder: Path, *words: str) -> Result:
    options = ["--catalog", f"sqlite:///{folder}/catalog.db", "--warehouse", str(folder / "lake")]
    return CliRunner().invoke(cli, [*options, *words])


def commands() -> Iterator[tuple[str, ...]]:
    table = f"{NAME}.{NAME}"
    where = ("--where", f"\"{NAME}\" = '{HOSTILE}'")
    for words in (
        ("ls",),
        ("ls", NAME),
        ("describe", table),
        ("snapshots", table),
        ("refs", table),
        ("head", table, "--where", "n = 2"),
        ("schema", table, "--all"),
        ("spec", table, "--all"),
        ("spec", table),
        ("properties", table),
        ("tag", table, f"{NAME}3"),
        ("tag", table, f"{NAME}3", "--drop"),
        ("rollback", table, "--to", NAME),
        ("files", table),
        ("plan", table),
        ("plan", table, *where),
        ("explain", table, *where),
        ("explain", table, *where, "--row-groups"),
        ("changes", table),
        ("tree", table),
        ("verify", table),
        ("verify", table, "--deep"),
        ("repair", table),
        # What is wrong is told of as well.
        ("describe", f"{NAME}.nothing"),
        ("describe", f"{table}{NAME}"),
        ("tree", table, "--at", NAME),
        ("tree", table, "--at", f"nothing{NAME}"),
        ("plan", table, "--where", f"{NAME} ="),
        ("ls", f"nothing{NAME}"),
        ("changes", table, "--since", f"nothing{NAME}"),
    ):
        yield words
        yield (*words, "--json")
    yield ("tree", table, "--format", "svg")
    yield ("tree", table, "--format", "mermaid")
    yield ("tree", table, "--format", "html")


def test_no_command_lets_a_name_or_value_act_on_the_terminal(folder: Path) -> None:
    told = 0
    for words in commands():
        result = run(folder, *words)
        assert result.exception is None or isinstance(result.exception, SystemExit), words
        assert acting(result.output) == set(), words
        told += "got you" in result.output
        if result.exit_code == 0 and words[-1] == "--json":
            json.loads(result.stdout)
        if result.exit_code == 0 and words[-1] == "svg":
            ET.fromstring(result.stdout)
    assert told > 20


#: Commands that go on until somebody stops them, or start Spark: `tests/spark/test_hostile_sql.py`
#: has one, and the other shows what it made itself.
ELSEWHERE = {"sql", "demo"}


def every_command(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield each command, by its own parameters: with what it needs, then with each text it takes.

    Nothing is done that asks for `--yes`.
    """
    context = click.Context(cli)
    for command in cli.list_commands(context):
        if command not in ELSEWHERE:
            yield from of_command(command, cli.get_command(context, command), folder)


def of_command(name: str, command: Any, folder: Path) -> Iterator[tuple[str, ...]]:
    of_all = {"catalog", "warehouse", "given", "debug"}
    own = [each for each in command.params if each.name not in of_all]
    needed = (name, *(word for each in own for word in given(each, folder)))
    yield needed
    for each in own:
        if each.name == "as_json":
            yield (*needed, "--json")
        elif isinstance(each.type, click.types.StringParamType) and not given(each, folder):
            word = [each.opts[0]] if isinstance(each, click.Option) else []
            yield (*needed, *word, HOSTILE)
            # What several are given of may be pairs.
            if each.multiple:
                yield (*needed, *word, f"{HOSTILE}={HOSTILE}")
    yield (*needed, HOSTILE, f"--{HOSTILE}")


def given(parameter: Any, folder: Path) -> list[str]:
    """Return the words without which a command does nothing, or does not come back."""
    match parameter.name:
        case "name" | "names":
            return [f"{NAME}.{NAME}"]
        case "dry_run":
            return ["--dry-run"]
        case "rounds":
            return ["--rounds", "1"]
        case "output":
            return ["--output", str(folder / f"{HOSTILE}.html")]
        case "host":
            return ["--host", HOSTILE]
        case _ if parameter.required:
            kind, names = parameter.type, parameter.opts[:1]
            word = kind.choices[0] if isinstance(kind, click.Choice) else HOSTILE
            return [word] if isinstance(parameter, click.Argument) else [*names, word]
    return []


@pytest.mark.usefixtures("no_socket")
def test_no_command_however_new_lets_what_it_is_given_act_on_the_terminal(tmp_path: Path) -> None:
    hostile_table(tmp_path)
    told = set()
    for words in every_command(tmp_path):
        result = run(tmp_path, *words)
        assert result.exception is None or isinstance(result.exception, SystemExit), words
        assert acting(result.output) == set(), words
        if result.exit_code != MISUSED and "got you" in result.output:
            told.add(words[0])
    # Others answer by numbers alone.
    silent = {"ancestors", "completion", "compute-partition-stats", "export", "optimize"}
    assert set(cli.list_commands(click.Context(cli))) - ELSEWHERE - told <= silent


@pytest.fixture
def no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have whoever would listen say where, and stop."""

    def refuse(address: Address) -> None:
        raise InvalidInput(f"{address.host} is nowhere")

    monkeypatch.setattr(Address, "listen", refuse)


def test_json_means_what_the_table_says(folder: Path) -> None:
    found = json.loads(run(folder, "describe", f"{NAME}.{NAME}", "--json").stdout)
    assert found["name"] == f"{NAME}.{NAME}"
    assert found["properties"][HOSTILE] == HOSTILE


def test_creating_tells_of_a_table_without_obeying_it(tmp_path: Path) -> None:
    hostile_lake(tmp_path).create_namespace(NAME)
    result = run(tmp_path, "create", f"{NAME}.{NAME}", "--schema", "n long")
    assert "Made a" in result.output
    assert acting(result.output) == set()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_only_our_own_styling_acts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = hostile_lake(folder).table(f"{NAME}.{NAME}")
    shape = table.metadata.shape()
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    drawn = picture(
        table.files.root(table.snapshot(), shape),
        table.files.reader(shape),
        shape,
        caption=HOSTILE,
    )
    stdout().print(Drawing(drawn))
    from icetree.cli.output import print_rows

    print_rows([{"a": HOSTILE, "b": [HOSTILE]}], {"a": "A", "b": "B"}, empty="")
    shown = screen.getvalue()
    assert "\x1b[" in shown
    assert acting(re.sub("\x1b\\[[0-9;]*m", "", shown)) == set()


def test_escapes_are_seen_and_json_keeps_its_meaning() -> None:
    assert visible("a\x1b[2Jb\n\x9b\u202e") == "a\\x1b[2Jb\\n\\x9b\\u202e"
    assert visible("plain ü 名") == "plain ü 名"
    document = json.dumps(HOSTILE, ensure_ascii=False)
    assert json.loads(visible_json(document)) == HOSTILE
