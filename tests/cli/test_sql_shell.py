"""The shell of `icetree sql`: where statements end, what Tab offers, and what does not end it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from icetree.cli.lake import Chosen
from icetree.cli.sql.run import Runner
from icetree.cli.sql.shell import Words, _history, loop, names_in
from icetree.cli.sql.statements import split, statements
from icetree.errors import NotFound
from tests.table.damage import make_table, open_lake

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ; ;\n", []),
        ("select 1", ["select 1"]),
        ("select 1; select 2;", ["select 1", "select 2"]),
        ("select ';' ; b", ["select ';'", "b"]),
        (r"select '\';' ; b", [r"select '\';'", "b"]),
        ('select ";", `a;b`; b', ['select ";", `a;b`', "b"]),
        ("select 1 -- one; two\n+ 2; b", ["select 1 -- one; two\n+ 2", "b"]),
        ("select /* ; */ 1; b", ["select /* ; */ 1", "b"]),
        ("-- nothing; at all\n;", []),
        ("select 4/2 - 1; b", ["select 4/2 - 1", "b"]),
        ("select 'it''s; so'; b", ["select 'it''s; so'", "b"]),
        (
            "/* old: /* see */ ; drop t; */ select 1; b",
            ["/* old: /* see */ ; drop t; */ select 1", "b"],
        ),
        ("/*/ ; */ a; /**/ ; b /*+ hint */", ["/*/ ; */ a", "b /*+ hint */"]),
        ("select '/*'; b; '*/'", ["select '/*'", "b", "'*/'"]),
        (r"select r'\'; b; r'\'", [r"select r'\'", "b", r"r'\'"]),
        (r"select four'\';'; b", [r"select four'\';'", "b"]),
    ],
)
def test_a_semicolon_ends_a_statement_outside_quotes_and_comments(
    text: str, expected: list[str]
) -> None:
    assert statements(text) == expected


@pytest.mark.parametrize(
    "text", ["select '; ", 'select 1; select "', "a; /* ;", "select `;", "/* a /* b */ ; c;"]
)
def test_what_is_open_is_not_ended_by_a_semicolon(text: str) -> None:
    assert split(text)[1].strip()


class Frame:
    """What Spark would hand over of a result."""

    def __init__(self, found: pa.Table) -> None:
        self._found = found
        self.columns = found.column_names

    def toDF(self, *names: str) -> Frame:  # noqa: N802
        return Frame(self._found.rename_columns(list(names)))

    def limit(self, count: int) -> Frame:
        return Frame(self._found.slice(0, count))

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self._found


def show(found: pa.Table, *, limit: int = 100, as_json: bool = False) -> None:
    chosen = Chosen(catalog=None, warehouse=None)
    run = Runner(chosen, limit=limit, as_json=as_json)
    run.lake = cast("SparkLake", SimpleNamespace(sql=lambda _: Frame(found)))
    run.show("select")


def test_columns_of_one_name_are_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    twice = pa.table([[1], [2], [3], [4]], names=["id", "id", "id_2", "x"])
    show(twice)
    heading, row, _ = capsys.readouterr().out.splitlines()
    assert (heading.split(), row.split()) == (["id", "id", "id_2", "x"], ["1", "2", "3", "4"])
    show(twice, as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"id": 1, "id_3": 2, "id_2": 3, "x": 4}]


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("values", [[1, 2, 3], ["a\nb"] * 3])
def test_no_more_rows_are_shown_than_the_limit_and_that_there_are_more_is_said(
    capsys: pytest.CaptureFixture[str], values: list[object], as_json: bool
) -> None:
    found = pa.table({"x": values})
    show(found, limit=2, as_json=as_json)
    cut = capsys.readouterr()
    # Standard output has results and nothing else, where a program reads it.
    said = cut.err if as_json else cut.out
    assert said.endswith("... and more; --limit 20 shows more\n")
    if as_json:
        assert len(json.loads(cut.out)) == 2
    show(found, limit=3, as_json=as_json)
    whole = capsys.readouterr()
    assert "more" not in whole.out + whole.err


@pytest.fixture
def asked() -> list[str]:
    return []


def type_in(text: str, asked: list[str]) -> None:
    """Type into a shell, which notes what it is asked and refuses what is wrong."""

    def show(statement: str) -> None:
        asked.append(statement)
        if "wrong" in statement:
            raise NotFound("there is no table wrong")
        if "broken" in statement:
            raise ValueError("broken\nin two lines")

    with create_pipe_input() as keys:
        keys.send_text(text)
        loop(PromptSession(input=keys, output=DummyOutput()), show)


def test_a_statement_may_have_lines_and_is_run_at_its_semicolon(asked: list[str]) -> None:
    type_in("select 1\n+ 2;\nselect 3; select 4;\nexit\n", asked)
    assert asked == ["select 1\n+ 2", "select 3", "select 4"]


def test_what_is_refused_does_not_end_the_shell(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    type_in("wrong; never;\nbroken;\n\nselect 1;\n\\q\n", asked)
    assert asked == ["wrong", "broken", "select 1"]
    assert capsys.readouterr().err.splitlines() == [
        "icetree: not found: there is no table wrong",
        "icetree: ValueError: broken",
    ]


def test_ctrl_d_leaves(asked: list[str]) -> None:
    type_in("select 1;\n\x04", asked)
    assert asked == ["select 1"]


def test_tab_offers_keywords_tables_and_columns(tmp_path: Path) -> None:
    make_table(tmp_path)
    with open_lake(tmp_path) as lake:
        words = Words(lambda: names_in(lake))

        def offered(text: str) -> set[str]:
            found = words.get_completions(Document(text), CompleteEvent())
            return {each.text for each in found}

        assert offered("sel") == {"SELECT"}
        assert offered("SELECT * FROM d") == {
            "db",
            "db.t",
            "DELETE",
            "DESC",
            "DESCRIBE",
            "DISTINCT",
            "DROP",
        }
        assert offered("SELECT count(coun") == {"country", "COUNT"}
        assert offered("SELECT ") == set()


def test_history_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    _history()
    assert (tmp_path / "icetree" / "sql-history").stat().st_mode & 0o777 == 0o600
