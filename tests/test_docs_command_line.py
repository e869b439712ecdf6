"""The page of the command line tells of all there is, and every command on it runs."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.cli.group import Commands
from icetree.cli.main import cli
from tests.cli.terminal import on_terminal
from tests.effort import usually
from tests.explore.browsing import is_built

PAGE = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
SHARED = PAGE.partition("\n## ")[0]
SECTIONS = dict(re.findall(r"^### ([\w-]+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
#: Told once for all commands.
TOLD_ONCE = {"--json", "--catalog", "--warehouse", "--property", "--debug", "--at", "--where"}


def options(command: click.Command) -> set[str]:
    return {word for each in command.params for word in each.opts if word.startswith("-")}


def test_every_command_has_a_section_and_no_other_has_one() -> None:
    assert set(SECTIONS) == set(cli.commands)
    assert isinstance(cli, Commands)
    shown = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert shown[-len(cli.sections) :] == list(cli.sections)
    assert [name for names in cli.sections.values() for name in names] == list(SECTIONS)


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_option_of_a_command_is_told(name: str) -> None:
    told = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", SECTIONS[name]))
    assert options(cli.commands[name]) - TOLD_ONCE - told == set()
    assert {each for each in told if each.startswith("--")} <= options(cli.commands[name])


def test_what_is_told_once_is_told() -> None:
    above = PAGE.partition("\n## Look")[0]
    assert {word for word in TOLD_ONCE if f"`{word}" in above} == TOLD_ONCE


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the page takes it for granted: tables, files that landed, and an old table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ICETREE_CATALOG", "sqlite:///catalog.db")
    monkeypatch.setenv("ICETREE_WAREHOUSE", "lake")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "country": ["DE", "FR", "DE"]})
    with icetree.connect("sqlite:///catalog.db", warehouse="lake") as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.events", rows.schema, partition_by=["country"])
        table.append(rows)
        table.create_tag("first")
        table.append(rows)
        table.delete("id = 2")
        table.create_tag("last")
        staged = table.append(rows, branch=None).snapshot
        assert staged is not None
        table.create_tag("staged", at=staged.snapshot_id)
        table.append(rows, branch=None, summary={"wap.id": "load-7"})
        newest = Path(lake.backup_table("shop.events", str(tmp_path / "yesterday")))
        newest.rename(newest.with_name("newest.metadata.json"))
    old = SqlCatalog("default", uri="sqlite:///catalog.db", warehouse=f"file://{tmp_path}/old")
    old.create_table("shop.old", rows.schema).append(rows)
    old.close()
    Path("landing").mkdir()
    pq.write_table(rows, "landing/one.parquet")
    Path("late").mkdir()
    pq.write_table(rows.filter(pc.field("country") == "DE"), "late/one.parquet")
    return tmp_path


#: What is for other programs is as it is for them.
NOT_FOR_PEOPLE = ("icetree completion", "icetree serve")


@pytest.mark.parametrize("width", usually([80, 120, None], 80))
@pytest.mark.usefixtures("spark")
def test_every_command_of_the_page_runs_and_fits_the_terminal(
    lake: Path, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of a width, or in a pipe."""
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    ran = set()
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "icetree"
        ran |= set(words)
        if words[0] == "explore" and not is_built():
            continue
        if width is not None and not line.startswith(NOT_FOR_PEOPLE):
            seen = on_terminal(monkeypatch, width, partial(cli, words, standalone_mode=False))
            assert any(seen), line
            # What names a file or folder is never broken: a terminal wraps it, and copies it whole.
            long = [each for each in seen if len(each) > width]
            names = (str(lake), ".parquet", ".json")
            assert [each for each in long if not any(name in each for name in names)] == [], line
            continue
        found = CliRunner().invoke(cli, words)
        assert (found.exit_code, found.stderr) == (0, ""), f"{line}: {found.stderr}"
        assert found.stdout.strip(), line
    assert set(cli.commands) <= ran
