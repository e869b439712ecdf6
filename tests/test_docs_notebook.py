"""The tutorial runs from its first cell to its last, twice, and keeps no output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOK = json.loads((Path(__file__).parents[1] / "docs" / "tutorial.ipynb").read_text())
CODE = [each for each in NOTEBOOK["cells"] if each["cell_type"] == "code"]


def test_the_tutorial_runs_and_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(CODE) > 5
    for _ in ("today", "tomorrow"):
        names: dict[str, object] = {}
        for number, cell in enumerate(CODE):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)


def test_the_tutorial_keeps_no_output() -> None:
    assert [each for each in CODE if each["outputs"] or each["execution_count"]] == []
