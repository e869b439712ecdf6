"""What people hold shows itself in a notebook, and nothing that a table says is markup there."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.expressions import EqualTo

import icetree
from icetree.cli.main import cli
from icetree.table.table import Table

MARK = "<script>alert(1)</script>\x1b\u202e&"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    columns = pa.schema([(MARK, pa.string()), ("n", pa.int64())])
    table = lake.create_table("db.t", columns, partition_by=["n"])
    table.append(pa.table([[MARK, "b"], [1, 2]], schema=columns), summary={MARK: MARK})
    table.create_tag(MARK)
    return table


def parsed(html: str) -> ET.Element:
    """Return HTML as a tree; it is XML too."""
    return ET.fromstring(f"<div>{html}</div>")


def texts(html: str) -> str:
    return " ".join(parsed(html).itertext())


def test_a_table_shows_its_facts_and_columns(table: Table) -> None:
    shown = texts(table._repr_html_())
    assert "table db.t" in shown
    assert str(table.metadata.current_snapshot_id) in shown
    assert "string" in shown


def test_a_snapshot_shows_itself(table: Table) -> None:
    assert table.current_snapshot is not None
    shown = texts(table.current_snapshot._repr_html_())
    assert f"snapshot {table.current_snapshot.snapshot_id}" in shown
    assert "added-records 2" in shown


def test_an_explanation_shows_what_was_skipped_and_prints_as_the_command_line_does(
    table: Table, tmp_path: Path
) -> None:
    told = table.explain("n = 1")
    shown = texts(told._repr_html_())
    assert "where n = 1" in shown
    assert "skipped" in shown
    given = ["--catalog", f"sqlite:///{tmp_path}/c.db", "explain", "db.t", "--where", "n = 1"]
    assert CliRunner().invoke(cli, given).stdout.strip() == str(told)


def test_a_tree_draws_itself_and_prints_as_the_command_line_does(
    table: Table, tmp_path: Path
) -> None:
    tree = table.tree()
    assert ET.fromstring(tree._repr_svg_()).tag.endswith("svg")
    file = tmp_path / "tree.txt"
    given = ["--catalog", f"sqlite:///{tmp_path}/c.db", "tree", "db.t", "-o", str(file)]
    assert CliRunner().invoke(cli, given).exit_code == 0
    assert file.read_text(encoding="utf-8").strip() == str(tree)
    assert "flowchart" in tree.to_mermaid()


def test_nothing_that_a_table_says_is_markup_or_acts(table: Table) -> None:
    assert table.current_snapshot is not None
    shown = [table._repr_html_(), table.current_snapshot._repr_html_(), table.tree()._repr_svg_()]
    shown.append(table.explain(EqualTo(MARK, MARK))._repr_html_())
    for each in shown:
        found = parsed(each)
        assert not [part for part in found.iter() if part.tag.endswith("script")]
        assert "\x1b" not in each
        assert "\u202e" not in each
    assert "<script>alert(1)</script>" in texts(shown[0])
